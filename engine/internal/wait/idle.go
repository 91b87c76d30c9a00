package wait

import (
	"context"
	"time"
)

// Idle waits until there may be work. If the channel `hints` receives a value, Idle returns with
// `hinted` = true. When the pause is over, Idle calls the function `noWork`. If the result is true,
// the pause begins again. If it is false, or if `noWork` is nil, Idle returns with `hinted` =
// false. If ctx ends first, Idle returns the error of ctx.
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
