package dsl

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// An evaluator evaluates the expressions of one linked workflow (or of the
// file level, with no steps).
type evaluator struct {
	funcs map[string]function.Function
	vars  map[string]*variableDecl
	steps []stepShape
}

// A stepShape is what is known of a step's result before a run.
type stepShape struct {
	name string
	each bool
	out  cty.Type // object type of the output
	in   cty.Type // object type of the arguments, all optional
}

// A world supplies the values of references: those of a run, or unknown ones
// while a definition is checked.
type world interface {
	variables() (cty.Value, error)
	step(i int) (cty.Value, error)
	root(name string) (cty.Value, error) // each, self, failure, run
	localValue(l *localDecl) (cty.Value, bool)
	keepLocal(l *localDecl, c *compiled, v cty.Value)
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
	if c.secrets {
		return secretTree(c.syn, ctx)
	}
	return evaluateSafe(c.syn, ctx)
}

// context holds only the roots, steps and locals that the expression refers
// to.
func (ev *evaluator) context(c *compiled, w world) (*hcl.EvalContext, hcl.Diagnostics) {
	fail := func(err error) (*hcl.EvalContext, hcl.Diagnostics) {
		rng := c.syn.Range()
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
		steps := make(map[string]cty.Value, len(c.direct))
		for i := range c.direct {
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
	for name, used := range map[string]bool{"each": c.each, "self": c.self, "failure": c.failure, "run": c.run} {
		if !used {
			continue
		}
		v, err := w.root(name)
		if err != nil {
			return fail(err)
		}
		vals[name] = v
	}
	return &hcl.EvalContext{Variables: vals, Functions: ev.funcs}, nil
}

func (ev *evaluator) local(l *localDecl, w world) (cty.Value, hcl.Diagnostics) {
	if v, ok := w.localValue(l); ok {
		return v, nil
	}
	c := l.expr.comp
	if l.expr.bad || c == nil {
		return cty.DynamicVal, nil // reported where it is declared
	}
	v, diags := ev.value(c, w)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	if err := checkSize(v); err != nil {
		return cty.DynamicVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Subject: &l.where,
			Summary: "Value too large", Detail: fmt.Sprintf("local.%s: %s.", l.name, err),
		}}
	}
	w.keepLocal(l, c, v)
	return v, nil
}

// checkSize keeps local values from doubling each other until memory is full.
func checkSize(v cty.Value) error {
	total := 0
	return cty.Walk(v, func(_ cty.Path, x cty.Value) (bool, error) {
		x, _ = x.Unmark()
		if x.IsKnown() && !x.IsNull() {
			switch x.Type() {
			case cty.String:
				total += len(x.AsString())
			case cty.Number:
				if f := x.AsBigFloat(); !f.IsInf() && (f.MantExp(nil) > 4*maxDigits || f.MantExp(nil) < -4*maxDigits) {
					return false, errDigits
				}
			}
		}
		total += 16
		if total > maxText {
			return false, errors.New("a local value may hold at most 4 MiB")
		}
		return true, nil
	})
}

