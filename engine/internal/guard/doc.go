// Package guard turns panics into errors.
package guard

import (
	"bytes"
	"fmt"
	"runtime/debug"
)

// A Panic is the error that Do returns for a panic. Its text is for users, and its stack is
// for developers.
type Panic struct {
	Value any
	Stack string
}

// Error returns the text of the panic, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Do calls f and returns the error of f. If f panics, Do returns a *Panic, so that a panic in
// the work on one run does not affect other runs.
func Do(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: string(bytes.TrimSpace(debug.Stack()))}
		}
	}()
	return f()
}
