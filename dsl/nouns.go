package dsl

import (
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// The types of a linked definition.
type (
	// A Workflow is one workflow of a linked definition.
	Workflow = noun.Workflow
	// A Variable is one declared variable of a workflow or of its module.
	Variable = noun.Variable
	// An Agent is one agent block, or an agent without a block, with the version that was chosen
	// for its plugin.
	Agent = noun.Agent
	// A Breaker holds the settings of an agent's circuit breaker.
	Breaker = noun.Breaker
	// An Output is one output of a workflow.
	Output = noun.Output
	// A Step is one step of a workflow. It calls an action, starts a child run, computes a value,
	// or waits.
	Step = noun.Step
	// An Action is an action of an agent that a step or an undo calls.
	Action = noun.Action
	// An Undo says how the effect of a step is undone.
	Undo = noun.Undo
	// A Condition is a precondition, a postcondition, or the condition of a fail_when block.
	Condition = noun.Condition
	// A Wait holds the wait block of a step: for which signals the step waits.
	Wait = noun.Wait
	// A Refusal is a fail_when block. If its condition is true for a result, the result counts as a
	// definite failure.
	Refusal = noun.Refusal
	// A Repeat is the loop of a step: when it ends, and what happens after each iteration.
	Repeat = noun.Repeat
	// A Catch says which failures of a step do not stop the run.
	Catch = noun.Catch
	// Settings are the limits of one step, with all defaults filled in.
	Settings = noun.Settings
	// Retry says how often a step or an undo is tried again, and after which pauses.
	Retry = noun.Retry
	// A Limit is a deadline: a time, or a duration after the start of the run or step.
	Limit = noun.Limit
	// An Each is the evaluated for_each of a step: keys and values of its instances.
	Each = noun.Each
	// An Assignment gives a value to a variable.
	Assignment = noun.Assignment
	// An AgentBinary describes the binary that was chosen for an agent.
	AgentBinary = noun.AgentBinary
)

// NoCall is the value of Step.Do in steps that call no agent.
var NoCall = noun.NoCall

// A Mode says what happens after a failure: the engine undoes the run at once, or the run
// waits for a person.
type Mode = noun.Mode

// The values of Mode. The zero Mode is invalid.
const (
	ModeAutomatic = noun.ModeAutomatic
	ModeManual    = noun.ModeManual
)

// The values of Step.OnRerun. They say how a new attempt of a step treats the earlier attempts
// (S81, S83). RerunDefault means that each attempt repeats the call with the same idempotency key.
const (
	RerunDefault   = noun.RerunDefault
	RerunContinue  = noun.RerunContinue
	RerunUndoFirst = noun.RerunUndoFirst
)

// Unbounded is the value of Retry.MaxAttempts if the number of attempts has no limit.
const Unbounded = noun.Unbounded

// The values of Retry.Strategy. They say how the pause between attempts grows. The value 0 is
// invalid.
const (
	Exponential = noun.Exponential
	Linear      = noun.Linear
	Constant    = noun.Constant
)

// Exhausted says what happens after the last allowed attempt of a step has failed (S41).
type Exhausted = noun.Exhausted

// The values of Exhausted. ExhaustedMode means that Workflow.CompensationMode says what happens.
const (
	ExhaustedMode       = noun.ExhaustedMode
	ExhaustedCompensate = noun.ExhaustedCompensate
	ExhaustedPark       = noun.ExhaustedPark
	ExhaustedCoolDown   = noun.ExhaustedCoolDown
)

// The types of the values that an expression can refer to.
type (
	// A Scope holds everything that an expression can refer to.
	Scope = eval.Scope
	// A Memo caches decoded values of one run, so that later evaluations need not decode them.
	Memo = eval.Memo
	// RunInfo holds the values of run.* in expressions.
	RunInfo = eval.RunInfo
	// An EachItem holds the values of each.key and each.value.
	EachItem = eval.EachItem
	// A Self holds the values of self.* in expressions.
	Self = eval.Self
	// A Failure holds the values of failure.*. They describe the failure that made the run turn
	// back.
	Failure = eval.Failure
	// A StepResult holds the values of step.NAME.* of one step in expressions.
	StepResult = eval.StepResult
	// An InstanceResult is the result of one instance of a step.
	InstanceResult = eval.InstanceResult
)

// A Value is an immutable JSON document. In addition, it says which parts are sensitive, and
// which strings are made from secrets. The zero Value is null.
type Value = value.Value

// A Secret describes a string in a Value. The string contains secrets. The Secret lists the parts
// of the string.
type Secret = value.Secret

// A SecretPart is a fixed text, or a reference to a secret such as "env:X" or "file:X".
type SecretPart = value.SecretPart

// NewValue makes a Value from canonical JSON. The Value uses the slice `data` without a copy, so
// the caller must not change this slice afterwards. The parameter `sensitive` lists the JSON
// pointers (RFC 6901) of the sensitive parts.
func NewValue(data []byte, sensitive []string, secrets []Secret) Value {
	return value.NewValue(data, sensitive, secrets)
}

// An Allowance limits the cost of all expressions that are evaluated for one decision. The
// nil Allowance sets no limit.
type Allowance = metered.Allowance

// NewAllowance returns an Allowance that permits this cost. The unit of cost is an estimated
// nanosecond.
func NewAllowance(cost int64) *Allowance { return metered.NewAllowance(cost) }

// ParseOptions choose what Parse reads.
type ParseOptions = decl.Options
