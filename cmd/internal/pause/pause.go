// Package pause waits for a time. Package engine/internal/wait does the same for packages below
// engine, which alone may import it.
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
