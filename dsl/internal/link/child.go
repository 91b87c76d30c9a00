package link

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// A childLinker links steps that start child runs. It first links the workflow of the child. After
// that it treats the workflow like an action: the variables of the workflow are the arguments of
// the action, and the outputs of the workflow are the output of the action.
type childLinker struct{ *workflowLinker }

// maxLinked limits the number of workflows of a definition. The workflows of libraries count, too.
// If a module uses a library under several names, the workflows of the library count once for each
// name.
const maxLinked = 20_000

// action links the workflow of a child run and returns it in the form of an action.
func (l childLinker) action(c *decl.Child) *linkedAction {
	if c.Workflow == nil {
		return nil
	}
	if len(l.workflows) > maxLinked {
		l.Errorf(c.Where, "Too many workflows", "The module and the libraries from which it starts child runs have more than %d workflows. Use fewer libraries.", maxLinked)
		return nil
	}
	of := l.linker
	if c.Library != "" {
		own := *of
		own.m, own.prefix = l.m.Libraries[c.Library].Module, l.prefix+c.Library+"."
		own.fileLevel = own.library(own.m).ctx.ev
		of = &own
	}
	return childAction(of.workflow(c.Workflow), c)
}

// childAction returns a linked workflow in the form of an action.
func childAction(child *workflowLinker, c *decl.Child) *linkedAction {
	a := &linkedAction{
		agent: &linkedAgent{decl: &decl.Agent{Name: noun.ChildAgent, Plugin: noun.ChildAgent}},
		name:  child.out.Name, child: child,
		schema: schema.Action{Idempotent: true, Cancellable: true, CompensatedBy: noun.ChildUndo},
	}
	in := map[string]cty.Type{}
	for _, name := range sorted.Keys(c.Workflow.Variables) {
		v := c.Workflow.Variables[name]
		in[name] = v.Type.WithoutOptionalAttributesDeep()
		a.schema.Inputs = append(a.schema.Inputs, schema.Field{Name: name, Sensitive: v.Sensitive})
	}
	out := map[string]cty.Type{}
	for _, o := range c.Workflow.Outputs {
		v, _ := child.quietly(o.Value).UnmarkDeep()
		out[o.Name] = v.Type()
		a.schema.Outputs = append(a.schema.Outputs, schema.Field{Name: o.Name, Sensitive: o.Sensitive})
	}
	a.childIn = cty.ObjectWithOptionalAttrs(in, sorted.Keys(in))
	a.out = cty.ObjectWithOptionalAttrs(out, sorted.Keys(out))
	return a
}

// group links the workflow of a group and returns it in the form of an action. The group can read
// values of the workflow that contains the group. These values have the same types inside and
// outside of the group.
func (l childLinker) group(s *decl.Step) *linkedAction {
	if s.Child.Workflow == nil {
		return nil
	}
	l.world.Each = eachBefore(l.quietly(s.Attr("for_each")))
	taken := map[string]cty.Value{}
	for _, x := range s.Child.Passed {
		if s.Child.Workflow.Variables[x.Name].Hidden {
			taken[x.Name] = l.quietly(x.Expr)
		}
	}
	child := l.newWorkflow(s.Child.Workflow)
	vars := child.world.Vars.AsValueMap()
	for name, v := range taken {
		raw, _ := v.UnmarkDeep()
		child.ev.Vars[name] = eval.VariableShape{Type: raw.Type()}
		vars[name] = v
		child.out.Confidential = child.out.Confidential || v.ContainsMarked()
	}
	child.world.Vars = cty.ObjectVal(vars)
	child.link()
	return childAction(child, s.Child)
}

// step links the child run of a step: its input, settings and error codes.
func (l childLinker) step(d *decl.Step, ls *linkedStep, out *noun.Step) {
	settings := forwardDefaults(false)
	settings.Timeout = noun.ChildTimeout
	out.Settings, ls.static = settingsOf(l.workflowLinker, settings, stepSettings(l.decl, d, false))
	out.Retryable = func(string) bool { return false }
	a := ls.action
	if a == nil {
		for _, x := range d.Input {
			l.check(x.Expr)
		}
		return
	}
	out.Child = &noun.Child{Workflow: a.child.out, Group: d.Child.Group}
	out.Do = &noun.Action{
		Agent: noun.ChildAgent, Name: a.name, Idempotent: true, Cancellable: true,
		Output: childOutput(a), Skeleton: skeletonFunc(a.schema.Outputs, a.out),
	}
	out.Input = l.input(d, a)
	if d.Catch != nil {
		codeLinker(l).codes(d.Catch.Attr("errors"), codeLinker(l).codesOf(a, nil, d.Conditions()...), noun.AllCodes)
	}
}

