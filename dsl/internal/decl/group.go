package decl

import (
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A group block becomes two things: a step that starts a child run, and the workflow of this child
// run. The steps in the block are the steps of this workflow. These steps may refer to values that
// are declared outside of the group. For each such value the workflow gets a hidden variable, and
// the step that starts the group passes the value to the child run.

// A groupDecoder reads group blocks.
type groupDecoder struct{ *decoder }

// reserved reports a group with the name "notify". Its workflow would have the name
// WORKFLOW.notify, which is the name of a workflow that sends notifications.
func (d groupDecoder) reserved(b *syntax.Block) {
	if b.Label == "notify" && !d.m.Older {
		d.Errorf(b.DefRange, "Reserved name", "The engine uses the name %q for the runs of notify blocks. Use another name for this group.", b.Label)
	}
}

// shadows reports a step or local of a group if a step or local outside of the group, in a workflow
// that contains the group, has the same name. A reference to this name could mean the one inside of
// the group or the one outside of it.
func (d groupDecoder) shadows(w *Workflow) {
	for outer := w.Outer; outer != nil; outer = outer.Outer {
		for _, s := range w.Steps {
			if i, ok := outer.Index[s.Name]; ok {
				d.Errorf(s.Where, "Name used around the group", "Around this group, at %s, there is a step or group with the name %q already. Use another name here, because steps of a group can refer to steps around it.",
					report.Range(outer.Steps[i].Where), s.Name)
			}
		}
		for _, l := range w.OwnLocals {
			if first, ok := outer.Locals[l.Name]; ok && !first.File {
				d.Errorf(l.Where, "Name used around the group", "Around this group, at %s, there is a local value with the name %q already. Use another name here.", report.Range(first.Where), l.Name)
			}
		}
	}
}

// settings gives a group two settings of the workflow that contains the group: the defaults in the
// retry block, and the deadline of the compensation. If such a setting has references, the step
// that starts the group evaluates the setting, and passes the value to the group, as it does for
// any value that the group takes from outside.
func (d groupDecoder) settings(w *Workflow) {
	pass := func(name string, e *eval.Expr) *eval.Expr {
		if e == nil || e.Bad || e.Compiled == nil || e.Compiled.Constant != nil {
			return e
		}
		w.take(name, &taken{expr: e})
		return referenceTo(e.Range, "var", name)
	}
	w.CompensationDeadline = pass("compensation.deadline", w.Outer.CompensationDeadline)
	if r := w.Outer.Retry; r != nil {
		own := *r
		own.Attrs = map[string]*eval.Expr{}
		for _, name := range sorted.Keys(r.Attrs) {
			own.Attrs[name] = pass("retry."+name, r.Attrs[name])
		}
		w.Retry = &own
	}
}
