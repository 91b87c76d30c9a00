package dsl

import (
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// The nouns of a linked definition.
type (
	// A Workflow is one workflow of a linked definition.
	Workflow = noun.Workflow
	// A Variable is one declared input of a workflow or of its module.
	Variable = noun.Variable
	// An Agent is one agent block, resolved to a plugin version.
	Agent = noun.Agent
	// A Breaker holds the settings of an agent's circuit breaker.
	Breaker = noun.Breaker
	// An Output is one output of a workflow.
	Output = noun.Output
	// A Step is one unit of work.
	Step = noun.Step
	// An Action is a resolved action of an agent.
	Action = noun.Action
	// An Undo says how the effect of a step is undone.
	Undo = noun.Undo
	// A Condition is a precondition or postcondition.
	Condition = noun.Condition
	// A Wait says which signals a step waits for.
	Wait = noun.Wait
	// A Refusal is a fail_when: a result for which it holds is a definite failure.
	Refusal = noun.Refusal
	// A Catch swallows failures.
	Catch = noun.Catch
	// Settings are the limits of one step, with every default in place.
	Settings = noun.Settings
	// Retry is the policy of repetition of a step or an undo.
	Retry = noun.Retry
	// A Limit is a deadline: relative to a start, or absolute.
	Limit = noun.Limit
	// An Each is the evaluated for_each of a step.
	Each = noun.Each
	// A ValueFunc evaluates to a value.
	ValueFunc = noun.ValueFunc
	// An Assignment gives a value to a variable.
	Assignment = noun.Assignment
	// An AgentBinary is what is known of the binary chosen for an agent.
	AgentBinary = noun.AgentBinary
)

// NoCall is the action of steps that call no agent.
var NoCall = noun.NoCall

// A Mode says what a failure turns into: undo at once, or wait for a person.
type Mode = noun.Mode

// The modes. The zero Mode is invalid in a linked workflow.
const (
	ModeAutomatic = noun.ModeAutomatic
	ModeManual    = noun.ModeManual
)

// What another attempt of a step does with what earlier ones left behind (S81, S83). In a linked workflow RerunDefault means that attempts repeat the call under
// the same key.
const (
	RerunDefault   = noun.RerunDefault
	RerunContinue  = noun.RerunContinue
	RerunUndoFirst = noun.RerunUndoFirst
)

// Unbounded is Retry.MaxAttempts without a limit.
const Unbounded = noun.Unbounded

// How the pause between attempts grows. The zero Strategy is invalid in linked settings.
const (
	Exponential = noun.Exponential
	Linear      = noun.Linear
	Constant    = noun.Constant
)

// Exhausted is what happens when the attempts of a step are used up (S41).
type Exhausted = noun.Exhausted

// The choices. ExhaustedMode follows compensation.mode.
const (
	ExhaustedMode       = noun.ExhaustedMode
	ExhaustedCompensate = noun.ExhaustedCompensate
	ExhaustedPark       = noun.ExhaustedPark
	ExhaustedCoolDown   = noun.ExhaustedCoolDown
)

// What expressions see.
type (
	// A Scope is what an expression can see.
	Scope = eval.Scope
	// A Memo caches decoded values between evaluations for one run.
	Memo = eval.Memo
	// RunInfo is run.* in expressions.
	RunInfo = eval.RunInfo
	// An EachItem is each.key and each.value.
	EachItem = eval.EachItem
	// A Self is self.* in postcondition and compensate.
	Self = eval.Self
	// A Failure is failure.*: the first failure that turned the run.
	Failure = eval.Failure
	// A StepResult is what expressions see of one step.
	StepResult = eval.StepResult
	// An InstanceResult is the result of one instance of a step.
	InstanceResult = eval.InstanceResult
)

// A Value is an immutable JSON document together with what must be kept apart from it:
// which parts are sensitive, and which are references to secrets. The zero Value is null.
type Value = value.Value

// A Secret says which string of a Value is put together from text and references.
type Secret = value.Secret

// A SecretPart is literal text or a reference such as "env:X" or "file:X".
type SecretPart = value.SecretPart

// NewValue makes a Value from canonical JSON; it keeps data, which the caller must not
// change afterwards. sensitive lists JSON pointers (RFC 6901).
func NewValue(data []byte, sensitive []string, secrets []Secret) Value {
	return value.NewValue(data, sensitive, secrets)
}

// An Allowance bounds what the expressions evaluated for one decision may cost together.
// The nil Allowance bounds nothing.
type Allowance = metered.Allowance

// NewAllowance returns an Allowance of a cost in nominal nanoseconds.
func NewAllowance(cost int64) *Allowance { return metered.NewAllowance(cost) }

// ParseOptions choose what Parse reads.
type ParseOptions = decl.Options
