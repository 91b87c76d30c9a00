package link

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/argument"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// An actionLinker links the action blocks of agents.
type actionLinker struct{ *linker }

// actions links the action blocks of an agent, and adds the actions to la.declared. It does nothing
// for a missing agent. If a block has errors, actions marks its action as broken, so that the steps
// that call this action report no further errors.
func (l actionLinker) actions(la *linkedAgent) {
	if la.missing {
		return
	}
	names := append(sorted.Keys(la.bin.Schema.Actions), declaredNames(la.decl)...)
	for _, d := range la.decl.Actions {
		a := &linkedAction{agent: la, name: d.Name, broken: true}
		la.declared[d.Name] = a
		if by := d.CompensatedBy; by != "" && !slices.Contains(names, by) {
			l.Errorf(d.CompensatedByAt, "Unknown action", "Agent %q (%s %s) has no action %q.%s",
				la.decl.Name, la.decl.Plugin, la.bin.Version, by, diag.DidYouMean(by, names))
		}
		if d.Uses == "" {
			continue
		}
		if used := l.pluginAction(la, d.Uses, d.UsesAt); used != nil {
			a.form = &actionForm{decl: d, used: used}
			l.form(a)
		}
	}
	for _, d := range la.decl.Actions {
		lookupLinker(l).lookup(la.declared[d.Name], d, names)
	}
}

func declaredNames(d *decl.Agent) []string {
	out := make([]string, len(d.Actions))
	for i, a := range d.Actions {
		out[i] = a.Name
	}
	return out
}

// form links the action block of a declared action: it makes the schema of the action, and sets the
// fields of a.form. The caller has set a.broken to true. The method `form` sets a.broken to false
// if there is no error.
func (l actionLinker) form(a *linkedAction) {
	before := len(l.List)
	f := a.form
	d, used := f.decl, f.used
	if !l.makeSchema(a) {
		return
	}
	reply := value.MarkFields(value.UnknownOf(used.out), used.schema.Outputs)
	base := l.contextOf(a.agent.decl)
	f.vars = l.ownVars(a.agent.decl)
	f.ev = &eval.Evaluator{
		Funcs: base.ev.Funcs, Vars: base.ev.Vars, Shared: true,
		Steps: []eval.StepShape{{Name: d.Name, In: argType(a.in), Out: used.out}},
	}
	wl := &workflowLinker{
		linker: l.linker, ev: f.ev, steps: []*linkedStep{{action: used}},
		world: &eval.CheckWorld{
			Evaluator: f.ev, Vars: base.world.Vars, Locals: map[*eval.Local]eval.KeptLocal{}, Effort: l.Allowance(),
			Args: value.UnknownOf(argType(a.in)),
			Self: cty.ObjectVal(map[string]cty.Value{"output": reply, "key": cty.UnknownVal(cty.String).RefineNotNull()}),
		},
	}
	f.input = argumentLinker{wl}.arguments(used.in, d.Input, d.InputAt, "action "+used.title(), false)
	f.hideArguments(a)
	f.refusals = stepLinker{wl}.refusals(d.FailWhen)
	a.result(wl, reply)
	a.codes(wl)
	var err error
	// Make the specs again, because hideArguments may have marked arguments as sensitive.
	if a.in, err = specsOf(a.schema.Inputs, d); err != nil {
		return // cannot happen: makeSchema has made these specs without an error
	}
	a.broken = l.List[before:].HasErrors() || f.bad()
}

// bad reports whether the attribute `result` or an argument of the input block has an error that
// was reported.
func (f *actionForm) bad() bool {
	bad := f.decl.Result != nil && f.decl.Result.Bad
	for _, x := range f.decl.Input {
		bad = bad || x.Expr.Bad
	}
	return bad
}

