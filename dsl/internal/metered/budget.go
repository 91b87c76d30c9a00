package metered

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits of one expression, including the local values that it needs. Cost and
// memory are estimates, made from the sizes of values before the work is done. So
// every engine gets the same result, and no memory beyond the limit is allocated.
const (
	// MaxCost is the largest cost, in nominal nanoseconds of one slow core.
	MaxCost = 500_000_000
	// MaxMemory is the largest number of bytes that may be allocated in total,
	// including memory that is garbage later.
	MaxMemory = 48 << 20
	// maxNesting is the deepest nesting of values while an expression is
	// evaluated. The final value of an expression may be nested 200 deep.
	maxNesting = 1000
)

// An overrun says which limit an evaluation has exceeded. It ends the evaluation
// as a panic. An error would not end a loop, and try() would catch it.
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

// A Meter counts the cost and the memory of one evaluation. If a limit is exceeded,
// Over is set and stays set. So the evaluation fails even if the library has caught
// the panic.
type Meter struct {
	Cost, Memory int64
	Locals       Spent // the part of Cost and Memory that is due to local values
	Allowance    *Allowance
	Over         *overrun // limit that was exceeded; nil = none
}

// A Spent is an amount of cost and memory.
type Spent struct{ Cost, Memory int64 }

// Add adds another amount.
func (s *Spent) Add(x Spent) { s.Cost, s.Memory = s.Cost+x.Cost, s.Memory+x.Memory }

// Since returns the amount that was charged since an earlier copy of the meter,
// without the part that is due to local values.
func (m *Meter) Since(then Meter) Spent {
	return Spent{
		m.Cost - then.Cost - (m.Locals.Cost - then.Locals.Cost),
		m.Memory - then.Memory - (m.Locals.Memory - then.Locals.Memory),
	}
}

// pay adds to the cost and the memory. It panics with an overrun if a limit is
// exceeded. The nil meter has no limits.
func (m *Meter) pay(cost, memory int64) {
	if m == nil {
		return
	}
	m.Take(cost, memory)
	m.check()
}

// Take does the same as pay. But instead of a panic it returns false.
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

// check panics again if a limit was exceeded and the library has caught the panic.
func (m *Meter) check() {
	if m != nil && m.Over != nil {
		panic(m.Over)
	}
}

// Diagnostics returns the overrun as the error of an expression.
func (o *overrun) Diagnostics(at hcl.Range) hcl.Diagnostics {
	return ExprError(at, "Expression too expensive", o.detail)
}

// MeterName is the name of the variable that holds the meter in an evaluation
// context. No expression can contain this name.
const MeterName = "\x00meter"

var meterType = cty.Capsule("meter", reflect.TypeFor[Meter]())

// Variable returns the meter as a value for an evaluation context. MeterOf finds it there.
func (m *Meter) Variable() cty.Value { return cty.CapsuleVal(meterType, m) }

// MeterOf returns the meter of the evaluation that a context belongs to; nil if it has none.
func MeterOf(ctx *hcl.EvalContext) *Meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[MeterName]; ok {
			return v.EncapsulatedValue().(*Meter)
		}
	}
	return nil
}

// product multiplies sizes. It returns 1<<60 instead of a larger product, and 0 if a
// factor is not positive.
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

// ExprError returns one error about a place in the source.
func ExprError(at hcl.Range, summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: &at, Summary: summary, Detail: detail}}
}

// Input charges for a value of this load. It returns an error if a limit is exceeded.
func (m *Meter) Input(l value.Load) error {
	if !m.Take(l.Bytes*3+l.Nodes*300, l.Bytes+l.Nodes*150) {
		return errors.New("the values are too large")
	}
	return nil
}
