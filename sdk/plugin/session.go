package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/saga-engine/engine/sdk"
)

// exitNotice is how long a session waits for the end of the process after the connection has
// ended. If the process ends, the error says why it ended, which is more useful than the error
// of the connection.
const exitNotice = 200 * time.Millisecond

// A session is the host's side of the stream on which calls are sent in batches. One goroutine
// sends and another one receives. When the stream ends, the session and all its calls end.
type session struct {
	process *Process
	stream  grpc.ClientStream
	end     context.CancelFunc // ends the stream
	wake    chan struct{}      // a channel of capacity 1, which holds a value while there is something to send
	over    chan struct{}      // closed when the receiving goroutine has ended
	limit   int                // largest size of a batch with several items, in bytes
	window  int                // largest number of calls in flight that the agent accepts; 0 = no limit

	mu      sync.Mutex // protects the fields below
	calls   map[uint64]*call
	last    uint64   // id of the last call
	busy    int      // number of calls in state callSent
	waiting []*call  // calls that were not sent yet, oldest first; some may be over
	stale   int      // number of calls in the field `waiting` that are over
	cancels []uint64 // ids of calls for which a cancel must be sent
	lost    error    // why the session sends no more calls; nil = it still sends calls

	out invocations // the batch that is sent; only the sending goroutine uses it
	in  []arrival   // content of the received batch; only the receiving goroutine uses it
}

// openSession opens the session with a process that was just started, and starts the two
// goroutines of the session.
func (p *Process) openSession(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, err := p.rpc.Session(inner, grpc.ForceCodecV2(newCodec()))
	var hello answers
	if err == nil {
		err = stream.RecvMsg(&hello)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("open the session: %w", err)
	}
	s := &session{
		process: p, stream: stream, end: cancel, wake: make(chan struct{}, 1), over: make(chan struct{}),
		limit: min(batchBytes, p.options.PayloadLimit+messageOverhead), window: hello.window, calls: map[uint64]*call{},
	}
	p.session = s
	go s.send()
	go s.receive()
	return nil
}

func (s *session) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// start queues a call. The sending goroutine sends the call as soon as the agent accepts
// another call. If the session has ended, start ends the call with the error ErrNotSent.
func (s *session) start(c *call) {
	s.mu.Lock()
	if s.lost != nil {
		err := s.lost
		s.mu.Unlock()
		c.finish(sdk.Reply{}, c.notSent(s.process.explain(err)))
		return
	}
	s.last++
	c.session, c.id, c.state = s, s.last, callWaiting
	s.calls[c.id] = c
	s.waiting = append(s.waiting, c)
	c.timer = time.AfterFunc(c.left, c.timeout)
	s.mu.Unlock()
	s.ring()
}

// cancel notifies the agent that the engine does not need the answer to a call any more. If
// the call was not sent yet, cancel removes it from the queue and ends it.
func (c *call) cancel(why error) {
	s := c.session
	if s == nil {
		// The call was never passed to the session, because it was over before.
		return
	}
	s.mu.Lock()
	switch {
	case c.state == callWaiting:
		s.removeLocked(c)
		s.mu.Unlock()
		c.finish(sdk.Reply{}, c.notSent(why))
		return
	case c.state != callOver && c.cancelled == nil:
		c.cancelled = why
		c.grace = time.AfterFunc(s.process.options.CancelGrace, c.abandon)
		s.cancels = append(s.cancels, c.id)
	}
	s.mu.Unlock()
	s.ring()
}

// timeout is called when complete-by of a call passes, and again when the wait for a late
// reply ends.
func (c *call) timeout() {
	s := c.session
	s.mu.Lock()
	switch c.state {
	case callWaiting:
		s.removeLocked(c)
		s.mu.Unlock()
		c.finish(sdk.Reply{}, c.notSent(errSilence))
	case callSent:
		s.expireLocked(c)
		s.mu.Unlock()
		s.ring() // the agent may accept another call now
		c.listen()
	case callListening:
		// This timer was set for complete-by or for the wait for a late reply. If c.listening is
		// false, it was set for complete-by. In this case the method session.take has already
		// recorded that complete-by has passed, so nothing is left to do.
		enough := c.listening
		s.mu.Unlock()
		if enough {
			c.abandon()
		}
	default:
		s.mu.Unlock()
	}
}

// expireLocked records that complete-by of a call has passed. The call must have been sent.
// Afterwards the caller must call the method `listen`. But if the caller already has the reply, it
// must call the method `answered` with first = true, and not `listen`.
func (s *session) expireLocked(c *call) {
	c.timer.Stop()
	c.state = callListening
	s.busy--
}

