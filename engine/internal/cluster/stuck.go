package cluster

import (
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A stuckError says that a shard is busy with one task for too long. All its other runs wait.
type stuckError struct {
	run machine.RunID
	age time.Duration
}

// Error says which run keeps its shard busy.
func (e *stuckError) Error() string {
	what := "one task"
	if e.run != 0 {
		what = "run " + naming.RunName(e.run)
	}
	return fmt.Sprintf("%s has kept its shard busy for %s: the lease is not renewed, so that other engines can go on with the runs of this one", what, e.age.Round(time.Millisecond))
}

// stuck returns a *stuckError if a shard has been busy with one task for longer
// than a lease. Deadlines, verbs and answers of its runs wait meanwhile. If the engine
// renewed its lease all the same, no other engine could take these runs over.
func (t *Membership) stuck() error {
	if age, run := t.Runs.Longest(); age > t.n.cfg.Options.Lease {
		return &stuckError{run: run, age: age}
	}
	return nil
}
