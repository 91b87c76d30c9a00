package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/saga-engine/engine/sdk/internal/fastjson"
	"github.com/saga-engine/engine/sdk/internal/names"
)

// InvokeOptions holds options and functions that a host passes to Invoke in addition to a
// request. The zero value is valid.
type InvokeOptions struct {
	Logger  *slog.Logger // logger for the action; nil = slog.Default()
	OnEvent func(Event)  // called for each event, one at a time, before Invoke returns; nil = not called
	// Ended is called after the action's function has returned, which may be later than the return
	// of Invoke. Ended is also called if the function is not called at all. nil = not called.
	Ended func()
}

// Invoke calls an action in this process. The result `ok` is false if the time of the call is
// over. Then the host must send nothing to the engine, not even an error (S28), because another
// attempt of the step may already be running.
//
// A reply has OutcomeFailed only if nothing was done. There are two cases. In the first case, the
// request is invalid or the agent refuses its configuration, so Invoke has not called the action;
// the code is CodeInvalid. In the second case, the action has returned a *Failure, with which its
// author guarantees that nothing was done. If the action does not declare the error code of the
// *Failure, Invoke only logs a warning. But if the code is no valid name, or if only the SDK and
// the engine may use it, the outcome is unknown.
//
// Invoke returns when the action has answered or the time is over. If ctx ends, Invoke
// cancels the context of the action but still waits for the answer.
func (a *Agent) Invoke(ctx context.Context, req Request, o InvokeOptions) (reply Reply, ok bool) {
	start := time.Now()
	left := req.TimeLeft(start)
	if left <= 0 {
		o.ended()
		return Reply{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	c := newCall(req, start.Add(left), o)
	act, in, err := a.prepare(ctx, req)
	if err != nil {
		o.ended()
		return refusal(err, req.Input, a.configText()), true
	}
	c.config = a.configText()
	c.emit = &emitter{schema: &act.schema, until: c.CompleteBy, out: o.OnEvent}
	defer c.emit.close()

	replies := make(chan Reply, 1)
	go func() {
		defer o.ended()
		act.call(ctx, c, in, func(reply Reply) { replies <- reply })
	}()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case reply = <-replies:
	case <-timer.C:
		return Reply{}, false
	}
	if req.over(start, left, time.Now()) {
		return Reply{}, false
	}
	return reply, true
}

func (o InvokeOptions) ended() {
	if o.Ended != nil {
		o.Ended()
	}
}

func (o InvokeOptions) logger(req Request) *slog.Logger {
	l := o.Logger
	if l == nil {
		l = slog.Default()
	}
	return slog.New(&callLog{base: l.Handler(), run: req.Run, step: req.Step, try: req.Attempt})
}

// prepare checks the request, configures the agent if necessary, and decodes the input. It
// returns the action and the input struct. If it returns an error, the action must not be
// called.
func (a *Agent) prepare(ctx context.Context, req Request) (*action, reflect.Value, error) {
	act, ok := a.actions[req.Action]
	if !ok {
		return nil, reflect.Value{}, fmt.Errorf("agent %s has no action %q", a.name, req.Action)
	}
	if act.in == nil || act.out == nil || len(act.errs) > 0 {
		return nil, reflect.Value{}, fmt.Errorf("action %q: %w", req.Action, errors.Join(act.errs...))
	}
	switch req.Purpose {
	case PurposeDo, PurposeUndo:
	case PurposeLookup:
		if act.lookup == nil {
			return nil, reflect.Value{}, fmt.Errorf("action %q has no lookup", req.Action)
		}
	default:
		return nil, reflect.Value{}, fmt.Errorf("purpose %d is not known", req.Purpose)
	}
	if err := a.ready(ctx); err != nil {
		return nil, reflect.Value{}, err
	}
	in, err := fastjson.Decode(act.in, req.Input)
	if err != nil {
		return nil, reflect.Value{}, fmt.Errorf("input: %w", err)
	}
	return act, in, nil
}

// call runs the author's function. It makes one reply from the function's result, error or panic,
// and calls the function `answer` with this reply.
func (act *action) call(ctx context.Context, c *Call, in reflect.Value, answer func(Reply)) {
	var reply Reply
	returned := false
	defer func() {
		if !returned {
			// The function has ended with a panic or runtime.Goexit. After Goexit, recover
			// returns nil.
			p := recover()
			c.Logger.Error("action panicked", "panic", fmt.Sprint(p))
			c.Logger.Debug("stack of the panic", "stack", string(debug.Stack()))
			reply = Reply{Outcome: OutcomeUnknown, Code: CodeInternal, Message: c.Excerpt(fmt.Sprintf("panic: %v", p), maxMessage)}
		}
		answer(reply)
	}()
	if c.Purpose == PurposeLookup {
		reply = act.ask(ctx, c, in)
	} else {
		out, err := act.run(ctx, c, in)
		reply = act.reply(ctx, c, out, err)
	}
	returned = true
}

// ask runs the author's lookup. If the lookup returns an error, the outcome of the earlier
// call stays unknown, even if the error is a *Failure.
func (act *action) ask(ctx context.Context, c *Call, in reflect.Value) Reply {
	out, done, err := act.lookup.run(ctx, c, in)
	if err == nil && !done {
		return Reply{Outcome: OutcomeNotDone}
	}
	reply := act.reply(ctx, c, out, err)
	if reply.Outcome == OutcomeFailed {
		reply = Reply{Outcome: OutcomeUnknown, Code: reply.Code, Message: reply.Message, RetryAfter: reply.RetryAfter}
	}
	return reply
}

func (act *action) reply(ctx context.Context, c *Call, out reflect.Value, err error) Reply {
	if err == nil {
		raw, err := fastjson.Encode(act.out, out)
		if err != nil {
			c.Logger.Error("output does not fit the schema", "error", err)
			return Reply{Outcome: OutcomeUnknown, Code: CodeBadReply, Message: c.Excerpt("output: "+err.Error(), maxMessage)}
		}
		return Reply{Outcome: OutcomeResult, Output: raw}
	}
	message := c.Excerpt(err.Error(), maxMessage)
	failure, unknown := classify(err)
	switch {
	case failure != nil && (!names.Valid(failure.Code) || names.Reserved(failure.Code)):
		c.Logger.Warn("failure without a code of its own", "code", failure.Code)
		code := failure.Code
		if !ValidCode(code) {
			code = CodeInternal
		}
		return Reply{Outcome: OutcomeUnknown, Code: code, Message: message, RetryAfter: max(failure.RetryAfter, 0)}
	case failure != nil:
		if !isStandard(failure.Code) && !act.declares(failure.Code) {
			c.Logger.Warn("failure with a code that the action does not declare", "code", failure.Code)
		}
		return Reply{
			Outcome: OutcomeFailed, Code: failure.Code, Message: message, Output: failure.document(c),
			Permanent: failure.Permanent, RetryAfter: max(failure.RetryAfter, 0),
		}
	}
	reply := Reply{Outcome: OutcomeUnknown, Code: CodeInternal, Message: message}
	if unknown != nil {
		reply.RetryAfter = unknown.retryAfter()
	}
	switch {
	case unknown != nil && ValidCode(unknown.code):
		reply.Code = unknown.code
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		reply.Code = CodeAborted
	}
	return reply
}

// over reports whether the time for an answer has passed. The call began at the time `start` and
// may take as long as the duration `left`. The method also compares the wall clock with
// complete-by, because the timers of this process do not run while the machine sleeps.
func (r *Request) over(start time.Time, left time.Duration, now time.Time) bool {
	return now.Sub(start) >= left || !now.Round(0).Before(r.CompleteBy)
}

func newCall(req Request, until time.Time, o InvokeOptions) *Call {
	return &Call{
		IdempotencyKey: req.IdempotencyKey, ForwardKey: req.ForwardKey, CompleteBy: until,
		Purpose: req.Purpose, Run: req.Run, Workflow: req.Workflow, Step: req.Step, Attempt: req.Attempt,
		Fence: req.Fence, last: req.Checkpoint, input: req.Input, Logger: o.logger(req),
	}
}

// refusal returns the reply to a call for which the action was not called: a definite failure with
// CodeInvalid.
func refusal(err error, documents ...json.RawMessage) Reply {
	return Reply{Outcome: OutcomeFailed, Code: CodeInvalid, Message: Excerpt(err.Error(), maxMessage, documents...), Permanent: true}
}
