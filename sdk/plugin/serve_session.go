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

// agentWindow is the largest number of calls in flight that an agent accepts. It limits the
// agent's memory. The limit that protects the remote service is max_concurrency.
const agentWindow = 1 << 16

// maxQueued is the largest number of heartbeats and checkpoints in the queue. If the queue is full,
// an action that sends another heartbeat or checkpoint has to wait. For replies there is no such
// limit.
const maxQueued = 1024

// brisk is the duration below which a call counts as quick. The agent does not send the reply
// of a quick call at once, but first lets other goroutines run. The reason: an agent with
// quick calls will probably have more replies soon, and one message with many replies costs
// less than many messages. A call of a remote service usually takes longer than brisk. A
// function that only computes usually takes less.
const brisk = 10 * time.Millisecond

// maxIdle is the largest number of idle goroutines that wait for the next call of a session. They
// are kept because their stacks have already grown to the size that a call needs.
const maxIdle = 256

// maxIdleList is the capacity, in items, up to which a session always reuses the memory of a list.
// If a list has a larger capacity but few items, the session frees the memory of the list.
const maxIdleList = 1024

// A worker is the channel of one goroutine that runs calls. While the goroutine is idle, it
// waits for a value from this channel. A send to the channel never blocks.
type worker chan struct{}

