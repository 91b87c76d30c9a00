package dsl

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// An evaluator evaluates the expressions of one linked workflow (or of the
// file level, with no steps).
type evaluator struct {
	funcs map[string]function.Function
	vars  map[string]variableShape
	steps []stepShape
	// shared is set for the file level, whose expressions see the scopes of
	// other workflows: nothing is kept in those.
	shared bool
}

// A variableShape is what is known of a variable before a run.
type variableShape struct {
	typ       cty.Type
	sensitive bool
}

// A stepShape is what is known of a step's result before a run.
type stepShape struct {
	name string
	each bool
	out  cty.Type // object type of the output
	in   cty.Type // object type of the arguments, all optional
}

// value evaluates an expression in a world.
func (ev *evaluator) value(c *compiled, w world) (cty.Value, hcl.Diagnostics) {
	if c.konst != nil {
		return *c.konst, nil
	}
	ctx, diags := ev.context(c, w)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return c.evaluate(ctx)
}

func (c *compiled) evaluate(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if c.secrets {
		return secretTree(c.syn, ctx)
	}
	return metered.Evaluate(c.paid, ctx)
}

// context holds only the roots, steps and locals that the expression refers
// to.
func (ev *evaluator) context(c *compiled, w world) (*hcl.EvalContext, hcl.Diagnostics) {
	m := w.meter()
	fail := func(err error) (*hcl.EvalContext, hcl.Diagnostics) {
		rng := c.syn.Range()
		if m.Over != nil {
			return nil, m.Over.Diagnostics(rng)
		}
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Cannot evaluate", Detail: err.Error() + ".", Subject: &rng}}
	}
	vals := map[string]cty.Value{}
	if c.vars {
		v, err := w.variables()
		if err != nil {
			return fail(err)
		}
		vals["var"] = v
	}
	if len(c.direct) > 0 {
		steps := make(map[string]cty.Value, len(c.named))
		for _, i := range c.named {
			v, err := w.step(i)
			if err != nil {
				return fail(err)
			}
			steps[ev.steps[i].name] = v
		}
		vals["step"] = cty.ObjectVal(steps)
	}
	if len(c.locals) > 0 {
		locals := make(map[string]cty.Value, len(c.locals))
		for _, l := range c.locals {
			v, diags := ev.local(l, w)
			if diags.HasErrors() {
				return nil, diags
			}
			locals[l.name] = v
		}
		vals["local"] = cty.ObjectVal(locals)
	}
	for _, root := range []struct {
		name string
		used bool
	}{{"each", c.each}, {"self", c.self}, {"failure", c.failure}, {"run", c.run}} {
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
	return &hcl.EvalContext{Variables: vals, Functions: ev.funcs}, nil
}

func (ev *evaluator) local(l *localDecl, w world) (cty.Value, hcl.Diagnostics) {
	c := l.expr.comp
	if l.expr.bad || c == nil {
		return cty.DynamicVal, nil // reported where it is declared
	}
	if k, ok := w.localValue(l); ok {
		return k.value, ev.settleLocal(l, k, w)
	}
	m := w.meter()
	before := *m
	ctx, diags := ev.context(c, w)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	var v cty.Value
	if c.konst != nil {
		v = *c.konst
	} else if v, diags = c.evaluate(ctx); diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	if err := checkSize(m, v); err != nil {
		return cty.DynamicVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Subject: &l.where,
			Summary: "Value too large", Detail: fmt.Sprintf("local.%s: %s.", l.name, err),
		}}
	}
	if m.Over != nil {
		return cty.DynamicVal, m.Over.Diagnostics(l.where)
	}
	own := m.Since(before)
	w.keepLocal(l, c, keptLocal{v, own})
	m.Locals.Add(own)
	return v, nil
}

// A keptLocal is a local value with what it cost, which each evaluation pays
// that needs it: or else an expression would fail on an engine that does not
// have the value yet, and succeed on another one.
type keptLocal struct {
	value cty.Value
	metered.Spent
}

// settleLocal pays, once for each evaluation, for a local value that is known
// from another one, and for those that it was made of.
func (ev *evaluator) settleLocal(l *localDecl, k keptLocal, w world) hcl.Diagnostics {
	if !w.settle(l, k) {
		return nil
	}
	for _, inner := range l.expr.comp.locals {
		if _, diags := ev.local(inner, w); diags.HasErrors() {
			return diags
		}
	}
	m := w.meter()
	m.Locals.Add(k.Spent)
	if !m.Take(k.Cost, k.Memory) {
		return m.Over.Diagnostics(l.where)
	}
	return nil
}

// checkSize keeps local values from doubling each other until memory is full.
// A meter that is overdrawn meanwhile stays so.
func checkSize(m *metered.Meter, v cty.Value) (err error) {
	defer func() {
		if p := recover(); p != nil && p != any(m.Over) {
			panic(p)
		}
	}()
	switch w := m.Weigh(v); {
	case w.Bits > 4*value.MaxDigits:
		return value.ErrDigits
	case w.Size() > functions.MaxText:
		return errors.New("a local value may hold at most 4 MiB")
	}
	return nil
}

// runtimeError turns the diagnostics of a run into one error for people,
// without the sensitive values its context held.
func runtimeError(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		r := &reporter{}
		r.hcl(hcl.Diagnostics{d})
		out := r.list[0]
		text := out.Error()
		if hidden := sensitiveTexts(d.EvalContext); len(hidden) > 0 {
			if d.Extra != nil || strings.Contains(d.Summary, "function") {
				text = fmt.Sprintf("%s: %s: details are hidden, because an argument is sensitive", out.Range, out.Summary)
			}
			for _, h := range hidden {
				text = strings.ReplaceAll(text, h, "(sensitive)")
			}
		}
		return errors.New(text)
	}
	return errors.New("the expression could not be evaluated")
}

// sensitiveTexts returns the sensitive strings of a context, longest first.
func sensitiveTexts(ctx *hcl.EvalContext) []string {
	seen := map[string]bool{}
	for ; ctx != nil; ctx = ctx.Parent() {
		for _, v := range ctx.Variables {
			if !v.ContainsMarked() {
				continue
			}
			raw, marks := v.UnmarkDeepWithPaths()
			for _, m := range marks {
				part, err := m.Path.Apply(raw)
				if err != nil {
					continue // a path into a set cannot be followed; its texts stay unknown
				}
				walkTexts(part, seen)
			}
		}
	}
	delete(seen, "")
	out := sorted.Keys(seen)
	sort.SliceStable(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

func walkTexts(v cty.Value, out map[string]bool) {
	// The callback returns no error, so neither does Walk.
	_ = cty.Walk(v, func(_ cty.Path, x cty.Value) (bool, error) {
		if x.IsKnown() && !x.IsNull() && (x.Type() == cty.String || x.Type() == cty.Number) {
			if s, err := value.ConvertScalar(x, cty.String); err == nil && len(s.AsString()) >= value.MinSensitive-1 {
				out[s.AsString()] = true
			}
		}
		return true, nil
	})
}
