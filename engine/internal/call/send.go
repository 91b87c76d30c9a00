package call

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// slow reports whether the preparation of the call may block, because it must resolve secrets.
func (c *Call) slow() bool {
	return len(c.Invoke.Input.Secrets())+len(c.Agent.Config.Secrets()) > 0
}

// begin prepares the call and sends it. The method `answered` later receives the Invoker's answer.
// If the call cannot be sent, begin reports this to the run, and the call ends.
func (c *Call) begin() {
	var refused *Answer // says that the call was not sent, and why; nil = it can be sent
	err := guard.Do(func() error {
		var request sdk.Request
		if request, refused = c.prepare(); refused == nil && c.w.send(c) {
			c.send(request)
			return nil
		}
		c.sender.close()
		if refused == nil {
			c.Finish() // Recall was called: the run already knows that the call is not sent
			return nil
		}
		c.Report(*refused)
		return nil
	})
	if err == nil {
		return
	}
	c.w.cfg.Logger.Error("call panicked", "run", c.Name, "step", c.Step(), "panic", c.redact.text(err.Error()))
	c.sender.close()
	if c.sent {
		if a, ok := c.answer(machine.AttemptUnknown{Attempt: c.Invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"}); ok {
			c.Report(a)
		} else {
			c.Finish()
		}
		return
	}
	// The panic happened before the call was sent.
	c.Report(*c.notSent(c.w.cfg.RetryRefused, maxRefusal, "preparing the call panicked"))
}

// prepare returns the request of the call. If the call cannot be sent, prepare returns an Answer
// that says why; otherwise the Answer is nil.
func (c *Call) prepare() (sdk.Request, *Answer) {
	o := &c.w.cfg
	input, err := c.input()
	if err != nil {
		return sdk.Request{}, c.notSent(o.RetryRefused, maxRefusal, err.Error())
	}
	now := o.Clock.Read()
	left := c.Invoke.CompleteBy.Sub(now.Store)
	switch {
	case left <= 0:
		return sdk.Request{}, c.notSent(o.MinScan, o.RetryRefused, WhyTooLate)
	case !now.Leased:
		return sdk.Request{}, c.notSent(o.MinScan, o.RetryRefused, WhyNoLease)
	case !c.StartBy.IsZero() && now.Local.After(c.StartBy):
		return sdk.Request{}, c.notSent(o.MinScan, o.RetryRefused, invoke.WhyTooSlow)
	}
	purpose, key, forwardKey := c.asAgentSees()
	return sdk.Request{
		Action: c.Invoke.Action, Purpose: purpose, Input: input, IdempotencyKey: key, ForwardKey: forwardKey,
		CompleteBy: now.Local.Add(left).UTC(), Remaining: left,
		Run: c.Name, Workflow: c.Flow.Name, Step: c.Step(), Attempt: c.Invoke.Number, Fence: int64(c.Fence),
		Checkpoint: c.Invoke.Checkpoint,
	}, nil
}

// input returns the call's input with the secrets filled in. It also collects, for the redactor,
// all sensitive strings that the agent may know. If a secret of the input cannot be resolved, input
// returns an error. It ignores secrets of the agent's configuration that are missing: without such
// a secret the agent does not start and gets no call.
func (c *Call) input() (json.RawMessage, error) {
	cfg, config := &c.w.cfg, c.Agent.Config
	secrets := slices.Concat(c.Sensitive, c.Invoke.Input.SensitiveStrings(), config.SensitiveStrings())
	data, err := secret.Resolve(c.Invoke.Input, func(ref string) (string, error) {
		s, err := cfg.Secrets(ref)
		secrets = append(secrets, s)
		return s, err
	})
	for _, s := range config.Secrets() {
		for _, part := range s.Parts {
			if part.Ref == "" {
				continue
			}
			if known, err := cfg.Secrets(part.Ref); err == nil {
				secrets = append(secrets, known)
			}
		}
	}
	c.redact.secrets = secrets
	if err != nil {
		return nil, errors.New(c.redact.text(err.Error()))
	}
	return data, nil
}

// Reasons, for people, why a call was not sent.
const (
	WhyTooLate = "its complete-by had passed before it could be sent"
	WhyNoLease = "the engine's lease may have expired"
)

// send passes the request to the Invoker. If the call has a goroutine of its own, send waits for
// the answer. Otherwise it returns at once.
func (c *Call) send(request sdk.Request) {
	c.sent = true
	call := invoke.Call{
		Agent: c.Agent, Run: c.Run, Request: request,
		OnProgress: c.sender.progress, OnLate: c.late, StartBy: c.StartBy, Scrub: c.redact.text, Secrets: c.redact.secrets,
	}
	failpoint.HitPurpose("send.before", uint8(c.Invoke.Purpose))
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
		reply, err := w.cfg.Invoker.Invoke(ctx, call)
		var deferred *invoke.Deferred
		if err != nil && ctx.Err() != nil && !errors.As(err, &deferred) {
			// The call may have ended because its time was over. The agent, the
			// transport and ctx each have a timer for this. Report the error of ctx in
			// all these cases.
			err = ctx.Err()
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

// late receives a late reply from the Invoker, and keeps it as evidence.
func (c *Call) late(reply sdk.Reply) {
	now := c.w.cfg.Clock.Now()
	c.w.KeepLate(c.Run, c.Step(), c.Invoke.Attempt, c.event(reply, &c.redact, c.w.cfg.MaxValue), now)
}

// largeReply is the size, in bytes, of a large reply. A new goroutine checks a large reply. If the
// shard checked it, the shard's other runs would wait too long.
const largeReply = 64 << 10

// answered receives the Invoker's answer and passes the call to the shard of the run. If that is
// not possible, or if the reply is large (largeReply), a new goroutine handles the answer.
// answered does not block.
func (c *Call) answered(reply sdk.Reply, err error) {
	failpoint.HitPurpose("receive.before", uint8(c.Invoke.Purpose))
	c.reply, c.err, c.arrived = reply, err, c.w.cfg.Clock.Now()
	if len(reply.Output) < largeReply {
		if m := c.w.cfg.Present(); m != nil && m.Conclude(c) {
			return
		}
	}
	go c.Conclude()
}

// Conclude turns the Invoker's answer into an event, delivers the event to the run, and ends the
// call. Any goroutine may call Conclude.
func (c *Call) Conclude() {
	if a, ok := c.Concluded(); ok {
		c.Report(a)
		return
	}
	c.Finish()
}

// Concluded turns the Invoker's answer into the Answer that must be delivered to the run. ok is
// false if there is nothing to deliver. After Concluded was called, the call ignores signs of life.
func (c *Call) Concluded() (a Answer, ok bool) {
	c.sender.close()
	err := guard.Do(func() error {
		a, ok = c.outcome()
		return nil
	})
	if err != nil {
		c.w.cfg.Logger.Error("call panicked", "run", c.Name, "step", c.Step(), "panic", c.redact.text(err.Error()))
		a, ok = c.answer(machine.AttemptUnknown{Attempt: c.Invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"})
	}
	return a, ok
}

// outcome does the work of Concluded. It may panic.
func (c *Call) outcome() (a Answer, ok bool) {
	o := &c.w.cfg
	var deferred *invoke.Deferred
	switch {
	case errors.As(c.err, &deferred):
		if deferred.Until.IsZero() { // the Invoker knows no time for the next try: use the usual pauses
			return *c.notSent(o.MinScan, o.RetryRefused, c.redact.text(deferred.Why)), true
		}
		pause := max(o.MinScan, time.Until(deferred.Until))
		return *c.notSent(pause, pause, c.redact.text(deferred.Why)), true
	case errors.Is(c.err, context.DeadlineExceeded), errors.Is(c.err, context.Canceled):
		// The outcome is unknown. For a call of an agent, the Supervisor later reports that
		// complete-by has passed. A call for a child run is sent again by the next owner of the
		// run.
		return Answer{}, false
	case c.err != nil:
		return c.answer(machine.AttemptUnknown{Attempt: c.Invoke.Attempt, Code: sdk.CodeInternal, Message: c.redact.text(c.err.Error())})
	}
	return c.answer(withKept(c.event(c.reply, &c.redact, o.MaxValue), c.kept))
}

// answer returns the Answer that delivers an event of a call that was sent. If the answer arrived
// after complete-by, it is only kept as evidence, and ok is false.
func (c *Call) answer(event machine.Event) (a Answer, ok bool) {
	a = c.about(event)
	if !a.Arrived.Before(a.CompleteBy) {
		c.w.KeepLate(c.Run, c.Step(), c.Invoke.Attempt, event, a.Arrived)
		return Answer{}, false
	}
	return a, true
}

// maxRefusal is the longest pause between two tries to prepare a call, unless Options.RetryRefused
// is longer.
const maxRefusal = time.Minute

// notSent returns an Answer which says that the call was not sent. The parameter `why` is the
// reason. The Answer also says how long the run waits before it tries the call again. The first
// pause is as long as the parameter `pause`. If the call could not be sent several times in a row,
// each pause is twice as long as the pause before, up to the parameter `limit`.
func (c *Call) notSent(pause, limit time.Duration, why string) *Answer {
	limit = max(pause, limit)
	for range c.Refusals {
		if pause = min(2*pause, limit); pause == limit {
			break
		}
	}
	a := c.about(machine.AttemptDeferred{Attempt: c.Invoke.Attempt, Until: c.w.cfg.Clock.Now().Add(pause), Why: why})
	return &a
}