// evaluateSafe evaluates; a panic in the library becomes a diagnostic, because
// an expression must never take the process down.
func evaluateSafe(syn hclsyntax.Expression, ctx *hcl.EvalContext) (v cty.Value, diags hcl.Diagnostics) {
	defer func() {
		if p := recover(); p != nil {
			rng := syn.Range()
			v = cty.DynamicVal
			diags = hcl.Diagnostics{{
				Severity: hcl.DiagError, Subject: &rng, Summary: "Cannot evaluate",
				Detail: fmt.Sprintf("The expression made the evaluator panic: %v\n%s", p, firstLines(debug.Stack(), 12)),
			}}
		}
	}()
	return syn.Value(ctx)
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitN(string(b), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// secretTree evaluates an expression that holds secret(), which stands only
// where Parse allowed it.
func secretTree(e hclsyntax.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if len(calls(e, "secret")) == 0 {
		return evaluateSafe(e, ctx)
	}
	switch e := e.(type) {
	case *hclsyntax.FunctionCallExpr:
		ref, _ := literalString(e)
		return secretValue([]SecretPart{{Ref: ref}}), nil
	case *hclsyntax.TemplateWrapExpr:
		return secretTree(e.Wrapped, ctx)
	case *hclsyntax.ParenthesesExpr:
		return secretTree(e.Expression, ctx)
	case *hclsyntax.TemplateExpr:
		return secretTemplate(e, ctx)
	case *hclsyntax.ObjectConsExpr:
		attrs := map[string]cty.Value{}
		for _, item := range e.Items {
			k, diags := evaluateSafe(item.KeyExpr, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			key, err := stringOf(k)
			if err != nil {
				if !k.IsKnown() {
					return cty.DynamicVal, nil
				}
				return cty.DynamicVal, exprError(item.KeyExpr.Range(), "Invalid key", err.Error())
			}
			v, diags := secretTree(item.ValueExpr, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			attrs[key] = v
		}
		return cty.ObjectVal(attrs), nil
	case *hclsyntax.TupleConsExpr:
		items := make([]cty.Value, len(e.Exprs))
		for i, x := range e.Exprs {
			v, diags := secretTree(x, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal, diags
			}
			items[i] = v
		}
		return cty.TupleVal(items), nil
	}
	return cty.DynamicVal, exprError(e.Range(), "secret() not allowed here", secretRule)
}

func secretTemplate(e *hclsyntax.TemplateExpr, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var parts []SecretPart
	for _, p := range e.Parts {
		if call, ok := p.(*hclsyntax.FunctionCallExpr); ok && call.Name == "secret" {
			ref, _ := literalString(call)
			parts = append(parts, SecretPart{Ref: ref})
			continue
		}
		v, diags := evaluateSafe(p, ctx)
		if diags.HasErrors() {
			return cty.DynamicVal, diags
		}
		if !v.IsKnown() {
			continue // only while a definition is checked
		}
		for m := range v.Marks() {
			if _, ok := m.(secretMark); ok {
				return cty.DynamicVal, exprError(p.Range(), "secret() not allowed here", "A secret of another value can only be passed on as it is.")
			}
		}
		text, err := stringOf(v)
		if err != nil {
			return cty.DynamicVal, exprError(p.Range(), "Invalid template interpolation value", err.Error())
		}
		if n := len(parts); n > 0 && parts[n-1].Ref == "" {
			parts[n-1].Text += text
		} else if text != "" {
			parts = append(parts, SecretPart{Text: text})
		}
	}
	return secretValue(parts), nil
}

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
	out := sortedKeys(seen)
	sort.SliceStable(out, func(i, j int) bool { return len(out[i]) > len(out[j]) })
	return out
}

func walkTexts(v cty.Value, out map[string]bool) {
	// The callback returns no error, so neither does Walk.
	_ = cty.Walk(v, func(_ cty.Path, x cty.Value) (bool, error) {
		if x.IsKnown() && !x.IsNull() && (x.Type() == cty.String || x.Type() == cty.Number) {
			if s, err := convert.Convert(x, cty.String); err == nil && len(s.AsString()) >= minSensitive-1 {
				out[s.AsString()] = true
			}
		}
		return true, nil
	})
}

// A runWorld takes values from a run's scope.
type runWorld struct {
	ev   *evaluator
	s    *Scope
	self int // index of the step that self is about
}

var errNoScope = errors.New("no values are available here")

func (w *runWorld) variables() (cty.Value, error) {
	if w.s == nil {
		return cty.NilVal, errNoScope
	}
	return w.ev.decodeVars(w.s.Vars)
}

// decodeVars decodes the object of all variables to their declared types; the
// result is kept with the Value, so that it is decoded once a run.
func (ev *evaluator) decodeVars(v Value) (cty.Value, error) {
	if v.d != nil {
		if c := v.d.decoded.Load(); c != nil && c.owner == ev {
			return c.value, nil
		}
	}
	raw, err := decodeValue(v)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode variables: %w", err)
	}
	attrs := map[string]cty.Value{}
	given := map[string]cty.Value{}
	if !raw.IsNull() && raw.Type().IsObjectType() {
		given = raw.AsValueMap()
	}
	for name, decl := range ev.vars {
		x, ok := given[name]
		if !ok {
			x = cty.NullVal(cty.DynamicPseudoType)
		}
		if c, err := conform(x, decl.typ); err == nil {
			x = c
		}
		if decl.sensitive {
			x = x.Mark(sensitiveMark{})
		}
		attrs[name] = x
	}
	out := cty.ObjectVal(attrs)
	if v.d != nil {
		v.d.decoded.Store(&decodedValue{owner: ev, value: out})
	}
	return out, nil
}

func (w *runWorld) memo() *Memo {
	if w.s == nil || w.s.Memo == nil {
		return nil
	}
	m := w.s.Memo
	if m.owner != w.ev {
		m.owner, m.steps, m.locals = w.ev, map[int]cty.Value{}, map[*localDecl]cty.Value{}
	}
	return m
}

func (w *runWorld) step(i int) (cty.Value, error) {
	m := w.memo()
	if m != nil {
		if v, ok := m.steps[i]; ok {
			return v, nil
		}
	}
	if w.s == nil || w.s.Step == nil {
		return cty.NilVal, errors.New("no step is visible here")
	}
	r := w.s.Step(i)
	v, err := w.ev.stepValue(i, r)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode the result of step %q: %w", w.ev.steps[i].name, err)
	}
	if m != nil && r.Final {
		m.steps[i] = v
	}
	return v, nil
}

func (ev *evaluator) stepValue(i int, r StepResult) (cty.Value, error) {
	shape := ev.steps[i]
	if !shape.each {
		return instanceValue(r.One, shape.out)
	}
	attrs := make(map[string]cty.Value, len(r.Instances))
	for _, inst := range r.Instances {
		v, err := instanceValue(inst, shape.out)
		if err != nil {
			return cty.NilVal, err
		}
		attrs[inst.Key] = v
	}
	return cty.ObjectVal(attrs), nil
}

var errorType = cty.Object(map[string]cty.Type{"code": cty.String, "message": cty.String})

func instanceValue(r InstanceResult, out cty.Type) (cty.Value, error) {
	output, err := decodeOutput(r.Output, out)
	if err != nil {
		return cty.NilVal, err
	}
	fault := cty.NullVal(errorType)
	if r.ErrorCode != "" {
		fault = cty.ObjectVal(map[string]cty.Value{
			"code": cty.StringVal(r.ErrorCode), "message": cty.StringVal(r.ErrorText),
		})
	}
	return cty.ObjectVal(map[string]cty.Value{
		"output": output, "status": cty.StringVal(r.Status), "attempts": cty.NumberIntVal(int64(r.Attempts)),
		"error": fault, "started_at": timeValue(r.StartedAt), "timed_out": cty.BoolVal(r.TimedOut),
	}), nil
}

func decodeOutput(v Value, ty cty.Type) (cty.Value, error) {
	raw, err := decodeValue(v)
	if err != nil {
		return cty.NilVal, err
	}
	if raw.IsNull() {
		return cty.NullVal(plainType(ty)), nil
	}
	if c, err := conform(raw, ty); err == nil {
		return c, nil
	}
	return raw, nil // such as the substitute output of another shape
}

// plainType is the type as values have it: without optional attributes, and
// with nothing said where the constraint says any.
func plainType(ty cty.Type) cty.Type {
	if ty == cty.NilType || ty.HasDynamicTypes() && !ty.IsObjectType() {
		return cty.DynamicPseudoType
	}
	return ty.WithoutOptionalAttributesDeep()
}

func timeValue(t time.Time) cty.Value {
	if t.IsZero() {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(t.UTC().Format(time.RFC3339Nano))
}

func (w *runWorld) root(name string) (cty.Value, error) {
	s := w.s
	if s == nil {
		return cty.NilVal, errNoScope
	}
	switch {
	case name == "run":
		key := cty.NullVal(cty.String)
		if s.Run.Key != "" {
			key = cty.StringVal(s.Run.Key)
		}
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.StringVal(s.Run.ID), "workflow": cty.StringVal(s.Run.Workflow), "key": key,
			"started_at": timeValue(s.Run.StartedAt), "tick": cty.NullVal(cty.String),
		}), nil
	case name == "each" && s.Each != nil:
		v, err := decodeValue(s.Each.Value)
		if err != nil {
			return cty.NilVal, fmt.Errorf("decode each.value: %w", err)
		}
		return cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(s.Each.Key), "value": v}), nil
	case name == "self" && s.Self != nil:
		return selfValue(s.Self, w.ev.steps[w.self])
	case name == "failure" && s.Failure != nil:
		return cty.ObjectVal(map[string]cty.Value{
			"step": cty.StringVal(s.Failure.Step), "code": cty.StringVal(s.Failure.Code), "message": cty.StringVal(s.Failure.Message),
		}), nil
	}
	return cty.NilVal, fmt.Errorf("%s has no value here", name)
}

