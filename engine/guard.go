package engine

import (
	"bytes"
	"fmt"
	"runtime/debug"
)

// A panicError is a panic that was stopped. Its text is for people, the stack
// for those who look for the fault.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guard runs f and turns a panic into an error, so that one run's misfortune
// is not every run's.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(bytes.TrimSpace(debug.Stack()))}
		}
	}()
	return f()
}
