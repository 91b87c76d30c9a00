package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// A callSpec is one call with everything it needs, copied from its run.
type callSpec struct {
	run    machine.RunID
	name   string // public run id
	flow   *dsl.Workflow
	fence  int32
	spec   invoke.AgentSpec
	invoke machine.Invoke
	// sensitive are the sensitive strings of the run's variables and outputs.
	sensitive []string
	// refusals is how often in a row this node's call was not sent.
	refusals int
	// silence is how long the call may be silent (heartbeat_timeout); 0 = as
	// long as it runs.
	silence time.Duration
	// capacity is where its slot is reserved; nil = it needs none.
	capacity invoke.Capacity
}

// errand copies out of the run what the call needs.
func (sh *shard) callSpec(r *ownedRun, inv machine.Invoke) callSpec {
	return callSpec{run: r.id, name: r.state.Name(), flow: r.wf, fence: r.fence, spec: r.specs[inv.Agent], invoke: inv,
		sensitive: slices.Clip(r.sensitive), refusals: r.refusals[inv.Attempt.Node], silence: r.state.Silence(inv.Attempt), capacity: sh.s.capacity}
}

// step returns the step's name as agents and people see it.
func (e *callSpec) step() string {
	name := e.flow.Steps[e.invoke.Step].Name
	if e.invoke.Key == "" && e.flow.Steps[e.invoke.Step].ForEach == nil {
		return name
	}
	return fmt.Sprintf("%s[%q]", name, e.invoke.Key)
}

// An openCall is a call in flight. Three goroutines have it, one after the other: the
// one that prepares it, the Invoker's, and the shard of its run, which handles the answer.
type openCall struct {
	w *worker
	callSpec
	reservation reservation // the slot it holds
	sender      progressSender

	redact redactor // set before the call is sent
	sent   bool     // the outcome is in doubt from here on

	reply   sdk.Reply
	err     error
	arrived time.Time // store time when the answer reached this engine

	// Protected by worker.mu.
	phase    callPhase
	unwanted bool
	stop     chan struct{}      // of a call with a goroutine; closed once unwanted
	cancel   context.CancelFunc // of a call with a goroutine
	handle   invoke.Started     // of a call without
}

// callPhase says whether a call has left this process.
type callPhase uint8

const (
	callPreparing callPhase = iota
	callSent                // perhaps it was
	callRecalled            // it never is: the run has been told so
)

func (c *openCall) id() callID { return callID{c.run, c.invoke.Attempt} }

// unwantLocked notes that the answer is not wanted any more, and returns whom to
// tell; nil = none.
func (c *openCall) unwantLocked() invoke.Started {
	if !c.unwanted && c.stop != nil {
		close(c.stop)
	}
	c.unwanted = true
	return c.handle
}

// slow reports whether preparing the call may wait for something.
func (c *openCall) slow() bool {
	return len(c.invoke.Input.Secrets())+len(c.spec.Config.Secrets()) > 0
}