func selfValue(s *Self, shape stepShape) (cty.Value, error) {
	in, err := decodeOutput(s.Input, shape.in)
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode self.input: %w", err)
	}
	out := cty.NullVal(plainType(shape.out))
	if s.OutputKnown {
		if out, err = decodeOutput(s.Output, shape.out); err != nil {
			return cty.NilVal, fmt.Errorf("decode self.output: %w", err)
		}
	}
	return cty.ObjectVal(map[string]cty.Value{
		"input": in, "output": out, "key": cty.StringVal(s.Key), "timed_out": cty.BoolVal(s.TimedOut),
	}), nil
}

func (w *runWorld) localValue(l *localDecl) (cty.Value, bool) {
	if m := w.memo(); m != nil {
		v, ok := m.locals[l]
		return v, ok
	}
	return cty.NilVal, false
}

// keepLocal remembers a local value if everything it was made of is final.
func (w *runWorld) keepLocal(l *localDecl, c *compiled, v cty.Value) {
	m := w.memo()
	if m == nil {
		return
	}
	for _, i := range c.steps {
		if _, final := m.steps[i]; !final {
			return
		}
	}
	m.locals[l] = v
}

// A checkWorld knows types only: it finds what is wrong before a run.
type checkWorld struct {
	ev      *evaluator
	vars    cty.Value
	steps   []cty.Value
	each    cty.Value
	self    cty.Value
	locals  map[*localDecl]cty.Value
	binding bool // vars are the real ones
}

func (w *checkWorld) variables() (cty.Value, error) { return w.vars, nil }

func (w *checkWorld) step(i int) (cty.Value, error) {
	if i >= len(w.steps) {
		return cty.DynamicVal, nil
	}
	return w.steps[i], nil
}

func (w *checkWorld) root(name string) (cty.Value, error) {
	str := cty.UnknownVal(cty.String).RefineNotNull()
	switch name {
	case "each":
		return w.each, nil
	case "self":
		return w.self, nil
	case "failure":
		return cty.ObjectVal(map[string]cty.Value{"step": str, "code": str, "message": str}), nil
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": str, "workflow": str, "started_at": str,
		"key": cty.UnknownVal(cty.String), "tick": cty.UnknownVal(cty.String),
	}), nil
}

func (w *checkWorld) localValue(l *localDecl) (cty.Value, bool) {
	v, ok := w.locals[l]
	return v, ok
}

func (w *checkWorld) keepLocal(l *localDecl, _ *compiled, v cty.Value) { w.locals[l] = v }
