package sdk

import (
	"context"
	"time"
)

// Run calls an action as Invoke does, but runs the action's function in the goroutine of the
// caller. Run is for a host that uses a goroutine for each call anyway. The context that the caller
// passes must end after the duration that Request.TimeLeft returns.
//
// Run calls the function `answer` once with the reply, in this goroutine. If the time of the call
// is over, Run does not call `answer` (S28). Run returns when the action's function has returned,
// even after complete-by. If the action's function ends its goroutine with runtime.Goexit, Run does
// not return, but it still calls `answer` and InvokeOptions.Ended.
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
