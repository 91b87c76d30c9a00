package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// Invoke sends one call and waits for its end. onEvent, if not nil, receives the
// agent's heartbeats and checkpoints, in order, before Invoke returns.
// Request.Remaining is set here.
//
// The reply is the agent's own, checked against its schema, or an unknown
// outcome: sdk.CodeAgentLost if the process or the connection was lost,
// sdk.CodeBadReply if the reply was too large or made no sense (S35). An input
// over the payload limit is a definite sdk.CodeInvalid.
//
// The error is ctx's, or context.DeadlineExceeded when complete-by passes first
// (S28): then there is no reply. When ctx is cancelled the agent is told, and may
// still answer for OpenOptions.CancelGrace. An error that is ErrNotSent says that
// the agent never saw the call.
func (p *Process) Invoke(ctx context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	return p.Call(ctx, req, CallOptions{OnEvent: onEvent})
}

// CallOptions says who hears what of a call besides its reply. Zero fields hear
// nothing.
type CallOptions struct {
	// OnEvent receives the agent's heartbeats and checkpoints, in order.
	OnEvent func(sdk.Event)
	// OnExpired is called once when complete-by passes without a reply, by
	// another goroutine perhaps. It returns for how long the call is listened to
	// all the same; 0 = no longer.
	OnExpired func() time.Duration
	// OnLate receives what the agent answers in that time, checked like any
	// reply: evidence against an agent that does not keep silent (S28).
	OnLate func(sdk.Reply)
}

// Call is Invoke with options. While an expired call is listened to, Call has
// not returned; its error is context.DeadlineExceeded in any case.
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

// Start is Call without a goroutine that waits: done is called once with what
// Call would have returned, the functions of o are called before that. It may be
// called before Start returns. None of them may block, because the answers to
// other calls wait behind them, and none may call Close.
//
// An event may still be on its way to OnEvent while done is called, where it is
// the time or a cancel that ends the call.
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

// Ongoing is a call that Start made.
type Ongoing struct {
	call *call
	end  context.CancelFunc // of a call that goes alone; nil = it is part of a session
}

// Cancel tells the agent that the answer is not wanted any more. The call goes
// on for OpenOptions.CancelGrace, or until it is answered; without an answer its
// error is context.Canceled. It does nothing once the call is over.
func (g *Ongoing) Cancel() {
	if g.end != nil {
		g.end()
		return
	}
	g.call.cancel(context.Canceled)
}

// maxEvents is how many events wait for a caller that is slow to take them: a
// call's events must not hold up the answers to others. The oldest are dropped.
const maxEvents = 256

// A waiter brings what happens to a call of a session to the goroutine of the
// one who made it.
type waiter struct {
	wake    chan struct{} // with room for one: a message or an event waits
	onEvent func(sdk.Event)

	mu     sync.Mutex // protects following fields
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

// wait returns the call's end, after its events.
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
