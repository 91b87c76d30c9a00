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

// agentWindow is how many calls an agent takes at once. It bounds its memory; how
// many calls are good for the service behind it is max_concurrency's business.
const agentWindow = 1 << 16

// maxQueued is how many heartbeats and checkpoints wait to be sent before those
// who say more have to wait. Answers never do.
const maxQueued = 1024

// brisk is how soon after a call's arrival its answer lets others go first: an
// agent that is this quick has likely more of them at once, whose answers cost
// less in one message. It is short beside what a service takes, and long beside
// the time in which an agent that only computes gets to all calls of a batch.
const brisk = 10 * time.Millisecond

// maxIdle is how many goroutines that have run a call wait for another one: they
// are at hand, and their stacks have the right size.
const maxIdle = 256

// maxIdleList is how many items a list may have room for while it holds few: what
// a burst took is given back.
const maxIdleList = 1024

// A worker is a goroutine that waits for calls: calling it never blocks.
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
	pending  []*job // those from next on have not begun yet
	next     int
	called   bool     // a worker has been called that has not come yet
	idle     []worker // the last one to have worked is the next to work: its stack is at hand
	queue    []outgoing
	events   int           // of queue
	room     chan struct{} // closed and replaced when there is room for events again
	sending  bool          // a goroutine sends what is queued
	yielding bool          // a goroutine will, once others have had their turn
	over     bool          // nothing is sent any more
	quiet    *sync.Cond    // nobody sends

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

// begin runs a call. A number that is in use is not a new one.
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

// callWorkerLocked sees to it that a worker comes for a call that has not begun.
// One at a time is called, and calls the next before it begins: so no call waits
// for another one's function, and where functions are quick few need to come.
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
	came := true // it was called
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

// ended is called when the action's function has returned.
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

// event queues a heartbeat or a checkpoint; it waits while too many are queued.
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

// send sends what functions say while they run, until the stream ends. They must
// not wait until the engine has read it.
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

// flush sends what is queued, in batches, until nothing is. Where another
// goroutine does so already it leaves that to it: a batch is what queued meanwhile. With yield
// other goroutines that can run go first each time, if other calls are under way:
// they may be about to answer too. A goroutine that does not yield waits for none
// that does.
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

// deliver sends a list. It reports false if the stream is over, as the receiver
// sees too.
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

// close returns when nobody sends any more.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for l.sending {
		l.quiet.Wait()
	}
}

// takeLocked returns what is queued, and makes a queue of the list that was sent.
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

// fill makes the next batch of what still counts (S28), and returns the rest.
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
