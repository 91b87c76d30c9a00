package machine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// An earlier attempt of a step with on_rerun = "undo_first" may have had an effect. Then the
// undo is called before the next attempt, while the run still goes forward. The code calls
// this clearing (Node.Clearing). The rules of all other undos also apply to clearing. After
// it, the step starts again with a new idempotency key. With the old key, the agent would not
// cause the effect again.
//
// This file decides whether a node must be cleared. It also ends clearing that succeeds or
// is not needed any more. The file undo.go begins and continues clearing. The file
// nodeend.go handles clearing that fails.

// mustClear reports whether the engine must call the undo of the node before the next attempt.
func (d undoing) mustClear(n *model.Node) bool {
	step := d.step(n)
	return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.Effect() != status.EffectNone
}

// clearable reports whether the possible effect of a node can be undone before another
// attempt. Then that attempt cannot cause the effect twice, even if the action is not
// idempotent.
func (d undoing) clearable(n *model.Node) bool {
	step := d.step(n)
	if step.OnRerun != dsl.RerunUndoFirst || step.Undo == nil {
		return false
	}
	return n.Known || step.Undo.Do.ByKey || !step.Undo.UsesSelf
}

// abandon stops the undo before the next attempt of node i, and resets the data of this undo.
// It does nothing if the node has no such undo.
func (d undoing) abandon(i int) {
	if !d.get(i).Clearing {
		return
	}
	n := d.edit(i)
	n.Clearing, n.Undo = false, model.UndoNone
	n.Und.Act, n.Und.Attempt, n.Und.Lookups = model.Idle, 0, 0
	n.Und.Began, n.Und.Ready, n.Und.Deadline, n.Und.Rest = 0, 0, 0, 0
	n.Queue, n.Hold = 0, 0
}

// cleared is called when the undo before the next attempt of node i has succeeded. It starts
// the next attempt, with a new idempotency key.
func (d undoing) cleared(i int) {
	d.edit(i).Wipe(true)
	d.rerun(i)
}

// rerun starts the next attempt of a node that has no effect now.
func (d undoing) rerun(i int) {
	d.abandon(i)
	d.edit(i).Fwd.Kind = model.CallDo
	d.launch.push(i)
}
