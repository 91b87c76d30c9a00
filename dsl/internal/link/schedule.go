package link

import (
	"errors"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A scheduleLinker checks the schedules of a workflow.
type scheduleLinker struct{ *workflowLinker }

// schedules checks the schedules of the workflow and adds them to the linked workflow.
func (l scheduleLinker) schedules(b *bind) {
	for i, s := range l.decl.Schedules {
		l.out.Schedules = append(l.out.Schedules, s.Noun)
		if i == 0 && s.Noun.Select == nil && l.decl.Unique != nil && !l.decl.UsesTick(l.decl.Unique) {
			l.Errorf(l.decl.Unique.Range, "Unique key without run.tick",
				"Schedule %q starts a run at each tick. This key is the same at each tick, so the second tick would only find the first run. Put run.tick into the key: join(\"/\", compact([var.x, run.tick])).", s.Noun.Name)
		}
		if !s.Broken {
			l.scheduleVariables(s, b)
		}
	}
}

// scheduleVariables checks the values that a schedule gives to variables. It also reports a
// variable that has no value at a tick. A variable outside of workflows may get its value when the
// definition is published, so it may be missing here.
func (l scheduleLinker) scheduleVariables(s *decl.Schedule, b *bind) {
	given := map[string]bool{}
	open := false
	names := s.Given
	for _, a := range s.Noun.Variables {
		names = append(names, a.Name)
	}
	for _, name := range names {
		given[name] = true
		if b.decls[name] == nil {
			l.Errorf(s.VariablesAt, "Value for undeclared variable", "The workflow has no variable %q.%s", name, diag.DidYouMean(name, sorted.Keys(b.decls)))
			open = true
		}
	}
	for _, name := range sorted.Keys(b.decls) {
		v := b.decls[name]
		switch {
		case given[name], v.Default != cty.NilVal:
		case v.Deployment:
			open = true
		default:
			l.Errorf(s.VariablesAt, "Variable without a value", "At a tick of schedule %q the variable %q has no value. Write it into variables, or give the variable a default.", s.Noun.Name, name)
			open = true
		}
	}
	if open || s.Noun.Select != nil { // the values of rows are checked when they are read
		return
	}
	if _, diags := b.values(s.Noun.Variables); diags.HasErrors() {
		for _, d := range diags {
			if d.Severity == diag.SeverityError {
				l.Push(diag.Diagnostic{Severity: d.Severity, Summary: d.Summary, Detail: d.Detail, Range: report.Range(s.VariablesAt)})
			}
		}
	}
}

// An eventLinker links the on_event blocks of a workflow.
type eventLinker struct{ *workflowLinker }

// events links the on_event blocks of the workflow and adds them to the linked workflow.
func (l eventLinker) events(b *bind) {
	for _, e := range l.decl.OnEvents {
		e.Noun.When = exprFunc(l.workflowLinker, e.When, "when", cty.Bool, value.BoolOf)
		source := "on_event \"" + e.Noun.Name + "\""
		e.Noun.Variables = exprFunc(l.workflowLinker, e.Variables, "variables", cty.DynamicPseudoType, func(v cty.Value) ([]noun.Assignment, error) {
			return assignmentsOf(v, source)
		})
		e.Noun.Key = exprFunc(l.workflowLinker, e.Key, "key", cty.String, keyOf)
		l.out.OnEvents = append(l.out.OnEvents, e.Noun)
		if e.Key == nil {
			l.eventVariables(e, b)
		}
	}
}

// eventVariables checks the values that an on_event block gives to variables, as far as they are
// known before an event. It also reports a variable that has no value when an event comes. A
// variable outside of workflows may get its value when the definition is published, so it may be
// missing here.
func (l eventLinker) eventVariables(e *decl.OnEvent, b *bind) {
	given := cty.EmptyObjectVal
	if e.Variables != nil {
		given = l.quietly(e.Variables)
		if e.Variables.Bad || !given.Type().IsObjectType() || given.IsNull() {
			return // the names are not known before an event, or there was an error already
		}
	}
	given, _ = given.Unmark()
	values := given.AsValueMap()
	for _, name := range sorted.Keys(values) {
		v := b.decls[name]
		switch {
		case v == nil:
			l.Errorf(e.VariablesAt, "Value for undeclared variable", "The workflow has no variable %q.%s", name, diag.DidYouMean(name, sorted.Keys(b.decls)))
		case v.Sensitive:
			l.Errorf(e.VariablesAt, "Sensitive variable from an event",
				"Variable %q is sensitive, and a store keeps the data of events in clear. Send a reference to the secret, and let a step read it.", name)
		case values[name].IsWhollyKnown():
			if _, err := v.Convert(values[name]); err != nil {
				l.Errorf(e.VariablesAt, "Invalid value for variable", "on_event %q gives variable %q a value that does not fit its type %s: %s.", e.Noun.Name, name, v.TypeText, err)
			}
		}
	}
	for _, name := range sorted.Keys(b.decls) {
		v := b.decls[name]
		if _, ok := values[name]; !ok && v.Default == cty.NilVal && !v.Deployment {
			l.Errorf(e.VariablesAt, "Variable without a value", "When an event starts a run by on_event %q, the variable %q has no value. Write it into variables, or give the variable a default.", e.Noun.Name, name)
		}
	}
}

// assignmentsOf returns an assignment for each attribute of an object. The parameter source says
// where the values come from, for messages. assignmentsOf returns an error if v is not an object.
func assignmentsOf(v cty.Value, source string) ([]noun.Assignment, error) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil, errors.New("an object with a value for each variable is required, such as { id = event.data.id }")
	}
	values := v.AsValueMap()
	var list []noun.Assignment
	for _, name := range sorted.Keys(values) {
		a := noun.AssignmentIn(name, diag.Range{}, &hclsyntax.LiteralValueExpr{Val: values[name]}, nil)
		a.Source = source
		list = append(list, a)
	}
	return list, nil
}
