package eval

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Scope is what an expression can see. The evaluator only reads it.
type Scope struct {
	Run  RunInfo
	Vars value.Value // object of all variables by name

	// Step returns what is known of the step with this index; it is called
	// only for steps the expression refers to. nil: no step is visible.
	Step func(index int) StepResult

	Each    *EachItem // inside an instance of for_each
	Self    *Self     // in postcondition and compensate
	Failure *Failure  // in compensate

	// Memo caches decoded values between evaluations for one run. It may be
	// nil; a Memo serves one goroutine at a time.
	Memo *Memo

	// Allowance bounds what the expressions of one decision cost together.
	// nil: only the limits of each expression count.
	Allowance *metered.Allowance
}

// A Memo caches, for one run, the decoded form of values and of finished
// steps. A finished step's result never changes, so entries never go stale.
// The zero Memo is ready to use.
type Memo struct {
	owner   *Evaluator // whose values these are
	steps   map[int]keptStep
	results map[int]StepResult // of steps with instances
	locals  map[*Local]KeptLocal
}

type keptStep struct {
	value cty.Value
	load  value.Load // the cost of decoding it, for the budget of an evaluation
}

// RunInfo is run.* in expressions.
type RunInfo struct {
	ID        string // public run id
	Workflow  string
	Key       string // value of unique.key, or ""
	StartedAt time.Time
}

// An EachItem is each.key and each.value.
type EachItem struct {
	Key   string
	Value value.Value
}

// A Self is self.* in postcondition and compensate.
type Self struct {
	Input       value.Value
	Output      value.Value
	OutputKnown bool   // false: the output is not known (the outcome was not)
	Key         string // idempotency key of the forward call
	TimedOut    bool
}

// A Failure is failure.*: the first failure that turned the run. Step is ""
// where no step is to blame.
type Failure struct {
	Step    string
	Code    string
	Message string
}

// A StepResult is what expressions see of one step. For a step without
// for_each only One is set; with for_each Instances holds one entry a key.
type StepResult struct {
	Each      bool
	One       InstanceResult
	Instances []InstanceResult // ascending by key
	Final     bool             // the step's forward work has ended: the result may be cached
}

// An InstanceResult is the result of one instance of a step.
type InstanceResult struct {
	Key       string
	Status    string      // succeeded, skipped, caught, failed, cancelled, or a status of a step still open
	Output    value.Value // null unless succeeded, or caught with an output
	Attempts  int
	ErrorCode string // "" = no error
	ErrorText string
	ErrorData value.Value // what the agent sent with the failure; null = nothing
	StartedAt time.Time
	EndedAt   time.Time // zero = not yet
	TimedOut  bool
	Signal    string // that has ended a wait; "" = none
}