// makeSchema sets a.schema, the schema of a declared action, and the fields of a that depend on it.
// It makes the schema from the schema of the plugin's action and from the action block. It returns
// false after an error.
func (l actionLinker) makeSchema(a *linkedAction) bool {
	d, used := a.form.decl, a.form.used
	a.schema = used.schema
	a.schema.Doc, a.schema.CompensatedBy = "", d.CompensatedBy
	for _, x := range []struct {
		promise *bool
		field   *bool
	}{{d.Idempotent, &a.schema.Idempotent}, {d.ReadOnly, &a.schema.ReadOnly}, {d.ByKey, &a.schema.ByKey}} {
		if x.promise != nil {
			*x.field = *x.promise
		}
	}
	var err error
	if a.schema.Inputs, err = inputsOf(d); err == nil {
		a.in, err = specsOf(a.schema.Inputs, d)
	}
	if err != nil {
		l.Invalid(d.Block.Attr("arguments").Range, "arguments", err)
		return false
	}
	a.out = used.out
	if d.Output != cty.NilType {
		if a.schema.Outputs, err = value.FieldsOf(d.Output); err != nil {
			l.Invalid(d.Block.Attr("output").Range, "output", err)
			return false
		}
		a.out = d.Output
	} else {
		a.schema.Outputs = slices.Clone(used.schema.Outputs)
	}
	return true
}

// inputsOf returns a schema field for each argument of a declared action, with the default of the
// argument.
func inputsOf(d *decl.Action) ([]schema.Field, error) {
	fields, err := value.FieldsOf(d.Arguments)
	if err != nil || d.Defaults == nil {
		return fields, err
	}
	for i := range fields {
		f := &fields[i]
		v, ok := d.Defaults.DefaultValues[f.Name]
		if !ok {
			continue
		}
		if inner := d.Defaults.Children[f.Name]; inner != nil && !v.IsNull() {
			v = inner.Apply(v)
		}
		if v, err = value.Conform(v, d.Arguments.AttributeType(f.Name)); err != nil {
			return nil, fmt.Errorf("default of %q: %w", f.Name, err)
		}
		text, err := value.Encode(v, false)
		if err != nil {
			return nil, fmt.Errorf("default of %q: %w", f.Name, err)
		}
		f.Default = text.JSON()
	}
	return fields, nil
}

// specsOf returns a Spec for each argument of a declared action.
func specsOf(fields []schema.Field, d *decl.Action) (map[string]*argument.Spec, error) {
	specs, err := argument.Specs(fields)
	if d.Defaults != nil {
		for name, s := range specs {
			if inner := d.Defaults.Children[name]; inner != nil {
				s.Fill = inner.Apply
			}
		}
	}
	return specs, err
}

// hideArguments marks an argument of a declared action as sensitive if the action block passes the
// argument to a sensitive argument of the plugin's action. It also sets f.keyed to true if the
// input uses self.key.
func (f *actionForm) hideArguments(a *linkedAction) {
	for _, x := range f.decl.Input {
		c, spec := x.Expr.Compiled, f.used.in[x.Name]
		if c == nil {
			continue
		}
		f.keyed = f.keyed || c.Self
		if spec == nil || !fieldHides(spec.Field) {
			continue
		}
		for _, t := range c.Refs {
			if t.RootName() != "args" || len(t) < 2 {
				continue
			}
			name := eval.NameOf(t[1])
			for i := range a.schema.Inputs {
				a.schema.Inputs[i].Sensitive = a.schema.Inputs[i].Sensitive || a.schema.Inputs[i].Name == name
			}
		}
	}
}