// childOutput returns the function for the field Output of noun.Action. The function converts
// the outputs of a child run to the types that are known before a run. If an output cannot be
// converted, the function keeps it unchanged, because only the workflow of the child says which
// outputs are valid.
func childOutput(a *linkedAction) func([]byte) (value.Value, error) {
	return func(raw []byte) (value.Value, error) {
		if err := value.CheckDepth(raw); err != nil {
			return value.Value{}, fmt.Errorf("outputs: %w", err)
		}
		v, err := value.DecodeJSON(raw)
		if err != nil {
			return value.Value{}, fmt.Errorf("outputs: %w", err)
		}
		given := map[string]cty.Value{}
		if !v.IsNull() && v.Type().IsObjectType() {
			given = v.AsValueMap()
		}
		attrs := map[string]cty.Value{}
		for _, o := range a.schema.Outputs {
			x, ok := given[o.Name]
			if !ok {
				x = cty.NullVal(cty.DynamicPseudoType)
			}
			if y, err := value.Conform(x, a.out.AttributeType(o.Name)); err == nil {
				x = y
			}
			attrs[o.Name] = x
		}
		return value.Encode(value.MarkFields(cty.ObjectVal(attrs), a.schema.Outputs), false)
	}
}

// undo returns the undo of a step with a child run: the child run undoes its own steps. The engine
// finds the child run by the idempotency key of the call. If the child run does not exist yet, the
// undo creates the child run, which then begins no step. To make this possible, the undo has the
// same input as the call. The second result holds the settings of the undo.
func (l childLinker) undo(a *linkedAction) (*noun.Undo, *noun.Settings) {
	base := undoDefaults()
	base.Timeout = noun.ChildTimeout
	settings, static := settingsOf(l.workflowLinker, base, nil)
	return &noun.Undo{
		Do: &noun.Action{
			Agent: noun.ChildAgent, Name: a.name, Idempotent: true, ByKey: true, Cancellable: false,
			Output: func([]byte) (value.Value, error) { return value.NewValue([]byte("{}"), nil, nil), nil },
		},
		Input: func(s *eval.Scope) (value.Value, error) {
			if s == nil || s.Self == nil {
				return value.Value{}, eval.ErrNoScope
			}
			return s.Self.Input, nil
		},
		Retryable: func(string) bool { return false }, Settings: settings, Declared: true,
	}, static
}

// undoable reports an error if the engine could not undo the child run of a step. Usually, a
// workflow with a single step needs no undo for this step, because no later step can fail. But if
// the workflow is the workflow of a child run, the child run must turn back with its parent. So the
// single step then needs a compensate block, or compensation = "none". The parameter `later` is
// true if the step s is after the pivot.
func (l childLinker) undoable(s *linkedStep, later bool) {
	if s.action == nil || s.action.child == nil || later || s.noun == nil || s.noun.Undo == nil || s.decl.Undo != nil || len(l.decl.Index) == 1 && l.decl.Outer == nil {
		return
	}
	child := s.action.child
	for _, inner := range child.steps {
		if inner.noun != nil && inner.noun.NoUndo && !inner.decl.NoUndo {
			l.Errorf(s.decl.Where, fmt.Sprintf("No way to undo step %q", s.decl.Name),
				"It starts %s, whose only step %q changes things and declares no compensation. Add a compensate block there, or state compensation = \"none\" there.", s.action.title(), inner.decl.Name)
		}
	}
}

// A childInput is one value that a step gives to a variable of a child run.
type childInput struct {
	name string
	expr *eval.Expr
	at   diag.Range
}

