// Package pause waits for a time. It does the same as package engine/internal/wait, which only
// packages below engine may import.
//
// In: a context and a duration. Out: nil, or the error of the context if it ends first.
package pause

import (
	"context"
	"time"
)

// For waits for the time d. It returns the error of ctx if ctx ends first. If d is zero or less,
// it returns at once.
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