// listen reports that complete-by of the call has passed, and starts the wait for a late reply.
func (c *call) listen() {
	listen := c.expire()
	if listen <= 0 {
		c.abandon()
		return
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.state == callListening {
		c.listening = true
		c.timer = time.AfterFunc(listen, c.timeout)
	}
}

// abandon ends a call that was sent and that the agent does not answer. Complete-by may have passed
// although its timer has not fired yet, because the wall clock was set forward. Then abandon
// reports this first, but does not wait for a late reply: the wait after the cancel is over.
func (c *call) abandon() {
	s := c.session
	s.mu.Lock()
	if c.state == callOver {
		s.mu.Unlock()
		return
	}
	if c.cancelled == nil {
		s.cancels = append(s.cancels, c.id) // the agent may still be working on the call
	}
	err := c.cancelled
	first := c.state == callSent && c.late(time.Now())
	if first || c.state == callListening {
		err = errSilence
	}
	s.removeLocked(c)
	s.mu.Unlock()
	s.ring()
	if first {
		c.expire()
	}
	c.finish(sdk.Reply{}, c.fail(err))
}

// removeLocked removes a call from the session and stops the timers of the call.
func (s *session) removeLocked(c *call) {
	switch c.state {
	case callSent:
		s.busy--
	case callWaiting:
		s.stale++
		defer s.tidyLocked()
	}
	c.state = callOver
	c.timer.Stop()
	if c.grace != nil {
		c.grace.Stop()
	}
	delete(s.calls, c.id)
}

// send runs in its own goroutine. It sends the waiting calls and cancels in batches.
func (s *session) send() {
	for {
		select {
		case <-s.wake:
		case <-s.over:
			return
		}
		for s.yield(); s.fill(); s.yield() {
			if err := s.stream.SendMsg(&s.out); err != nil {
				// io.EOF means that the stream has ended. In this case the method `receive` gets
				// the cause. Any other error happened in the host, and the agent may have received
				// only a part of a message.
				if !errors.Is(err, io.EOF) {
					s.stop(err)
				}
				s.end()
				return
			}
		}
	}
}

// yield lets other goroutines run first if calls are in flight. The other goroutines will
// probably add calls, and one message with many calls costs less than many messages.
func (s *session) yield() {
	s.mu.Lock()
	busy := s.busy > 0
	s.mu.Unlock()
	if busy {
		runtime.Gosched()
	}
}

// fill puts cancels and waiting calls into the next batch. It returns false if the batch is empty,
// or if the session sends no more calls.
func (s *session) fill() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return false
	}
	cancels := min(len(s.cancels), maxBatch)
	size := cancels * frame
	s.out.cancels = append(s.out.cancels[:0], s.cancels[:cancels]...)
	s.cancels = append(s.cancels[:0], s.cancels[cancels:]...)
	clear(s.out.calls)
	s.out.calls = s.out.calls[:0]
	n := 0
	for _, c := range s.waiting {
		if c.state == callOver {
			n++
			s.stale--
			continue
		}
		items := cancels + len(s.out.calls)
		if items >= maxBatch || items > 0 && size+c.size > s.limit || s.window > 0 && s.busy >= s.window {
			break
		}
		n++
		size += c.size
		s.busy++
		c.state = callSent
		s.out.calls = append(s.out.calls, c)
	}
	s.dropLocked(n)
	return cancels+len(s.out.calls) > 0
}

// dropLocked removes the first n calls from the field `waiting`.
func (s *session) dropLocked(n int) {
	clear(s.waiting[:n])
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
}

// tidyLocked removes calls that are over from the field `waiting`, if many of them are over.
func (s *session) tidyLocked() {
	if s.stale <= maxBatch || s.stale <= len(s.waiting)/2 || len(s.waiting) == 0 {
		return
	}
	kept := make([]*call, 0, len(s.waiting)-s.stale)
	for _, c := range s.waiting {
		if c.state != callOver {
			kept = append(kept, c)
		}
	}
	s.waiting, s.stale = kept, 0
}

// stop makes the session send no further calls, because of err. If stop is called again, the
// session keeps the first error.
func (s *session) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = err
	}
}

// receive runs in its own goroutine. It receives events and replies. When the stream ends,
// it ends the remaining calls.
func (s *session) receive() {
	var batch answers
	for {
		if err := s.stream.RecvMsg(&batch); err != nil {
			s.lose(err)
			return
		}
		s.take(batch.list, time.Now())
	}
}

// An arrival is an event or a reply that the agent sent for a call.
type arrival struct {
	call *call
	answer
	first bool // complete-by has passed, and the code that started the call does not know it yet
	late  bool // the event or reply arrived after complete-by and does not count
}

