package wait

import (
	"context"
	"time"
)

// Idle waits until there may be work: until the pause is over and quiet returns false, or until hints
// receives a value. While quiet returns true, it begins the pause again. hinted reports that there was
// a hint. The function quiet may be nil; then it counts as false. Idle returns the error of ctx if ctx
// ends first.
func Idle(ctx context.Context, pause time.Duration, hints <-chan struct{}, quiet func() bool) (hinted bool, err error) {
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			if quiet == nil || !quiet() {
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
