package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// Invoke sends one call and waits for its end. The function onEvent gets the agent's heartbeats and
// checkpoints, in order, before Invoke returns; nil = they are dropped. If onEvent is so slow that
// maxEvents of them wait, the oldest is dropped. Invoke sets Request.Remaining.
//
// Invoke checks the agent's reply against the schema and returns it. If the process or the
// connection was lost, Invoke returns an unknown outcome with sdk.CodeAgentLost. If the agent's
// reply was too large or invalid, Invoke returns an unknown outcome with sdk.CodeBadReply (S35). If
// the input is larger than the payload limit, or a text of the request is not valid UTF-8, Invoke
// returns a definite failure with sdk.CodeInvalid.
//
// When ctx is cancelled, Invoke asks the agent to stop, and still accepts a reply for
// OpenOptions.CancelGrace. If Invoke returns an error, there is no reply. The error wraps
// ErrNotSent if the agent has never received the call. Otherwise it wraps ctx's error, or
// context.DeadlineExceeded if complete-by passes first (S28).
func (p *Process) Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	return p.Call(ctx, req, CallOptions{OnEvent: onEvent})
}

// Call does the work of Invoke, with options. After complete-by, Call may wait for a late reply
// before it returns. Call never returns a late reply: it passes the late reply to
// CallOptions.OnLate, and returns context.DeadlineExceeded.
func (p *Process) Call(ctx context.Context, req sdk.Request, o CallOptions) (sdk.Reply, error) {
	if err := ctx.Err(); err != nil {
		return sdk.Reply{}, fmt.Errorf("plugin: invoke %s.%s: %w: %w", p.schema.Name, req.Action, ErrNotSent, err)
	}
	c := &call{process: p, req: req, options: o, start: time.Now()}
	if reply, err, over := c.prepare(); over {
		return reply, err
	}
	s := p.liveSession()
	if s == nil {
		return c.unary(ctx)
	}
	w := &waiter{wake: make(chan struct{}, 1), onEvent: o.OnEvent}
	c.options.OnEvent, c.done = nil, w.done
	if o.OnEvent != nil {
		c.options.OnEvent = w.event
	}
	s.start(c)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { c.cancel(ctx.Err()) })()
	}
	return w.wait()
}

// Start begins a call like Call, but does not wait for its end. It ignores the end of ctx: the
// caller calls Ongoing.Cancel instead. The function `done` is called once, with the results that
// Call would return, perhaps before Start returns. The function `done` and the functions in o must
// not block, because that would delay the answers to other calls. None of these functions may call
// Process.Close.
//
// Usually the functions in o have returned before `done` is called. But if the call ends because
// complete-by passes or because it is cancelled, o.OnEvent may run at the same time as `done`.
func (p *Process) Start(ctx context.Context, req sdk.Request, o CallOptions, done func(sdk.Reply, error)) *Ongoing {
	c := &call{process: p, req: req, options: o, start: time.Now(), done: done}
	g := &Ongoing{call: c}
	reply, err, over := c.prepare()
	if over {
		c.finish(reply, err)
		return g
	}
	if s := p.liveSession(); s != nil {
		s.start(c)
		return g
	}
	ctx, g.end = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer g.end()
		c.finish(c.unary(ctx))
	}()
	return g
}

// Ongoing is a call that Start has started.
type Ongoing struct {
	call *call
	end  context.CancelFunc // cancels a call on its own stream; nil = the call has no stream of its own
}

// Cancel notifies the agent that the answer is not needed any more. If the call was not sent yet,
// it ends with ErrNotSent. Otherwise it continues until the agent answers, but at most for
// OpenOptions.CancelGrace. If the agent does not answer, the error of the call wraps
// context.Canceled, or context.DeadlineExceeded if complete-by passes first. Cancel does nothing
// once the call is over.
func (g *Ongoing) Cancel() {
	if g.end != nil {
		g.end()
		return
	}
	g.call.cancel(context.Canceled)
}

// maxEvents is the largest number of events of a call that wait for a slow caller. If another event
// arrives, the oldest of these events is dropped. So a slow caller does not delay the answers to
// other calls.
const maxEvents = 256

// A waiter passes the events and the result of one call to the goroutine that waits for the
// call. Only a call in a session needs a waiter.
type waiter struct {
	wake    chan struct{} // a channel of capacity 1, which holds a value while a result or an event waits for the caller
	onEvent func(sdk.Event)

	mu     sync.Mutex // protects the fields below
	events []sdk.Event
	over   bool
	reply  sdk.Reply
	err    error
}

func (w *waiter) event(ev sdk.Event) {
	w.mu.Lock()
	if len(w.events) == maxEvents {
		w.events = append(w.events[:0], w.events[1:]...)
	}
	w.events = append(w.events, ev)
	w.mu.Unlock()
	w.ring()
}

func (w *waiter) done(reply sdk.Reply, err error) {
	w.mu.Lock()
	w.over, w.reply, w.err = true, reply, err
	w.mu.Unlock()
	w.ring()
}

func (w *waiter) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// wait waits until the call is over, and returns its result. Meanwhile it passes the events
// of the call to the function onEvent.
func (w *waiter) wait() (sdk.Reply, error) {
	for {
		<-w.wake
		w.mu.Lock()
		events, over := w.events, w.over
		w.events = nil
		w.mu.Unlock()
		for _, ev := range events {
			w.onEvent(ev)
		}
		if over {
			return w.reply, w.err
		}
	}
}
