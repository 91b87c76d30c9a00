package journal

import (
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A RunError means that this engine cannot work on one run, and goes on with the others.
// The run's journal or definition cannot be read, an agent that it is pinned to is
// missing, or deciding on it went wrong. The run's state in the store is unchanged.
type RunError struct {
	Run  int64  // internal id
	Name string // public id; "" = derived from the internal one
	Err  error
	Hint string // what to do about it; "" = nothing is known
}

// Error names the run, the cause and the remedy.
func (e *RunError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("run %s is quarantined: %v", e.PublicName(), e.Err)
	}
	return fmt.Sprintf("run %s is quarantined: %v (%s)", e.PublicName(), e.Err, e.Hint)
}

// PublicName returns the id of the run that people use.
func (e *RunError) PublicName() string {
	if e.Name != "" {
		return e.Name
	}
	return naming.RunName(status.RunID(e.Run))
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }
