package sdk

import (
	"context"
	"encoding/json"
	"time"
)

// Run is Invoke for a host that gives every call a goroutine anyway: the
// action's function runs in the caller's. ctx must end at the latest when the
// time is over, as Request.TimeLeft says.
//
// answer is called with the reply, in this goroutine and once, unless the time
// is over by then (S28). Run returns when the function has, however late that
// is, and does not return where the function ends its goroutine; answer and
// InvokeOptions.Ended are called all the same.
func (a *Agent) Run(ctx context.Context, req Request, o InvokeOptions, answer func(Reply)) {
	defer o.ended()
	start := time.Now()
	left := req.TimeLeft(start)
	if left <= 0 {
		return
	}
	c := newCall(req, start.Add(left), o)
	act, in, err := a.prepare(ctx, req)
	if err != nil {
		answer(refusal(err, req.Input, a.configText()))
		return
	}
	c.config = a.configText()
	c.emit = &emitter{schema: &act.schema, until: c.CompleteBy, out: o.OnEvent}
	act.call(ctx, c, in, func(reply Reply) {
		c.emit.close()
		if !req.over(start, left, time.Now()) {
			answer(reply)
		}
	})
}

// over reports whether a call that was begun at start may not be answered any
// more. The wall clock is asked too: a machine that slept has passed complete-by
// without its timers noticing.
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

// refusal is the reply to a call that makes no sense.
func refusal(err error, documents ...json.RawMessage) Reply {
	return Reply{Outcome: OutcomeFailed, Code: CodeInvalid, Message: Excerpt(err.Error(), maxMessage, documents...), Permanent: true}
}
