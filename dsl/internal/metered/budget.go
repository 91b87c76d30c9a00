package metered

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Limits of one evaluation of an expression, including the locals that the expression uses. Cost
// and memory are estimates, made from the sizes of values before the work is done. So every
// engine gets the same result, and an evaluation stops before it allocates too much memory.
const (
	// MaxCost is the largest cost, in estimated nanoseconds of one slow core.
	MaxCost = 500_000_000
	// MaxMemory is the largest number of bytes that an evaluation may allocate in
	// total. Memory that becomes garbage counts, too.
	MaxMemory = 48 << 20
	// maxNesting is the largest number of nested levels that a value may have while an expression
	// is evaluated. The final value of an expression may have at most 200 nested levels.
	maxNesting = 1000
)

// An overrun says which limit an evaluation has exceeded. The evaluation panics with the overrun.
// It does not return an error, because an error would not end a loop, and try() would catch an
// error.
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

// A Meter counts the cost and the memory of one evaluation. When the evaluation exceeds a limit,
// the Meter sets the field Over, and the evaluation panics. The library go-cty may recover from
// this panic. The evaluation fails even then, because the Meter never clears the field Over.
type Meter struct {
	Cost, Memory int64      // estimated nanoseconds and bytes so far
	Locals       Spent      // the part of Cost and Memory that local values caused
	Allowance    *Allowance // limit for all expressions of a decision; nil = no such limit
	Over         *overrun   // limit that the evaluation has exceeded; nil = none
}

// A Spent is an amount of cost, in estimated nanoseconds, and of memory, in bytes.
type Spent struct{ Cost, Memory int64 }

// Add adds the amount x to s.
func (s *Spent) Add(x Spent) { s.Cost, s.Memory = s.Cost+x.Cost, s.Memory+x.Memory }

// Since returns the cost and memory that were added to the meter since an earlier time. The
// parameter `then` is a copy of the meter from that time. The result does not include the cost
// and memory of local values.
func (m *Meter) Since(then Meter) Spent {
	return Spent{
		m.Cost - then.Cost - (m.Locals.Cost - then.Locals.Cost),
		m.Memory - then.Memory - (m.Locals.Memory - then.Locals.Memory),
	}
}

// pay adds the parameters `cost` and `memory` to the meter. It panics with an overrun if the
// meter exceeds a limit. If m is nil, pay does nothing.
func (m *Meter) pay(cost, memory int64) {
	if m == nil {
		return
	}
	m.Take(cost, memory)
	m.check()
}

// Take adds the parameters `cost` and `memory` to the meter. It returns false if the meter
// exceeds a limit now, or has exceeded a limit before.
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

// check panics with m.Over if the meter has exceeded a limit. It is necessary even if pay has
// panicked with m.Over before, because the library go-cty may have recovered from that panic.
func (m *Meter) check() {
	if m != nil && m.Over != nil {
		panic(m.Over)
	}
}

// Diagnostics returns the overrun as an error at a position in the source.
func (o *overrun) Diagnostics(at hcl.Range) hcl.Diagnostics {
	return ExprError(at, "Expression too expensive", o.detail)
}

// MeterName is the name of the variable that holds the meter in an evaluation
// context. No expression can contain this name.
const MeterName = "\x00meter"

var meterType = cty.Capsule("meter", reflect.TypeFor[Meter]())

// Variable returns the meter as the value of the variable MeterName in an evaluation context.
func (m *Meter) Variable() cty.Value { return cty.CapsuleVal(meterType, m) }

// MeterOf returns the meter in an evaluation context or in one of its parents; nil if there is no
// meter.
func MeterOf(ctx *hcl.EvalContext) *Meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[MeterName]; ok {
			return v.EncapsulatedValue().(*Meter)
		}
	}
	return nil
}

// product multiplies the factors in order. When it comes to a factor that is not positive, it
// returns 0. When the product would exceed 1<<60, it returns 1<<60 and ignores further factors.
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

// ExprError returns one error about a position in the source.
func ExprError(at hcl.Range, summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: &at, Summary: summary, Detail: detail}}
}

// Input adds to the meter the cost and the memory for decoding a value of the size l. It returns an
// error if the meter exceeds a limit.
func (m *Meter) Input(l value.Load) error {
	if !m.Take(l.Bytes*3+l.Nodes*300, l.Bytes+l.Nodes*150) {
		return errors.New("the values are too large")
	}
	return nil
}
