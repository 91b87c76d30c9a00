package link

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// ownVars returns a function that replaces the variables of a run by the variables of the module
// that declares the agent. This is needed for an agent of a library, because a run of the main
// module does not hold the variables of the library.
func (l *linker) ownVars(d *decl.Agent) func(value.Value) value.Value {
	if d.Library == nil {
		return func(run value.Value) value.Value { return run }
	}
	own := l.library(d.Library).vars
	return func(value.Value) value.Value { return own }
}

// ownScope returns a ValueFunc that calls f with the variables of the module that declares the
// agent.
func (l *linker) ownScope(d *decl.Agent, f noun.ValueFunc) noun.ValueFunc {
	if d.Library == nil {
		return f
	}
	vars := l.ownVars(d)
	return func(s *eval.Scope) (value.Value, error) {
		own := *s
		own.Vars = vars(s.Vars)
		return f(&own)
	}
}

// library returns the linked library of the module m. Only the first call for m links the library.
// This call reports an error if the default of a variable breaks a validation rule of the variable.
// If package decl has found an error in the module or in a library, it does not check these rules.
func (l *linker) library(m *decl.Module) *library {
	if lib, ok := l.libraries[m]; ok {
		return lib
	}
	vals := map[string]cty.Value{}
	for _, n := range sorted.Keys(m.Variables) {
		v := m.Variables[n]
		if vals[n] = v.Default; v.Default == cty.NilVal {
			vals[n] = value.UnknownOf(v.Type) // package decl has reported the missing default
		}
		if v.Sensitive {
			vals[n] = vals[n].Mark(value.SensitiveMark{})
		}
	}
	ev := &eval.Evaluator{Funcs: m.Funcs, Vars: variableShapes(m.Variables), Shared: true}
	lib := &library{ctx: &workflowLinker{
		linker: l, ev: ev, cur: -1,
		world: &eval.CheckWorld{Evaluator: ev, Vars: cty.ObjectVal(vals), Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance()},
	}}
	if l.libraries == nil {
		l.libraries = map[*decl.Module]*library{}
	}
	l.libraries[m] = lib
	if l.failed {
		return lib // a variable may have an error: then its validation rules cannot be checked
	}
	(&bind{ev: ev, decls: m.Variables}).validate(l.Reporter, m.Variables, vals, nil)
	var err error
	if lib.vars, err = value.Encode(cty.ObjectVal(vals), false); err != nil {
		l.Errorf(hcl.Range{}, "Invalid default value", "The variables of a library cannot be stored: %s.", err)
	}
	return lib
}
