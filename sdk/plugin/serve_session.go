package plugin

import (
	"context"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// agentWindow is how many calls an agent accepts at once. It bounds the agent's memory.
// The limit that protects the remote service is max_concurrency.
const agentWindow = 1 << 16

// maxQueued is how many heartbeats and checkpoints may wait to be sent. Functions that
// send more have to wait. Replies never wait.
const maxQueued = 1024

// brisk is the age of a call below which its reply waits for other goroutines to run
// first. An agent that answers this quickly is likely to have more replies ready, and one
// message with many replies costs less. The time is short compared with a remote service,
// and long compared with an agent that only computes.
const brisk = 10 * time.Millisecond

// maxIdle is how many idle goroutines wait for the next call. Their stacks have already
// grown to the size that a call needs.
const maxIdle = 256

// maxIdleList is the largest capacity that a nearly empty list keeps. A larger list is
// released, so that the memory of a burst is freed.
const maxIdleList = 1024

// A worker is a goroutine that waits for calls. Sending to it never blocks.
type worker chan struct{}

// Session runs calls until the engine ends the stream, each in a goroutine of
// its own.
func (s *server) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{Window: agentWindow}); err != nil {
		return err
	}
	l := &link{
		server: s, stream: stream, wake: make(chan struct{}, 1), room: make(chan struct{}),
		limit: min(batchBytes, s.limit+messageRoom), jobs: map[uint64]*job{},
	}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithCancel(stream.Context())
	l.quiet = sync.NewCond(&l.mu)
	go l.send()
	defer l.close() // nothing is sent once this function has returned
	defer cancel()  // the end of the stream is the end of its calls
	batch := received{names: names{}}
	for {
		if err := stream.RecvMsg(&batch); err != nil {
			return err
		}
		for i := range batch.list {
			switch inv := &batch.list[i]; {
			case inv.call:
				l.begin(inv.id, inv.req)
			case inv.cancel:
				l.cancel(inv.id)
			}
		}
	}
}

// A link is the agent's half of a session.
type link struct {
	server *server
	stream grpc.ServerStream
	ctx    context.Context // ends with the stream
	wake   chan struct{}   // has room for one: there is something to send
	limit  int             // bytes of a batch

	mu       sync.Mutex // protects following fields
	jobs     map[uint64]*job
	pending  []*job // jobs from index next on have not begun yet
	next     int
	called   bool     // a worker was woken and has not taken a job yet
	idle     []worker // the last one to have worked is the next to work: its stack is at hand
	queue    []outgoing
	events   int           // of queue
	room     chan struct{} // closed and replaced when there is room for events again
	sending  bool          // a goroutine sends what is queued
	yielding bool          // a goroutine will send, once other goroutines have run
	over     bool          // nothing is sent any more
	quiet    *sync.Cond    // signalled when no goroutine sends

	out  results    // the sender's
	sent []outgoing // the sender's, to be the queue again
}

// A job is a call that the agent has.
type job struct {
	link *link
	id   uint64
	req  sdk.Request
	time allowance
	ctx  context.Context // of the action's function
	running
}

// An allowance is the time in which a call may be answered.
type allowance struct {
	start      time.Time
	left       time.Duration
	completeBy time.Time
}

// over reports whether it has passed, by either clock.
func (a *allowance) over(now time.Time) bool {
	return now.Sub(a.start) >= a.left || !now.Round(0).Before(a.completeBy)
}

// begin runs a call. It ignores a call whose number is in use.
func (l *link) begin(id uint64, req sdk.Request) {
	now := time.Now()
	j := &job{link: l, id: id, req: req, time: allowance{start: now, left: req.TimeLeft(now), completeBy: req.CompleteBy}}
	if j.time.left <= 0 {
		return // S28
	}
	l.mu.Lock()
	if _, ok := l.jobs[id]; ok {
		l.mu.Unlock()
		l.server.logger.Error("the engine used a call's number twice", "id", id)
		return
	}
	j.ctx, j.cancel = context.WithDeadline(l.ctx, now.Add(j.time.left))
	l.jobs[id] = j
	if len(l.pending) == cap(l.pending) && l.next > len(l.pending)/2 { // those that have begun make room
		n := copy(l.pending, l.pending[l.next:])
		clear(l.pending[n:])
		l.pending, l.next = l.pending[:n], 0
	}
	l.pending = append(l.pending, j)
	l.callWorkerLocked()
	l.mu.Unlock()
}

// callWorkerLocked wakes a worker for a call that has not begun. It wakes one worker at
// a time, and that worker wakes the next before it runs its call. So no call waits for
// the function of another call, and quick functions need few workers.
func (l *link) callWorkerLocked() {
	if l.called || l.next == len(l.pending) {
		return
	}
	l.called = true
	if n := len(l.idle); n > 0 {
		l.idle[n-1] <- struct{}{}
		l.idle = l.idle[:n-1]
		return
	}
	go l.work(make(worker, 1))
}

func (l *link) cancel(id uint64) {
	l.mu.Lock()
	j := l.jobs[id]
	l.mu.Unlock()
	if j != nil {
		j.cancel()
	}
}

