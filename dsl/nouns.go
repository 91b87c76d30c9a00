package dsl

import (
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
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
