// Package wait has functions that pause, and that repeat a read of a store until the store
// answers.
package wait

import (
	"context"
	"time"
)

// For waits for the time d. It returns the error of ctx if ctx ends first.
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

// Wake sends a value to a channel of capacity 1. It does nothing if the channel already
// holds a value.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
