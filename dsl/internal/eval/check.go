package eval

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// A CheckWorld supplies values of which only the types are known. With it, errors in
// expressions are found before a run.
type CheckWorld struct {
	Evaluator *Evaluator
	Vars      cty.Value
	Steps     []cty.Value
	Each      cty.Value
	Self      cty.Value
	Locals    map[*Local]KeptLocal
	used      *metered.Meter // meter of the current expression; nil = not made yet
	Effort    *metered.Allowance
}

// Next begins the next expression, which gets its own meter.
func (w *CheckWorld) Next() { w.used = nil }

func (w *CheckWorld) meter() *metered.Meter {
	if w.used == nil {
		w.used = &metered.Meter{Allowance: w.Effort}
	}
	return w.used
}

func (w *CheckWorld) settle(*Local, KeptLocal) bool { return false }

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
	case "failure":
		return cty.ObjectVal(map[string]cty.Value{"step": str, "code": str, "message": str}), nil
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": str, "workflow": str, "started_at": str,
		"key": cty.UnknownVal(cty.String), "tick": cty.UnknownVal(cty.String),
	}), nil
}

func (w *CheckWorld) localValue(l *Local) (KeptLocal, bool) {
	v, ok := w.Locals[l]
	return v, ok
}

func (w *CheckWorld) keepLocal(l *Local, _ *Compiled, k KeptLocal) { w.Locals[l] = k }
