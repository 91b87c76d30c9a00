package link

import (
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
)

// rerun sets out.OnRerun from the attribute `on_rerun`, which says how a new attempt treats earlier
// attempts. Without the attribute, it sets noun.RerunContinue if the action declares checkpoints.
// It reports an error if on_rerun needs checkpoints that the action does not declare, or if
// heartbeat_timeout needs heartbeats that the action does not declare. For a child run, rerun does
// nothing.
func (l stepLinker) rerun(d *decl.Step, ls *linkedStep, out *noun.Step) {
	a := ls.action
	if a == nil || a.child != nil {
		return
	}
	if e := d.Attr("heartbeat_timeout"); e != nil && !a.schema.Heartbeats {
		l.Errorf(e.Range, "Action without heartbeats",
			"Action %s declares no heartbeats, so heartbeat_timeout would end every attempt. Use timeout.", a.title())
	}
	e := d.Attr("on_rerun")
	switch d.OnRerun {
	case noun.RerunContinue:
		if !a.schema.Checkpoints {
			l.Errorf(e.Range, "Action without checkpoints",
				"Action %s declares no checkpoints, so there is nothing from which another attempt could continue.", a.title())
		}
	case noun.RerunUndoFirst:
		l.undoFirst(d, out, e)
	}
	out.OnRerun = d.OnRerun
	if d.OnRerun == noun.RerunDefault && a.schema.Checkpoints {
		out.OnRerun = noun.RerunContinue
	}
}

// undoFirst checks a step with on_rerun = "undo_first". It reports an error if the step is the
// pivot, or cannot be undone without its output. After the undo of an attempt, the next attempt
// needs a new idempotency key. So undoFirst also reports an error if the step sets idempotency_key,
// or if its input contains self.key.
func (l stepLinker) undoFirst(d *decl.Step, noun *noun.Step, e *eval.Expr) {
	switch {
	case noun.Pivot:
		l.Errorf(e.Range, "Not allowed on a pivot", "The pivot is one call that succeeds or not, so nothing of it is undone before another attempt.")
	case noun.Undo == nil || noun.NoUndo:
		// If there is a compensate block, the action in this block is invalid, and the error was
		// reported.
		if d.Undo == nil {
			l.Errorf(e.Range, "No undo to call first", "Step %q has no undo, so on_rerun = \"undo_first\" cannot call one. Write a compensate block.", d.Name)
		}
	case !noun.Undo.Do.ByKey && noun.Undo.UsesSelf:
		l.Errorf(e.Range, "Undo needs the output",
			"on_rerun = \"undo_first\" calls the undo of step %q when its output is not known. Use an undo with by_key = true, or one whose input does not mention self.output.", d.Name)
	case noun.Do.Keyed:
		l.Errorf(e.Range, "Key is part of the input",
			"What was undone under a key cannot be done again under it, so another attempt has another key. But the input of %s sends self.key, and the input is computed only once.", noun.Do.Agent+"."+noun.Do.Name)
	case d.Attr("idempotency_key") != nil:
		l.Errorf(e.Range, "Key stays the same",
			"What was undone under a key cannot be done again under it, and idempotency_key gives every attempt of step %q the same. Leave out one of the two.", d.Name)
	}
}
