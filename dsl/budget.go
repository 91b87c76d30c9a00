package dsl

import (
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// What one expression may use, together with the local values that it needs.
// Both accounts are estimates, made from the sizes of values before the work
// is done: so every engine comes to the same result, and no memory is
// allocated that is not allowed.
const (
	// maxCost is in nominal nanoseconds of one slow core.
	maxCost = 500_000_000
	// maxMemory is in bytes, all that is ever allocated counted.
	maxMemory = 48 << 20
	// maxNesting bounds how deep values may be nested while an expression is
	// evaluated. What leaves an expression may be nested 200 deep.
	maxNesting = 1000
)

// An overrun says why an evaluation was given up. It travels as a panic: an
// error would only be collected while loops go on, and try() would catch it.
type overrun struct{ detail string }

var (
	overCost = &overrun{fmt.Sprintf("The expression needs too much computing time: it may use %d million units, each about a nanosecond of one core. %s",
		maxCost/1_000_000, overHint)}
	overMemory = &overrun{fmt.Sprintf("The expression needs too much memory: it may use %d MiB, all its intermediate results counted. %s",
		maxMemory>>20, overHint)}
	overDepth     = &overrun{fmt.Sprintf("The expression builds a value that is nested more than %d deep.", maxNesting)}
	overAllowance = &overrun{"The expressions of this decision need too much computing time together. " + overHint}
)

const overHint = "Work with fewer or smaller values, or do this work in an agent."

// A meter holds the accounts of one evaluation. Once it is overdrawn it stays
// so, and the evaluation fails whatever caught the panic.
type meter struct {
	cost, memory int64
	locals       spent // of these, what local values cost
	allowance    *Allowance
	over         *overrun
}

// A spent is a part of what a meter has taken.
type spent struct{ cost, memory int64 }

// add adds what was spent elsewhere.
func (s *spent) add(x spent) { s.cost, s.memory = s.cost+x.cost, s.memory+x.memory }

// since returns what was spent since then, without local values.
func (m *meter) since(then meter) spent {
	return spent{
		m.cost - then.cost - (m.locals.cost - then.locals.cost),
		m.memory - then.memory - (m.locals.memory - then.locals.memory),
	}
}

// pay takes from both accounts. It panics with an overrun where that is too
// much. The nil meter takes everything.
func (m *meter) pay(cost, memory int64) {
	if m == nil {
		return
	}
	m.take(cost, memory)
	m.check()
}

// take is pay without the panic.
func (m *meter) take(cost, memory int64) bool {
	cost, memory = min(max(cost, 0), 2*maxCost), min(max(memory, 0), 2*maxMemory)
	m.cost, m.memory = m.cost+cost, m.memory+memory
	switch {
	case m.over != nil:
	case m.cost > maxCost:
		m.over = overCost
	case m.memory > maxMemory:
		m.over = overMemory
	case !m.allowance.pay(cost):
		m.over = overAllowance
	}
	return m.over == nil
}

// check panics again where a panic was caught by the library.
func (m *meter) check() {
	if m != nil && m.over != nil {
		panic(m.over)
	}
}

// diagnostics is the overrun as the error of an expression.
func (o *overrun) diagnostics(at hcl.Range) hcl.Diagnostics {
	return exprError(at, "Expression too expensive", o.detail)
}

// meterName cannot be written in an expression.
const meterName = "\x00meter"

var meterType = cty.Capsule("meter", reflect.TypeFor[meter]())

// variable is the meter as a value of an evaluation context, where meterOf finds it.
func (m *meter) variable() cty.Value { return cty.CapsuleVal(meterType, m) }

// meterOf finds the meter of the evaluation that a context belongs to.
func meterOf(ctx *hcl.EvalContext) *meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[meterName]; ok {
			return v.EncapsulatedValue().(*meter)
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