// begin prepares the call and sends it. The answer, if there is one, goes to
// answered; otherwise the call ends here.
func (c *openCall) begin() {
	var refused *delivery // why it was not sent
	err := guard.Do(func() error {
		var request sdk.Request
		if request, refused = c.prepare(); refused == nil && c.w.send(c) {
			c.send(request)
			return nil
		}
		c.sender.close()
		if refused == nil {
			c.finish() // the run knows
			return nil
		}
		c.report(refused)
		return nil
	})
	if err == nil {
		return
	}
	c.w.n.cfg.Logger.Error("call panicked", "run", c.name, "step", c.step(), "panic", c.redact.text(err.Error()))
	c.sender.close()
	if c.sent {
		c.report(c.answer(machine.AttemptUnknown{Attempt: c.invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"}))
		return
	}
	// A panic before the call proves that nothing was sent.
	c.report(c.notSent(c.w.n.cfg.Options.RetryHeld, maxRefusal, "preparing the call panicked"))
}

// prepare makes the request, or says why there is none.
func (c *openCall) prepare() (sdk.Request, *delivery) {
	n, o := c.w.n, c.w.n.cfg.Options
	input, err := c.input()
	if err != nil {
		return sdk.Request{}, c.notSent(o.RetryHeld, maxRefusal, err.Error())
	}
	now := n.clock.Read()
	left := c.invoke.CompleteBy.Sub(now.Store)
	switch {
	case left <= 0:
		return sdk.Request{}, c.notSent(o.MinScan, o.RetryHeld, whyTooLate)
	case !now.Leased:
		return sdk.Request{}, c.notSent(o.MinScan, o.RetryHeld, whyNoLease)
	}
	return sdk.Request{
		Action: c.invoke.Action, Purpose: c.invoke.Purpose, Input: input,
		IdempotencyKey: c.invoke.IdempotencyKey, ForwardKey: c.invoke.ForwardKey,
		CompleteBy: now.Local.Add(left).UTC(), Remaining: left,
		Run: c.name, Workflow: c.flow.Name, Step: c.step(), Attempt: c.invoke.Number, Fence: int64(c.fence),
		Checkpoint: c.invoke.Checkpoint,
	}, nil
}

const whyTooLate = "its complete-by had passed before it could be sent"

// send makes the call. Where a goroutine belongs to it, it waits for the answer.
func (c *openCall) send(request sdk.Request) {
	c.sent = true
	call := invoke.Call{
		Agent: c.spec, Run: c.run, Request: request,
		OnProgress: c.sender.progress, OnLate: c.late, Scrub: c.redact.text, Secrets: c.redact.secrets,
	}
	failpoint.HitPurpose("send.before", uint8(c.invoke.Purpose))
	w := c.w
	if w.async == nil || c.slow() {
		ctx, cancel := context.WithTimeout(context.Background(), request.Remaining)
		defer cancel()
		w.mu.Lock()
		if w.quit {
			cancel()
		}
		c.stop, c.cancel = make(chan struct{}), cancel
		if c.unwanted {
			close(c.stop)
		}
		call.Stop = c.stop
		w.mu.Unlock()
		reply, err := w.n.cfg.Invoker.Invoke(ctx, call)
		var deferred *invoke.Deferred
		if err != nil && ctx.Err() != nil && !errors.As(err, &deferred) {
			err = ctx.Err() // it does not matter which timer went off first: the agent's, its transport's or ours
		}
		c.answered(reply, err)
		return
	}
	handle := w.async.Start(w.ctx, call, c.answered)
	w.mu.Lock()
	c.handle = handle
	unwanted := c.unwanted && handle != nil
	w.mu.Unlock()
	if unwanted {
		handle.Stop()
	}
}

// late keeps an answer that came after complete-by.
func (c *openCall) late(reply sdk.Reply) {
	now := c.w.n.clock.Now()
	c.w.n.keepLate(c.run, c.step(), c.invoke.Attempt, c.event(reply, &c.redact, c.w.n.cfg.Options.MaxValue), now)
}

// largeReply is the size in bytes from which a reply is not checked by a shard,
// for whose other runs that would take too long.
const largeReply = 64 << 10

// answered takes what came of the call. It does not block.
func (c *openCall) answered(reply sdk.Reply, err error) {
	failpoint.HitPurpose("receive.before", uint8(c.invoke.Purpose))
	c.reply, c.err, c.arrived = reply, err, c.w.n.clock.Now()
	if len(reply.Output) < largeReply {
		if t := c.w.n.now(); t != nil && t.scheduler.shard(c.run).give(task{call: c}) {
			return
		}
	}
	go c.conclude()
}

// conclude delivers what the answer says.
func (c *openCall) conclude() {
	if d := c.concluded(); d != nil {
		c.report(d)
		return
	}
	c.finish()
}

// heard is conclude on the goroutine of the run's shard.
func (sh *shard) heard(ctx context.Context, c *openCall) {
	d := c.concluded()
	switch {
	case d == nil:
		c.finish()
	case c.sender.flush(): // what it said before comes first
		c.report(d)
	default:
		d.call, d.reservation = c, &c.reservation
		sh.accept(ctx, c.run, d)
	}
}

// concluded returns what to deliver; nil = nothing. After it no sign of life is
// taken any more.
func (c *openCall) concluded() (d *delivery) {
	c.sender.close()
	err := guard.Do(func() error {
		d = c.outcome()
		return nil
	})
	if err != nil {
		c.w.n.cfg.Logger.Error("call panicked", "run", c.name, "step", c.step(), "panic", c.redact.text(err.Error()))
		d = c.answer(machine.AttemptUnknown{Attempt: c.invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"})
	}
	return d
}

// outcome says what an answer means.
func (c *openCall) outcome() *delivery {
	o := c.w.n.cfg.Options
	var deferred *invoke.Deferred
	switch {
	case errors.As(c.err, &deferred):
		if deferred.Until.IsZero() { // it had a slot, so it need not wait for one
			return c.notSent(o.MinScan, o.RetryHeld, c.redact.text(deferred.Why))
		}
		pause := max(o.MinScan, time.Until(deferred.Until))
		return c.notSent(pause, pause, c.redact.text(deferred.Why))
	case errors.Is(c.err, context.DeadlineExceeded), errors.Is(c.err, context.Canceled):
		return nil // nothing is known and nothing may be concluded
	case c.err != nil:
		return c.answer(machine.AttemptUnknown{Attempt: c.invoke.Attempt, Code: sdk.CodeInternal, Message: c.redact.text(c.err.Error())})
	}
	return c.answer(c.event(c.reply, &c.redact, o.MaxValue))
}

// answer makes the delivery of what came of a call that was sent. Past its
// complete-by nothing is said, only counted and kept.
func (c *openCall) answer(event machine.Event) *delivery {
	d := c.delivery(event)
	if !d.arrived.Before(d.completeBy) {
		c.w.n.keepLate(c.run, c.step(), c.invoke.Attempt, event, d.arrived)
		return nil
	}
	return d
}

func (c *openCall) delivery(event machine.Event) *delivery {
	arrived := c.arrived
	if arrived.IsZero() {
		arrived = c.w.n.clock.Now()
	}
	return &delivery{event: event, arrived: arrived, attempt: c.invoke.Attempt, completeBy: c.invoke.CompleteBy}
}

// maxRefusal bounds the growing pause between attempts to prepare a call.
const maxRefusal = time.Minute

// notSent says that the call was not sent and should be tried again after
// pause, in store time. The pause doubles up to limit with every time in a row.
func (c *openCall) notSent(pause, limit time.Duration, why string) *delivery {
	limit = max(pause, limit)
	for range c.refusals {
		if pause = min(2*pause, limit); pause == limit {
			break
		}
	}
	return c.delivery(machine.AttemptDeferred{Attempt: c.invoke.Attempt, Until: c.w.n.clock.Now().Add(pause), Why: why})
}
