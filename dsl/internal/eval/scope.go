package eval

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Scope holds everything that an expression can refer to. An evaluation changes only its Memo
// and its Allowance.
type Scope struct {
	Run  RunInfo
	Vars value.Value // object of all variables by name

	// Step returns the result of the step with this index. It is called only for
	// steps that the expression refers to. nil = the expression cannot refer to steps.
	Step func(index int) StepResult

	Each    *EachItem // each.* in an instance of a for_each step; otherwise nil
	Self    *Self     // self.* in postcondition and compensate; otherwise nil
	Failure *Failure  // failure.* in compensate; otherwise nil

	// Memo caches decoded values between the evaluations of one run; nil = no
	// cache. Only one goroutine at a time may use a Memo.
	Memo *Memo

	// Allowance limits the cost of all expressions of one decision together.
	// nil = only the limits of each single expression apply.
	Allowance *metered.Allowance
}

// A Memo caches, for one run, decoded values and the results of finished steps.
// The result of a finished step never changes, so an entry is never outdated.
// The zero Memo is ready to use.
type Memo struct {
	owner   *Evaluator // evaluator that has made the entries
	steps   map[int]keptStep
	results map[int]StepResult // results of steps with instances, by index of the step
	locals  map[*Local]KeptLocal
}

type keptStep struct {
	value cty.Value
	load  value.Load // size of the value; each evaluation that uses it is charged for decoding it
}

// RunInfo holds the values of run.* in expressions.
type RunInfo struct {
	ID        string // id of the run in the form that people see, such as r-6xlt…
	Workflow  string
	Key       string // value of unique.key, or ""
	StartedAt time.Time
}

// An EachItem holds the values of each.key and each.value.
type EachItem struct {
	Key   string
	Value value.Value
}

// A Self holds the values of self.* in postcondition and compensate.
type Self struct {
	Input       value.Value
	Output      value.Value
	OutputKnown bool   // false = the output is not known, because the outcome was unknown
	Key         string // idempotency key of the forward call
	TimedOut    bool
}

// A Failure holds the values of failure.*: the failure because of which the run
// is undone. Step is "" if no step caused the failure.
type Failure struct {
	Step    string
	Code    string
	Message string
}

// A StepResult holds the values of one step that expressions can refer to. For a
// step without for_each only One is set. For a step with for_each, Instances holds
// one entry for each key.
type StepResult struct {
	Each      bool
	One       InstanceResult
	Instances []InstanceResult // sorted by key
	Final     bool             // the step makes no more attempts, so the result may be cached
}

// An InstanceResult is the result of one instance of a step.
type InstanceResult struct {
	Key       string
	Status    string      // succeeded, skipped, caught, failed, cancelled, or a state of a step that has not ended
	Output    value.Value // null, except if the step succeeded, or was caught with an output
	Attempts  int
	ErrorCode string // "" = no error
	ErrorText string
	ErrorData value.Value // what the agent sent with the failure; null = nothing
	StartedAt time.Time
	EndedAt   time.Time // zero = not yet
	TimedOut  bool
	Signal    string // that has ended a wait; "" = none
}
