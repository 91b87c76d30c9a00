package eval

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Scope holds the values to which an expression can refer. An evaluation changes only the data to
// which the fields Memo, Allowance and Event point. In addition, it caches the decoded form of Vars
// inside of the Value in the field Vars.
type Scope struct {
	Run  RunInfo
	Vars value.Value // object of all variables by name

	// Step returns the result of the step with this index. An evaluation calls it only for
	// steps to which the expression refers. nil = the expression cannot refer to steps.
	Step func(index int) StepResult

	Each    *EachItem // values of each.*; nil = not in an instance of a for_each step
	Self    *Self     // values of self.*; nil = the expression cannot use self.*
	Failure *Failure  // values of failure.*; nil = the expression cannot use failure.*
	// Values of event.*; nil = the expression is not in an on_event or reset_on block. Only one
	// goroutine at a time may use an Event.
	Event *Event

	// Memo caches decoded values between the evaluations of one run; nil = no
	// cache. Only one goroutine at a time may use a Memo.
	Memo *Memo

	// Allowance limits the total cost of all expressions of one decision.
	// nil = only the limits of each single expression apply.
	Allowance *metered.Allowance

	// true = this Scope is used while StepShape.Given evaluates the input of a step. Without this
	// field, an input that uses self.input would evaluate itself without end.
	inGiven bool
}

// A Memo caches, for one run, decoded values and the results of finished steps.
// The result of a finished step never changes, so an entry is never outdated.
// The zero Memo is ready to use.
type Memo struct {
	owner   *Evaluator           // evaluator that has made the entries; nil = no entries yet
	steps   map[int]keptStep     // values of finished steps, by index of the step
	results map[int]StepResult   // results of finished steps with for_each, by index of the step
	locals  map[*Local]KeptLocal // values of locals that refer to finished steps only
}

type keptStep struct {
	value cty.Value
	load  value.Load // size of the encoded value; the cost of each evaluation that uses the value includes this size
}

// RunInfo holds the values of run.* in expressions.
type RunInfo struct {
	ID        string // id of the run in the form for people, such as r-6xlt…
	Workflow  string // name of the workflow
	Key       string // unique key of the run; "" = the run has none
	StartedAt time.Time
	// Status is the state that a notify block announces, such as parked; "" = the expression is not
	// in a notify block.
	Status string
	// Trigger says what started the run. If a schedule started the run, cron.TickOf reads
	// run.tick from Trigger. For every other run, run.tick is null.
	Trigger string
}

// An EachItem holds the values of each.key and each.value.
type EachItem struct {
	Key   string
	Value value.Value
}

// A Self holds the values of self.* in fail_when, postcondition, repeat and compensate. In the
// output of catch, only the fields for self.error are set. In the input of a declared action, Input
// holds the values of args.*, and Key is set. In the result and fail_when of a declared action,
// only Output and OutputKnown are set. In any other expression, and only if the step has a repeat
// block, only Previous and Collected are set.
type Self struct {
	Input value.Value
	// Arguments that the step gave to a declared action, if the run has stored them; null = the
	// function StepShape.Given evaluates them again.
	Given       value.Value
	Output      value.Value
	OutputKnown bool   // false = the output is not known, because the outcome was unknown
	Key         string // idempotency key of the step's call, not of the undo
	TimedOut    bool
	Signal      string             // name of the signal that ended the wait; "" = no signal ended it
	Previous    value.Value        // output of the previous iteration; null = this is the first iteration
	Collected   func() value.Value // returns the list of values that the loop has collected; nil = the loop collects none
	ErrorCode   string             // self.error.code; "" = the expression is not in catch.output
	ErrorText   string             // self.error.message
	ErrorData   value.Value        // self.error.data
}

// A Failure holds the values of failure.*. They describe the failure that made the run turn back.
type Failure struct {
	Step    string // name of the step that failed; "" = no step caused the failure
	Code    string // error code of the failure
	Message string
}

// An Event holds the values of event.*. They describe the sent event that may start a run or reset
// a goal.
type Event struct {
	ID   string
	Type string
	At   time.Time // when the event was sent
	Data value.Value

	// The first evaluation stores two results in these fields for the next evaluations, because one
	// event can start many runs: the size of Data (load), and the value of event.* (kept).
	load value.Load
	kept cty.Value
}

// A StepResult holds the values of one step to which expressions can refer.
type StepResult struct {
	Each      bool             // true = the step has for_each
	One       InstanceResult   // result of a step without for_each
	Instances []InstanceResult // results of the instances of a step with for_each, sorted by key
	Final     bool             // true = the step makes no more attempts, so the result may be cached
}

// An InstanceResult is the result of one instance of a step.
type InstanceResult struct {
	Key       string      // key of the instance; "" = the step has no for_each
	Status    string      // succeeded, skipped, caught, failed, cancelled, or the state before the end
	Output    value.Value // output of the instance; null = no output
	Attempts  int         // number of attempts so far
	ErrorCode string      // code of the last error; "" = no error
	ErrorText string
	ErrorData value.Value // error.data of the last error; null = no data
	StartedAt time.Time   // zero = not started
	EndedAt   time.Time   // zero = not ended
	TimedOut  bool
	Signal    string      // name of the signal that ended the wait; "" = no signal ended it
	Collected value.Value // list of the values that a loop has collected; null = the loop collects none
}
