package dsl

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

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
	return evaluateSafe(c.paid, ctx)
}

// context holds only the roots, steps and locals that the expression refers
// to.
func (ev *evaluator) context(c *compiled, w world) (*hcl.EvalContext, hcl.Diagnostics) {
	m := w.meter()
	fail := func(err error) (*hcl.EvalContext, hcl.Diagnostics) {
		rng := c.syn.Range()
		if m.over != nil {
			return nil, m.over.diagnostics(rng)
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
	vals[meterName] = m.variable()
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
	if m.over != nil {
		return cty.DynamicVal, m.over.diagnostics(l.where)
	}
	own := m.since(before)
	w.keepLocal(l, c, keptLocal{v, own})
	m.locals.add(own)
	return v, nil
}

// A keptLocal is a local value with what it cost, which each evaluation pays
// that needs it: or else an expression would fail on an engine that does not
// have the value yet, and succeed on another one.
type keptLocal struct {
	value cty.Value
	spent
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
	m.locals.add(k.spent)
	if !m.take(k.cost, k.memory) {
		return m.over.diagnostics(l.where)
	}
	return nil
}

// constantContext is for expressions that refer to nothing.
func constantContext(funcs map[string]function.Function, a *Allowance) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: funcs, Variables: map[string]cty.Value{meterName: (&meter{allowance: a}).variable()}}
}

// evaluateOnce evaluates an expression that refers to nothing.
func evaluateOnce(syn hclsyntax.Expression, funcs map[string]function.Function, a *Allowance) (cty.Value, hcl.Diagnostics) {
	return evaluateSafe(metered(syn), constantContext(funcs, a))
}

// checkSize keeps local values from doubling each other until memory is full.
// A meter that is overdrawn meanwhile stays so.
func checkSize(m *meter, v cty.Value) (err error) {
	defer func() {
		if p := recover(); p != nil && p != any(m.over) {
			panic(p)
		}
	}()
	switch w := m.weigh(v); {
	case w.bits > 4*value.MaxDigits:
		return value.ErrDigits
	case w.size() > maxText:
		return errors.New("a local value may hold at most 4 MiB")
	}
	return nil
}

// maxDiagnostics bounds what is reported of one expression, and maxDetail what
// is said of each: a loop may fail in each round, and an error may cite a text
// of any length.
const (
	maxDiagnostics = 20
	maxDetail      = 4 << 10
)

// evaluateSafe evaluates; a panic in the library becomes a diagnostic, because
// an expression must never take the process down.
func evaluateSafe(syn hclsyntax.Expression, ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics) {
	m := meterOf(ctx)
	defer func() {
		p := recover()
		diags = shortened(diags)
		if m != nil && m.over != nil {
			v, diags = cty.DynamicVal, m.over.diagnostics(syn.Range())
			return
		}
		if p != nil {
			rng := syn.Range()
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{
				Severity: hcl.DiagError, Subject: &rng, Summary: "Cannot evaluate",
				Detail: fmt.Sprintf("The expression made the evaluator panic: %v.", p),
			}}
		}
	}()
	return syn.Value(ctx)
}

// shortened leaves out what is too much to read. A function that panics has its
// stack in the message: the paths of the machine it was built on say nothing to
// the author of an expression, and would get into the journal.
func shortened(diags hcl.Diagnostics) hcl.Diagnostics {
	diags = diags[:min(len(diags), maxDiagnostics)]
	for i, d := range diags {
		text, stack, panicked := strings.Cut(d.Detail, "\ngoroutine ")
		panicked = panicked && strings.Contains(stack, "debug.Stack")
		if panicked {
			text = strings.Replace(text, "panic in function implementation", "the function cannot compute it", 1) + "."
		} else {
			text = d.Detail
		}
		if len(text) > maxDetail {
			text = strings.ToValidUTF8(text[:maxDetail], "") + " ..."
		}
		if text != d.Detail {
			short := *d
			short.Detail = text
			diags[i] = &short
		}
	}
	return diags
}

// exprError is one error about a place in the source.
func exprError(at hcl.Range, summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Subject: &at, Summary: summary, Detail: detail}}
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
