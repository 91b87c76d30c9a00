package link

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
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
