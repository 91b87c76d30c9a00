package metered

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// What one expression may use, together with the local values that it needs.
// Both accounts are estimates, made from the sizes of values before the work
// is done: so every engine comes to the same result, and no memory is
// allocated that is not allowed.
const (
	// MaxCost is in nominal nanoseconds of one slow core.
	MaxCost = 500_000_000
	// MaxMemory is in bytes, all that is ever allocated counted.
	MaxMemory = 48 << 20
	// maxNesting bounds how deep values may be nested while an expression is
	// evaluated. What leaves an expression may be nested 200 deep.
	maxNesting = 1000
)

// An overrun says why an evaluation was given up. It travels as a panic: an
// error would only be collected while loops go on, and try() would catch it.
type overrun struct{ detail string }

var (
	overCost = &overrun{fmt.Sprintf("The expression needs too much computing time: it may use %d million units, each about a nanosecond of one core. %s",
		MaxCost/1_000_000, overHint)}
	overMemory = &overrun{fmt.Sprintf("The expression needs too much memory: it may use %d MiB, all its intermediate results counted. %s",
		MaxMemory>>20, overHint)}
	overDepth     = &overrun{fmt.Sprintf("The expression builds a value that is nested more than %d deep.", maxNesting)}
	overAllowance = &overrun{"The expressions of this decision need too much computing time together. " + overHint}
)

const overHint = "Work with fewer or smaller values, or do this work in an agent."

// A Meter holds the accounts of one evaluation. Once it is overdrawn it stays
// so, and the evaluation fails whatever caught the panic.
type Meter struct {
	Cost, Memory int64
	Locals       Spent // of these, what local values cost
	Allowance    *Allowance
	Over         *overrun
}

// A Spent is a part of what a meter has taken.
type Spent struct{ Cost, Memory int64 }

// Add adds what was spent elsewhere.
func (s *Spent) Add(x Spent) { s.Cost, s.Memory = s.Cost+x.Cost, s.Memory+x.Memory }

// Since returns what was spent since then, without local values.
func (m *Meter) Since(then Meter) Spent {
	return Spent{
		m.Cost - then.Cost - (m.Locals.Cost - then.Locals.Cost),
		m.Memory - then.Memory - (m.Locals.Memory - then.Locals.Memory),
	}
}

// pay takes from both accounts. It panics with an overrun where that is too
// much. The nil meter takes everything.
func (m *Meter) pay(cost, memory int64) {
	if m == nil {
		return
	}
	m.Take(cost, memory)
	m.check()
}

// Take is pay without the panic.
func (m *Meter) Take(cost, memory int64) bool {
	cost, memory = min(max(cost, 0), 2*MaxCost), min(max(memory, 0), 2*MaxMemory)
	m.Cost, m.Memory = m.Cost+cost, m.Memory+memory
	switch {
	case m.Over != nil:
	case m.Cost > MaxCost:
		m.Over = overCost
	case m.Memory > MaxMemory:
		m.Over = overMemory
	case !m.Allowance.pay(cost):
		m.Over = overAllowance
	}
	return m.Over == nil
}

// check panics again where a panic was caught by the library.
func (m *Meter) check() {
	if m != nil && m.Over != nil {
		panic(m.Over)
	}
}

// Diagnostics is the overrun as the error of an expression.
func (o *overrun) Diagnostics(at hcl.Range) hcl.Diagnostics {
	return ExprError(at, "Expression too expensive", o.detail)
}

// MeterName cannot be written in an expression.
const MeterName = "\x00meter"

var meterType = cty.Capsule("meter", reflect.TypeFor[Meter]())

// Variable is the meter as a value of an evaluation context, where MeterOf finds it.
func (m *Meter) Variable() cty.Value { return cty.CapsuleVal(meterType, m) }

// MeterOf finds the meter of the evaluation that a context belongs to.
func MeterOf(ctx *hcl.EvalContext) *Meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[MeterName]; ok {
			return v.EncapsulatedValue().(*Meter)
		}
	}
	return nil
}

// product multiplies sizes without overflow.
func product(factors ...int64) int64 {
	out := int64(1)
	for _, f := range factors {
		switch {
		case f <= 0:
			return 0
		case out > (1<<60)/f:
			return 1 << 60
		}
		out *= f
	}
	return out
}

// ExprError is one error about a place in the source.
func ExprError(at hcl.Range, summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: &at, Summary: summary, Detail: detail}}
}

// Input pays for a load.
func (m *Meter) Input(l value.Load) error {
	if !m.Take(l.Bytes*3+l.Nodes*300, l.Bytes+l.Nodes*150) {
		return errors.New("the values are too large")
	}
	return nil
}