// input checks the values that a step gives to the variables of a child run. It returns a function
// for the run: the function evaluates these values, and returns the values of all variables of the
// child.
func (l childLinker) input(d *decl.Step, a *linkedAction) noun.ValueFunc {
	vars := d.Child.Workflow.Variables
	title := upperFirst(a.title())
	var list []childInput
	known := map[string]cty.Value{}
	written := map[string]bool{}
	add := func(x syntax.Arg) {
		written[x.Name] = true
		list = append(list, childInput{x.Name, x.Expr, report.Range(x.Expr.Range)})
	}
	for _, x := range d.Input {
		v, ok := vars[x.Name]
		switch {
		case !ok:
			l.Errorf(x.Where, "Unsupported argument", "%s has no variable %q.%s", title, x.Name, diag.DidYouMean(x.Name, ownVariables(vars)))
			l.check(x.Expr)
			continue
		case v.Deployment:
			l.Errorf(x.Where, "Unsupported argument", "Variable %q is declared for the whole module, so a child run has the same value as its parent. Remove this line.", x.Name)
			l.check(x.Expr)
			continue
		}
		known[x.Name] = l.inputValue(v, x, a.title())
		add(x)
	}
	for _, x := range d.Child.Passed {
		known[x.Name] = l.check(x.Expr)
		add(x)
	}
	for _, name := range ownVariables(vars) {
		if v := vars[name]; !written[name] && v.Default == cty.NilVal {
			hint := ""
			if v.Description != "" {
				hint = " (" + trimStop(v.Description) + ")"
			}
			l.Errorf(d.InputAt, "Missing required argument", "%s needs a value for its variable %q%s, which is %s. Write %s = ... in the input block of step %q.",
				title, name, hint, v.TypeText, name, d.Name)
		}
	}
	b := &bind{ev: a.child.ev, decls: vars}
	ev, self := l.ev, max(l.cur, 0)
	return func(s *eval.Scope) (value.Value, error) {
		given := make(map[string]cty.Value, len(list))
		for _, x := range list {
			v, err := ev.Run(x.expr.Compiled, s, self)
			if err != nil {
				return value.Value{}, err
			}
			if given[x.name], err = accepted(vars[x.name], v); err != nil {
				return value.Value{}, fmt.Errorf("%s: variable %q of %s: %w", x.at, x.name, a.title(), err)
			}
		}
		out, err := b.given(given)
		if err != nil {
			return value.Value{}, fmt.Errorf("input of %s: %w", a.title(), err)
		}
		return out, nil
	}
}

// ownVariables returns the names of the variables that the workflow itself declares, sorted. It
// leaves out the variables of the module.
func ownVariables(vars map[string]*decl.Variable) []string {
	var out []string
	for _, name := range sorted.Keys(vars) {
		if !vars[name].Deployment {
			out = append(out, name)
		}
	}
	return out
}

// inputValue checks a value that a step gives to a variable of a child run, and returns the value.
// If the value is not known before a run, inputValue checks only its type. After an error it
// returns an unknown value.
func (l childLinker) inputValue(v *decl.Variable, x syntax.Arg, title string) cty.Value {
	got := l.check(x.Expr)
	if x.Expr.Bad {
		return cty.DynamicVal
	}
	if !v.Sensitive && got.ContainsMarked() {
		l.Errorf(x.Expr.Range, "Sensitive value in input", "Variable %q of %s is not sensitive, so its value would be stored and shown in clear. Write sensitive = true in the variable block.", v.Name, title)
		return cty.DynamicVal
	}
	if raw, _ := got.UnmarkDeep(); raw.Type() == cty.DynamicPseudoType && !raw.IsKnown() {
		return got
	}
	if _, err := accepted(v, got); err != nil {
		l.Errorf(x.Expr.Range, "Invalid value for argument", "Variable %q of %s: %s.", v.Name, title, err)
		return cty.DynamicVal
	}
	return got
}

var (
	errSensitiveInput = errors.New("the value is sensitive, but the variable is not; write sensitive = true in the variable block")
	errNullInput      = errors.New("a value is required, this is null")
)

// accepted converts a value to the type of a variable of a child run. It returns an error if the
// variable cannot have the value. If the value is null and the variable must not be null, the
// variable gets its default: then accepted returns cty.NilVal and no error.
func accepted(v *decl.Variable, x cty.Value) (cty.Value, error) {
	if !v.Sensitive && !v.Hidden && x.ContainsMarked() {
		return cty.NilVal, errSensitiveInput
	}
	if x.IsKnown() && x.IsNull() && !v.Nullable {
		if v.Default == cty.NilVal {
			return cty.NilVal, errNullInput
		}
		return cty.NilVal, nil
	}
	if v.Hidden {
		return x, nil
	}
	return v.Convert(x)
}

// given returns the values of all variables as one object. The map `vals` holds the given values. A
// variable that is not in `vals` has its default. The method `given` returns an error if a variable
// has no value, or if a validation fails.
func (b *bind) given(vals map[string]cty.Value) (value.Value, error) {
	all := make(map[string]cty.Value, len(b.decls))
	for name, v := range b.decls {
		x := vals[name]
		if x == cty.NilVal {
			x = v.Default
		}
		if x == cty.NilVal {
			return value.Value{}, fmt.Errorf("variable %q has no value", name)
		}
		if v.Sensitive {
			x = x.Mark(value.SensitiveMark{})
		}
		all[name] = x
	}
	r := &report.Reporter{}
	b.validate(r, b.decls, all, nil)
	if diags := r.Finish(); diags.HasErrors() {
		return value.Value{}, errors.New(trimStop(diags[0].Detail))
	}
	return value.Encode(cty.ObjectVal(all), false)
}
