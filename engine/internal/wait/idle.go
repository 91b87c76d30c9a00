package wait

import (
	"context"
	"time"
)

// Idle waits until there may be work. It returns when the channel `hints` receives a value; then
// the result `hinted` is true. It also returns when the pause is over, unless the function `noWork`
// returns true: then the pause begins again. The function may be nil, which has the same effect as
// returning false. Idle returns the error of ctx if ctx ends first.
func Idle(ctx context.Context, pause time.Duration, hints <-chan struct{}, noWork func() bool) (hinted bool, err error) {
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			if noWork == nil || !noWork() {
				return false, nil
			}
		case <-hints:
			timer.Stop()
			return true, nil
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
}
