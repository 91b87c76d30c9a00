package eval

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// An Evaluator evaluates the expressions of one linked workflow, or the
// expressions outside of workflows, which cannot refer to steps.
type Evaluator struct {
	Funcs map[string]function.Function // functions that expressions can call, by name
	Vars  map[string]VariableShape     // variables to which expressions can refer, by name
	Steps []StepShape                  // steps of the workflow; nil outside of workflows
	// true = the expressions are outside of workflows. Such expressions are evaluated with the
	// scopes of many workflows, so the Evaluator caches nothing in a scope.
	Shared bool
}

// A VariableShape describes what is known about a variable before a run.
type VariableShape struct {
	Type      cty.Type
	Sensitive bool
}

// A StepShape describes what is known about a step and its result before a run.
type StepShape struct {
	Name string
	Each bool     // true = the step has for_each
	Out  cty.Type // object type of the output
	In   cty.Type // object type of the arguments; all its attributes are optional
	// Given evaluates the arguments that the step gives to a declared action, for self.input in
	// expressions; nil = the step calls no declared action. The field Input of type Self cannot be
	// used here: it holds the input of the plugin's action, which may differ from these arguments.
	// Given is called only if the run has not stored the arguments (field Given of type Self).
	Given func(*Scope) (value.Value, error)
}

// Run evaluates an expression for a run. The parameter `self` is the index of the step that
// self.* describes. The text of the error contains no sensitive text.
func (ev *Evaluator) Run(c *Compiled, s *Scope, self int) (cty.Value, error) {
	v, diags := ev.Value(c, &runWorld{ev: ev, s: s, self: self, c: c})
	if diags.HasErrors() {
		return cty.NilVal, runtimeError(diags)
	}
	return v, nil
}

// Value evaluates an expression. The parameter w supplies the values of the references in the
// expression.
func (ev *Evaluator) Value(c *Compiled, w World) (cty.Value, hcl.Diagnostics) {
	if c.Constant != nil {
		return *c.Constant, nil
	}
	ctx, diags := ev.Context(c, w)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return c.evaluate(ctx)
}

// Context returns the context for the evaluation of an expression. The context holds only those
// steps, locals and other values to which the expression refers. If the expression or one of its
// locals refers to a variable, the context holds all variables.
func (ev *Evaluator) Context(c *Compiled, w World) (*hcl.EvalContext, hcl.Diagnostics) {
	m := w.meter()
	fail := func(err error) (*hcl.EvalContext, hcl.Diagnostics) {
		rng := c.Syntax.Range()
		if m.Over != nil {
			return nil, m.Over.Diagnostics(rng)
		}
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot evaluate", Detail: err.Error() + ".", Subject: &rng}}
	}
	vals := map[string]cty.Value{}
	if c.Vars {
		v, err := w.variables()
		if err != nil {
			return fail(err)
		}
		vals["var"] = v
	}
	if len(c.StepRefs) > 0 {
		steps := make(map[string]cty.Value, len(c.Named))
		for _, i := range c.Named {
			v, err := w.step(i)
			if err != nil {
				return fail(err)
			}
			steps[ev.Steps[i].Name] = v
		}
		vals["step"] = cty.ObjectVal(steps)
	}
	if len(c.Locals) > 0 {
		locals := make(map[string]cty.Value, len(c.Locals))
		for _, l := range c.Locals {
			v, diags := ev.local(l, w)
			if diags.HasErrors() {
				return nil, diags
			}
			locals[l.Name] = v
		}
		vals["local"] = cty.ObjectVal(locals)
	}
	for _, root := range []struct {
		name string
		used bool
	}{{"each", c.Each}, {"self", c.Self}, {"failure", c.Failure}, {"args", c.Args}, {"run", c.Run}, {"event", c.Event}} {
		if !root.used {
			continue
		}
		v, err := w.root(root.name)
		if err != nil {
			return fail(err)
		}
		vals[root.name] = v
	}
	vals[metered.MeterName] = m.Variable()
	return &hcl.EvalContext{Variables: vals, Functions: ev.Funcs}, nil
}