// result checks the attribute `result` of a declared action against the declared output. If the
// block does not have this attribute, the method `result` checks the parameter `reply`, the reply
// of the plugin's action. The method also marks an output as sensitive if the output may contain
// sensitive parts of the reply.
func (a *linkedAction) result(wl *workflowLinker, reply cty.Value) {
	d := a.form.decl
	if d.Output == cty.NilType {
		return
	}
	v, at, what := reply, d.Block.Attr("output").Range, "output"
	if e := d.Result; e != nil {
		if v, at, what = wl.check(e), e.Range, "result"; e.Bad {
			return
		}
		if cons, ok := e.Syntax.(*hclsyntax.ObjectConsExpr); ok {
			stepLinker{wl}.substituteAttributes(cons, a.out, a)
		}
	}
	raw, _ := v.Unmark()
	if raw.IsKnown() || raw.Type() != cty.DynamicPseudoType {
		if _, err := a.form.conform(v, a.out); err != nil {
			wl.Invalid(at, what, err)
		}
	}
	for i, o := range a.schema.Outputs {
		part := v
		if v.Type().IsObjectType() && v.Type().HasAttribute(o.Name) && !v.IsMarked() {
			part = v.GetAttr(o.Name)
		} else if v.Type().IsObjectType() && !v.IsMarked() {
			continue
		}
		a.schema.Outputs[i].Sensitive = o.Sensitive || part.ContainsMarked()
	}
}

// codes sets the error codes in the schema of a declared action. They are the codes of the plugin's
// action that the declared action uses, the codes of the fail_when blocks, and the codes in the
// attribute `errors`. If the plugin's action allows any code, the codes that the input block names
// are added. The method `codes` warns about a code in `errors` that cannot occur.
func (a *linkedAction) codes(wl *workflowLinker) {
	d, used := a.form.decl, a.form.used
	var conditions []*decl.Condition
	for _, r := range d.FailWhen {
		conditions = append(conditions, &r.Condition)
	}
	k := codeLinker{wl}.codesOf(used, d.Input, conditions...)
	k.others = "Action " + a.title() + " does not answer with"
	a.form.open = k.open
	all := map[string]schema.ErrorCode{}
	for _, code := range k.own {
		all[code] = schema.ErrorCode{Code: code}
	}
	for _, r := range d.FailWhen {
		if r.Code == nil {
			all[refusedCode] = schema.ErrorCode{Code: refusedCode}
		}
	}
	for _, c := range used.schema.Errors {
		if c.Code != schema.AnyCode || k.open {
			all[c.Code] = c
		}
	}
	for _, c := range d.Errors {
		if !validCode(c.Code) {
			wl.Errorf(c.Where, "Invalid value for errors", "%q is no error code: it is snake_case, at most 100 characters.", c.Code)
			continue
		}
		if _, known := all[c.Code]; !known && !k.open && !slices.Contains(engineCodes, c.Code) {
			wl.Warnf(c.Where, "Unknown error code", "%s the code %q.%s", k.others, c.Code, diag.DidYouMean(c.Code, sorted.Keys(all)))
		}
		all[c.Code] = schema.ErrorCode{Code: c.Code, Retryable: c.Retryable}
	}
	a.schema.Errors = nil
	for _, code := range sorted.Keys(all) {
		a.schema.Errors = append(a.schema.Errors, all[code])
	}
}

// DeclaredSchemas returns the schemas of the declared actions. The first key is the name of the
// agent, and the second key is the name of the action. It leaves out actions with errors.
func DeclaredSchemas(m *decl.Module, agents map[string]noun.AgentBinary) map[string]map[string]schema.Action {
	out := map[string]map[string]schema.Action{}
	if m.Partial {
		return out
	}
	r := &report.Reporter{Sources: m.Sources, Blocks: m.Blocks}
	l := &linker{Reporter: r, m: m, agents: map[string]*linkedAgent{}, failed: m.Failed}
	l.fileLevel = &eval.Evaluator{Funcs: m.Funcs, Vars: variableShapes(m.Variables), Shared: true}
	r.Bounded(func() {
		for _, n := range sorted.Keys(m.Agents) {
			l.agent(m.Agents[n], agents)
			actionLinker{l}.actions(l.agents[n])
			for name, a := range l.agents[n].declared {
				if a.broken {
					continue
				}
				if out[n] == nil {
					out[n] = map[string]schema.Action{}
				}
				out[n][name] = a.schema
			}
		}
	})
	return out
}
