package journal

import (
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A RunError says that this engine cannot work on one run. The engine continues with its
// other runs. The reason is one of these: the run's journal or definition cannot be read; an
// agent that the run needs is missing; or a decision on the run went wrong. The run's state
// in the store is unchanged.
type RunError struct {
	Run  int64  // internal id
	Name string // public id; "" = made from the internal id
	Err  error
	Hint string // what a person can do; "" = no hint is known
}

// Error names the run, the cause and what a person can do.
func (e *RunError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("run %s is quarantined: %v", e.PublicName(), e.Err)
	}
	return fmt.Sprintf("run %s is quarantined: %v (%s)", e.PublicName(), e.Err, e.Hint)
}

// PublicName returns the run's public id.
func (e *RunError) PublicName() string {
	if e.Name != "" {
		return e.Name
	}
	return naming.RunName(status.RunID(e.Run))
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }

// A SnapshotError says why an engine does not use the snapshot of a run. The run itself has no
// fault: the engine reads the whole journal instead.
type SnapshotError struct {
	Run  string // public id
	Next int32  // number of rows that the snapshot covers
	Err  error
}

// Error says which snapshot is wrong, and why.
func (e *SnapshotError) Error() string {
	return fmt.Sprintf("the snapshot of the first %d rows of run %s is not used: %v", e.Next, e.Run, e.Err)
}

// Unwrap returns the reason.
func (e *SnapshotError) Unwrap() error { return e.Err }