func (ev *Evaluator) local(l *Local, w World) (cty.Value, hcl.Diagnostics) {
	c := l.Expr.Compiled
	if l.Expr.Bad || c == nil {
		return cty.DynamicVal, nil // the expression of the local has an error, which was reported already
	}
	if k, ok := w.localValue(l); ok {
		return k.value, ev.chargeLocal(l, k, w)
	}
	m := w.meter()
	before := *m
	ctx, diags := ev.Context(c, w)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	var v cty.Value
	if c.Constant != nil {
		v = *c.Constant
	} else if v, diags = c.evaluate(ctx); diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	if err := checkSize(m, v); err != nil {
		return cty.DynamicVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Subject: &l.Where,
			Summary: "Value too large", Detail: fmt.Sprintf("local.%s: %s.", l.Name, err),
		}}
	}
	if m.Over != nil {
		return cty.DynamicVal, m.Over.Diagnostics(l.Where)
	}
	own := m.Since(before)
	w.keepLocal(l, c, KeptLocal{v, own})
	m.Locals.Add(own)
	return v, nil
}

// A KeptLocal is a cached local value with the cost of its computation. In a run, each evaluation
// that uses the value pays this cost, even if the value is in the cache. Without this rule, an
// expression could fail on an engine that must compute the value, and succeed on an engine that has
// the value in its cache. In the check before a run, only the first evaluation pays the cost.
type KeptLocal struct {
	value cty.Value
	metered.Spent
}

// chargeLocal adds the cost of the cached local l, and the costs of the locals that l uses, to the
// cost of this evaluation. The cost of each local counts only once in an evaluation. chargeLocal
// returns an error if the evaluation exceeds a limit.
func (ev *Evaluator) chargeLocal(l *Local, k KeptLocal, w World) hcl.Diagnostics {
	if !w.mustCharge(l, k) {
		return nil
	}
	for _, inner := range l.Expr.Compiled.Locals {
		if _, diags := ev.local(inner, w); diags.HasErrors() {
			return diags
		}
	}
	m := w.meter()
	m.Locals.Add(k.Spent)
	if !m.Take(k.Cost, k.Memory) {
		return m.Over.Diagnostics(l.Where)
	}
	return nil
}

// maxText is the largest size of a local value, in bytes.
const maxText = 4 << 20

// checkSize returns an error if a local value is too large. Without this limit, each local could be
// twice as large as the previous local, until memory is full. The check itself adds a cost to m. If
// m exceeds a limit because of this cost, checkSize does not panic: it returns nil, and m.Over is
// not nil.
func checkSize(m *metered.Meter, v cty.Value) (err error) {
	defer func() {
		if p := recover(); p != nil && p != any(m.Over) {
			panic(p)
		}
	}()
	switch w := m.Weigh(v); {
	case w.Bits > 4*value.MaxDigits:
		return value.ErrDigits
	case w.Size() > maxText:
		return errors.New("a local value may hold at most 4 MiB")
	}
	return nil
}

// instanceNodes is the number of nodes in the result of an instance, without the nodes of the
// output. A node is a value or a name.
const instanceNodes = 4

func loadOfStep(r StepResult) value.Load {
	load := func(i *InstanceResult) value.Load {
		l := value.LoadOf(i.Output).Plus(value.Load{Nodes: instanceNodes})
		if i.ErrorCode != "" {
			l = l.Plus(value.LoadOf(i.ErrorData))
		}
		if !i.Collected.IsNull() {
			l = l.Plus(value.LoadOf(i.Collected))
		}
		return l
	}
	if !r.Each {
		return load(&r.One)
	}
	var out value.Load
	for i := range r.Instances {
		out = out.Plus(load(&r.Instances[i]))
	}
	return out
}