// Session runs calls until the engine ends the stream. While a call runs, it has a goroutine for
// itself: a worker.
func (s *server) Session(stream pb.Agent_SessionServer) error {
	if err := stream.Send(&pb.ResultBatch{Window: agentWindow}); err != nil {
		return err
	}
	l := &link{
		server: s, stream: stream, wake: make(chan struct{}, 1), space: make(chan struct{}),
		limit: min(batchBytes, s.limit+messageOverhead), jobs: map[uint64]*job{},
	}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithCancel(stream.Context())
	l.quiet = sync.NewCond(&l.mu)
	go l.send()
	defer l.close() // after Session has returned, the link must not send
	defer cancel()  // when the stream ends, its calls end
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

// A link is the agent's side of a session: the stream on which all calls of an engine arrive.
type link struct {
	server *server
	stream grpc.ServerStream
	ctx    context.Context // ends with the stream
	wake   chan struct{}   // a channel of capacity 1, which holds a value while there is something to send
	limit  int             // largest size of a batch with several items, in bytes

	mu       sync.Mutex // protects the fields below
	jobs     map[uint64]*job
	pending  []*job // received calls; the calls from index l.next on have not begun yet
	next     int
	called   bool          // true = a worker was woken or started, and has not looked for a job yet
	idle     []worker      // idle workers; the last is woken first, because its stack is in the CPU cache
	queue    []outgoing    // events and replies to send, oldest first
	events   int           // number of events in the queue
	space    chan struct{} // closed and replaced when more events may be queued
	sending  bool          // a goroutine is sending the queue
	yielding bool          // a goroutine pauses in the method `flush`, and sends the queue after the pause
	over     bool          // nothing may be sent any more
	quiet    *sync.Cond    // signalled when no goroutine is sending

	out results // the batch that is sent; only the sending goroutine uses it
	// List that was sent last. The next queue uses the memory of this list.
	sent []outgoing
}

// A job is a call that the agent has received.
type job struct {
	link *link
	id   uint64
	req  sdk.Request
	time allowance
	ctx  context.Context // context of the action's function
	running
}

// begin queues a received call and wakes a worker if necessary. It ignores a call if the time
// of the call is over, or if another call has the same number.
func (l *link) begin(id uint64, req sdk.Request) {
	now := time.Now()
	j := &job{link: l, id: id, req: req, time: allowance{start: now, left: req.TimeLeft(now), completeBy: req.CompleteBy}}
	if j.time.left <= 0 {
		return // the time is over, so the agent must not answer (S28)
	}
	l.mu.Lock()
	if _, ok := l.jobs[id]; ok {
		l.mu.Unlock()
		l.server.logger.Error("the engine used a call's number twice", "id", id)
		return
	}
	j.ctx, j.cancel = context.WithDeadline(l.ctx, now.Add(j.time.left))
	l.jobs[id] = j
	// Reuse the space of calls that have begun.
	if len(l.pending) == cap(l.pending) && l.next > len(l.pending)/2 {
		n := copy(l.pending, l.pending[l.next:])
		clear(l.pending[n:])
		l.pending, l.next = l.pending[:n], 0
	}
	l.pending = append(l.pending, j)
	l.callWorkerLocked()
	l.mu.Unlock()
}

// callWorkerLocked wakes or starts one worker if there is a call that has not begun. Before this
// worker runs its call, it wakes or starts the next worker if there is another call that has not
// begun. So no call waits until the function of another call has returned, and quick functions need
// few workers.
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

// work runs calls, one after the other. It returns when the stream ends, or when no call is
// left to begin and maxIdle other workers are idle.
func (l *link) work(own worker) {
	came := true // this worker is new or was woken
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

// takeJobLocked removes the oldest call that has not begun from the pending calls, and
// returns it. The caller must know that there is such a call.
func (l *link) takeJobLocked() *job {
	j := l.pending[l.next]
	l.pending[l.next] = nil
	if l.next++; l.next == len(l.pending) {
		if l.next = 0; cap(l.pending) > maxIdleList {
			l.pending = nil // free the memory of a large burst
		}
		l.pending = l.pending[:0]
	}
	return j
}

func (j *job) run() {
	l := j.link
	l.server.life.enter(&j.running)
	defer l.server.life.leave(&j.running)
	// The method `flush` sends the reply, or leaves it to a goroutine that is already sending.
	defer func() { l.flush(time.Since(j.time.start) < brisk) }()
	defer j.cancel()
	l.server.agent.Run(j.ctx, j.req, sdk.InvokeOptions{Logger: l.server.logger, OnEvent: j.event, Ended: j.ended}, j.answer)
}

// ended removes a call from l.jobs, because the action's function has returned.
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
	l.queue = append(l.queue, o) // the method `run` sends the reply after the action's function has returned
	l.mu.Unlock()
}

// event queues a heartbeat or a checkpoint. If the queue already has maxQueued of them, event waits
// until the queue has space. If the context of the call ends meanwhile, event drops the item. It
// also drops an item that is too large for a message.
func (j *job) event(ev sdk.Event) {
	l := j.link
	o := outgoing{id: j.id, event: ev, time: &j.time}
	o.bound()
	if o.size > l.server.limit+messageOverhead {
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
		space := l.space
		l.mu.Unlock()
		select {
		case <-space:
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

// send sends heartbeats and checkpoints until the stream ends. It runs in its own goroutine,
// so that an action's function need not wait until the engine has read an event.
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

// flush sends queued items in batches until the queue is empty. If another goroutine is already
// sending, flush returns at once, because that goroutine also sends these items. If the parameter
// `yield` is true and other calls are in flight, flush pauses before each batch, because the other
// calls may reply soon. During such a pause (l.yielding), a second call of flush with `yield` =
// true returns at once, too.
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

// deliver sends the items of a list. It returns false if the stream has ended.
func (l *link) deliver(list []outgoing) bool {
	for rest := list; len(rest) > 0; {
		rest = l.fill(rest, time.Now())
		if len(l.out.list) > 0 && l.stream.SendMsg(&l.out) != nil {
			return false
		}
	}
	clear(list)
	if cap(list) > maxIdleList && len(list) < cap(list)/4 {
		list = nil // free the memory of a large burst
	}
	l.sent = list[:0]
	return true
}

// close prevents further sending, and waits until no goroutine is sending.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for l.sending {
		l.quiet.Wait()
	}
}

// takeLocked returns the queued items and empties the queue. The emptied queue uses the memory
// of the list that was sent before.
func (l *link) takeLocked() []outgoing {
	list := l.queue
	l.queue, l.sent = l.sent, nil
	if l.events >= maxQueued {
		close(l.space)
		l.space = make(chan struct{})
	}
	l.events = 0
	return list
}

// fill puts items of the list into the next batch, until the batch is full. It drops items
// whose complete-by has passed (S28). It returns the items that did not fit.
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
