package sdk

import (
	"context"
	"time"
)

// Run calls an action like Invoke, but the action's function runs in the goroutine of the
// caller. It is for a host that uses a goroutine for each call anyway. ctx must end when
// the time of Request.TimeLeft is over, or earlier.
//
// answer is called once with the reply, in this goroutine, unless the time is over (S28).
// Run returns when the function has returned, even if that is late. If the function ends
// its goroutine with runtime.Goexit, Run does not return. Then answer and
// InvokeOptions.Ended are still called.
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