// work runs calls until there is none to begin and enough goroutines are idle.
func (l *link) work(own worker) {
	came := true // it was woken
	for {
		l.mu.Lock()
		if came {
			l.called, came = false, false
		}
		var j *job
		if l.next < len(l.pending) {
			j = l.takeJobLocked()
			l.callWorkerLocked()
		} else if len(l.idle) >= maxIdle {
			l.mu.Unlock()
			return
		} else {
			l.idle = append(l.idle, own)
		}
		l.mu.Unlock()
		if j != nil {
			j.run()
			continue
		}
		select {
		case <-own:
			came = true
		case <-l.ctx.Done():
			return
		}
	}
}

// takeJobLocked returns the oldest call that has not begun; there is one.
func (l *link) takeJobLocked() *job {
	j := l.pending[l.next]
	l.pending[l.next] = nil
	if l.next++; l.next == len(l.pending) {
		if l.next = 0; cap(l.pending) > maxIdleList {
			l.pending = nil // from a burst that is over
		}
		l.pending = l.pending[:0]
	}
	return j
}

func (j *job) run() {
	l := j.link
	l.server.life.enter(&j.running)
	defer l.server.life.leave(&j.running)
	defer func() { l.flush(time.Since(j.time.start) < brisk) }() // its answer, unless another goroutine sends it already
	defer j.cancel()
	l.server.agent.Run(j.ctx, j.req, sdk.InvokeOptions{Logger: l.server.logger, OnEvent: j.event, Ended: j.ended}, j.answer)
}

// ended queues the reply of a call whose function has returned.
func (j *job) ended() {
	l := j.link
	l.mu.Lock()
	delete(l.jobs, j.id)
	l.mu.Unlock()
}

func (j *job) answer(reply sdk.Reply) {
	o := outgoing{id: j.id, reply: j.link.server.fit(reply), time: &j.time}
	o.bound()
	l := j.link
	l.mu.Lock()
	l.queue = append(l.queue, o) // sent once the function has returned
	l.mu.Unlock()
}

// event queues a heartbeat or a checkpoint. It waits while more than maxQueued are queued.
func (j *job) event(ev sdk.Event) {
	l := j.link
	o := outgoing{id: j.id, event: ev, time: &j.time}
	o.bound()
	if o.size > l.server.limit+messageRoom {
		l.server.logger.Warn("an event is too large to be sent", "bytes", o.size)
		return
	}
	for {
		l.mu.Lock()
		if l.events < maxQueued {
			l.events++
			l.queue = append(l.queue, o)
			l.mu.Unlock()
			l.ring()
			return
		}
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
		case <-j.ctx.Done():
			return
		}
	}
}

func (l *link) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// send sends heartbeats and checkpoints until the stream ends. It has a goroutine of its
// own, because functions must not wait until the engine has read them.
func (l *link) send() {
	for {
		select {
		case <-l.wake:
			l.flush(false)
		case <-l.ctx.Done():
			return
		}
	}
}

// flush sends queued items in batches until the queue is empty. If another goroutine
// sends already, flush leaves the items to it. With yield, other goroutines run first
// before each batch if other calls are in flight, because they may be about to reply. A
// goroutine that does not yield sends without waiting for one that does.
func (l *link) flush(yield bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if yield && l.yielding {
		return
	}
	for !l.sending && !l.over && len(l.queue) > 0 {
		if yield && len(l.jobs) > 0 {
			l.yielding = true
			l.mu.Unlock()
			runtime.Gosched()
			l.mu.Lock()
			l.yielding = false
			if l.sending || l.over || len(l.queue) == 0 {
				return
			}
		}
		l.sending = true
		list := l.takeLocked()
		l.mu.Unlock()
		ok := l.deliver(list)
		l.mu.Lock()
		l.over = l.over || !ok
		l.sending = false
		l.quiet.Broadcast()
	}
}

// deliver sends a list. It reports false if the stream has ended.
func (l *link) deliver(list []outgoing) bool {
	for rest := list; len(rest) > 0; {
		rest = l.fill(rest, time.Now())
		if len(l.out.list) > 0 && l.stream.SendMsg(&l.out) != nil {
			return false
		}
	}
	clear(list)
	if cap(list) > maxIdleList && len(list) < cap(list)/4 {
		list = nil // from a burst that is over
	}
	l.sent = list[:0]
	return true
}

// close ends the sending, and returns when no goroutine sends any more.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for l.sending {
		l.quiet.Wait()
	}
}

// takeLocked returns the queue, and reuses the list that was sent as the next queue.
func (l *link) takeLocked() []outgoing {
	list := l.queue
	l.queue, l.sent = l.sent, nil
	if l.events >= maxQueued {
		close(l.room)
		l.room = make(chan struct{})
	}
	l.events = 0
	return list
}

// fill makes the next batch of items whose complete-by has not passed (S28), and returns
// the rest.
func (l *link) fill(list []outgoing, now time.Time) []outgoing {
	clear(l.out.list)
	l.out.list, l.out.size = l.out.list[:0], 0
	for i := range list {
		o := &list[i]
		if len(l.out.list) >= maxBatch || len(l.out.list) > 0 && l.out.size+o.size > l.limit {
			return list[i:]
		}
		if !o.time.over(now) {
			l.out.size += o.size
			l.out.list = append(l.out.list, *o)
		}
	}
	return nil
}
