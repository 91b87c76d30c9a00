package eval

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// A CheckWorld is a World for a check before a run. It supplies unknown values of known types, so
// that the check finds errors in expressions.
type CheckWorld struct {
	Evaluator *Evaluator
	Vars      cty.Value            // object of all variables
	Steps     []cty.Value          // values of step.NAME, by index of the step
	Each      cty.Value            // value of `each` in expressions
	Self      cty.Value            // value of `self` in expressions
	Args      cty.Value            // value of `args` in expressions
	Locals    map[*Local]KeptLocal // locals that were evaluated so far
	used      *metered.Meter       // meter of the current expression; nil = not made yet
	Effort    *metered.Allowance   // limit for the cost of the whole check; nil = no limit
}

// Next begins the next expression. Each expression has its own meter.
func (w *CheckWorld) Next() { w.used = nil }

func (w *CheckWorld) meter() *metered.Meter {
	if w.used == nil {
		w.used = &metered.Meter{Allowance: w.Effort}
	}
	return w.used
}

func (w *CheckWorld) mustCharge(*Local, KeptLocal) bool { return false }

func (w *CheckWorld) variables() (cty.Value, error) { return w.Vars, nil }

func (w *CheckWorld) step(i int) (cty.Value, error) {
	if i >= len(w.Steps) {
		return cty.DynamicVal, nil
	}
	return w.Steps[i], nil
}

func (w *CheckWorld) root(name string) (cty.Value, error) {
	str := cty.UnknownVal(cty.String).RefineNotNull()
	switch name {
	case "each":
		return w.Each, nil
	case "self":
		return w.Self, nil
	case "args":
		return w.Args, nil
	case "event":
		return cty.ObjectVal(map[string]cty.Value{"id": str, "type": str, "at": str, "data": cty.DynamicVal}), nil
	case "failure":
		return cty.ObjectVal(map[string]cty.Value{"step": str, "code": str, "message": str}), nil
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": str, "workflow": str, "started_at": str, "status": str,
		"key": cty.UnknownVal(cty.String), "tick": cty.UnknownVal(cty.String),
	}), nil
}

func (w *CheckWorld) localValue(l *Local) (KeptLocal, bool) {
	v, ok := w.Locals[l]
	return v, ok
}

func (w *CheckWorld) keepLocal(l *Local, _ *Compiled, k KeptLocal) { w.Locals[l] = k }
