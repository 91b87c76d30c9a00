package sdk

import (
	"context"
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