// take passes events and replies to the calls to which they belong. It drops events and replies of
// unknown calls, of ended calls, and of calls that were not sent yet.
func (s *session) take(list []answer, now time.Time) {
	s.in = s.in[:0]
	s.mu.Lock()
	for _, said := range list {
		c := s.calls[said.id]
		if c == nil || c.state == callWaiting {
			continue
		}
		a := arrival{call: c, answer: said, late: c.state == callListening}
		if !a.late && c.late(now) {
			s.expireLocked(c)
			a.first, a.late = true, true
		}
		if said.final {
			s.removeLocked(c)
		}
		s.in = append(s.in, a)
	}
	more := len(s.waiting) > 0
	s.mu.Unlock()
	if more {
		s.ring()
	}
	for i := range s.in {
		s.in[i].report()
		s.in[i] = arrival{}
	}
}

// largeReply is a size in bytes. A reply with a larger output is checked in a separate goroutine,
// so that the check does not delay other replies.
const largeReply = 32 << 10

func (a *arrival) report() {
	c := a.call
	switch {
	case a.final && len(a.reply.Output) > largeReply:
		go c.answered(a.reply, a.late, a.first)
	case a.final:
		c.answered(a.reply, a.late, a.first)
	case a.first:
		c.listen()
	case !a.late && a.event != nil && c.options.OnEvent != nil:
		c.options.OnEvent(a.event)
	}
}

// answered ends a call with the agent's reply. If the parameter `late` is true, the method
// `answered` passes the reply only to OnLate, and ends the call with an error. If the parameter
// `first` is true as well, it calls OnExpired before OnLate, because OnExpired was not called when
// complete-by passed.
func (c *call) answered(reply sdk.Reply, late, first bool) {
	if !late {
		c.finish(c.accept(reply), nil)
		return
	}
	if first {
		c.expire()
	}
	if c.options.OnLate != nil {
		c.options.OnLate(c.accept(reply))
	}
	c.finish(sdk.Reply{}, c.silence())
}

// lose ends the session and its calls. A call that the agent may have received gets an unknown
// outcome, or an error if complete-by has passed or the call was cancelled. If the process is still
// running, each later call has its own stream. So if the agent violates the protocol once more,
// only one call is affected.
func (s *session) lose(err error) {
	defer close(s.over)
	s.end()
	s.stop(err)
	if status.Code(err) == codes.Unavailable {
		notice := time.NewTimer(exitNotice)
		select {
		case <-s.process.Done():
		case <-notice.C:
		}
		notice.Stop()
	}
	s.process.broken.Store(true)
	s.mu.Lock()
	err = s.lost
	calls := s.calls
	s.calls, s.waiting, s.cancels = nil, nil, nil
	ends := make([]func(), 0, len(calls))
	now := time.Now()
	for _, c := range calls {
		ends = append(ends, c.endLocked(err, now))
	}
	s.mu.Unlock()
	if s.process.Err() == nil && !s.process.asked.Load() {
		s.process.options.Logger.Warn("the agent's session ended; from now on each call has its own stream", "error", err, "calls", len(ends))
	}
	for _, end := range ends {
		end()
	}
}

// endLocked ends a call because its session ends. It returns a function that reports the end to the
// code that started the call. The caller must unlock session.mu before it calls that function.
func (c *call) endLocked(err error, now time.Time) func() {
	p, state := c.process, c.state
	c.session.removeLocked(c)
	switch {
	case state == callWaiting:
		return func() { c.finish(sdk.Reply{}, c.notSent(p.explain(err))) }
	case state == callListening:
		return func() { c.finish(sdk.Reply{}, c.silence()) }
	case c.late(now):
		return func() {
			c.expire()
			c.finish(sdk.Reply{}, c.silence())
		}
	case c.cancelled != nil:
		return func() { c.finish(sdk.Reply{}, c.fail(c.cancelled)) }
	}
	return func() { c.finish(p.lostReply(err), nil) }
}

// lostReply returns the reply for a call whose stream ended with err before a reply. The
// agent may have received the call, so the outcome is unknown.
func (p *Process) lostReply(err error) sdk.Reply {
	switch {
	case status.Code(err) == codes.ResourceExhausted:
		return badReply(fmt.Sprintf("the reply is over the limit of %d bytes", p.options.PayloadLimit))
	case errors.Is(err, io.EOF):
		return badReply("the call ended without a reply")
	}
	return sdk.Reply{
		Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost,
		Message: fmt.Sprintf("agent %s was lost: %v", p.schema.Name, p.explain(err)),
	}
}
