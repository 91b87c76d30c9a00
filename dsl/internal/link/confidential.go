package link

import (
	"slices"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// confidential reports whether a run of the workflow may contain sensitive values, even if no
// variable is sensitive. It returns true in four cases:
//   - An expression calls secret() or sensitive().
//   - An output of the workflow is sensitive.
//   - The schema of an action declares an output as sensitive, or an argument that the workflow
//     gives.
//   - The workflow of a child run is confidential.
//
// The first case includes locals outside of workflows, even if no expression uses them.
func confidential(l *workflowLinker) bool {
	d := l.decl
	if blockHides(d.Block) {
		return true
	}
	for _, loc := range d.Locals {
		if exprHides(loc.Expr) {
			return true
		}
	}
	for _, o := range d.Outputs {
		if o.Sensitive {
			return true
		}
	}
	for _, s := range l.steps {
		if s.action == nil {
			continue
		}
		if c := s.action.child; c != nil && c.out.Confidential {
			return true
		}
		undo, given := s.action.schema.CompensatedBy, []syntax.Arg(nil)
		agent := s.decl.Agent
		if u := s.decl.Undo; u != nil {
			undo, agent, given = u.Action, u.Agent, u.Input
		}
		if hides(s.action, s.decl.Input) {
			return true
		}
		if la := l.agents[l.prefix+agent]; la != nil && undo != "" {
			if a := la.linked(undo); a != nil && hides(a, given) {
				return true
			}
		}
	}
	return false
}

// hides reports whether the schema of an action declares an output, or one of the arguments in the
// parameter `given`, as sensitive. For a declared action, it also returns true in two more cases:
// if this is so for the plugin's action and the arguments of the action block, or if the action
// block calls secret() or sensitive().
func hides(a *linkedAction, given []syntax.Arg) bool {
	if f := a.form; f != nil && (hides(f.used, f.decl.Input) || blockHides(f.decl.Block)) {
		return true
	}
	if slices.ContainsFunc(a.schema.Outputs, fieldHides) {
		return true
	}
	for _, f := range a.schema.Inputs {
		if fieldHides(f) && slices.ContainsFunc(given, func(x syntax.Arg) bool { return x.Name == f.Name }) {
			return true
		}
	}
	return false
}

func fieldHides(f schema.Field) bool { return f.Sensitive || value.HasSensitive(f.Type) }

func blockHides(b *syntax.Block) bool {
	if b == nil {
		return false
	}
	for _, e := range b.Attrs {
		if exprHides(e) {
			return true
		}
	}
	return slices.ContainsFunc(b.Args, func(x syntax.Arg) bool { return exprHides(x.Expr) }) || slices.ContainsFunc(b.Blocks, blockHides)
}

func exprHides(e *eval.Expr) bool {
	return e != nil && e.Syntax != nil && len(eval.Calls(e.Syntax, "secret", "sensitive")) > 0
}
