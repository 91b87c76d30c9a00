// Package wait pauses, and asks a store again that does not answer.
package wait

import (
	"context"
	"time"
)

// For pauses for d. It returns the error of ctx if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake puts a hint into a channel of capacity one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
