package noun

import "github.com/saga-engine/engine/dsl/internal/eval"

// The lowest and the highest priority of a run or of a step. The priority decides together with the
// time that a run or step has waited. If two runs have waited for the same time, the run with the
// higher priority is claimed and admitted earlier. If two steps have waited for the same time, the
// step with the higher priority gets a slot of its agent earlier.
const (
	MinPriority = 0
	MaxPriority = 100
)

// PriorityOfRun is the value of Settings.Priority if the step has the priority of its run.
const PriorityOfRun = -1

// A Concurrency holds the concurrency block of a workflow or group. It limits how many runs with
// the same key may be open and admitted at the same time. If the block is in a group, it limits the
// child runs of the group: the runs of the workflow WORKFLOW.GROUP.
type Concurrency struct {
	Limit func(*eval.Scope) (int, error)    // largest number of admitted open runs, at least 1; never nil
	Key   func(*eval.Scope) (string, error) // each key has its own limit; nil = all runs of the workflow share one limit
	// true = a submission that would exceed the limit is refused, and a step whose group would
	// exceed the limit fails; false = the run waits in line
	Reject bool
}

// MaxConcurrency is the largest value that the argument `limit` of a concurrency block may have.
const MaxConcurrency = 1_000_000
