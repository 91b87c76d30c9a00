package machine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A step with on_rerun = "undo_first" whose earlier attempts may have left
// something behind is cleared before its next attempt: its undo is called while
// the run still goes forward, by the rules of every undo, and then the step
// starts anew under a key of the next generation. What was undone under a key
// cannot be done again under it.
//
// Here is when that is needed, and how it ends without a failure. Undo.go begins and
// continues it. Nodeend.go ends it as failed.

// mustClear reports whether the undo has to be called before the next attempt.
func (d undoing) mustClear(n *model.Node) bool {
	step := d.step(n)
	return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.Effect() != status.EffectNone
}

// clearable reports whether what a node may have left behind can be undone
// before another attempt, so that this is no repetition.
func (d undoing) clearable(n *model.Node) bool {
	step := d.step(n)
	if step.OnRerun != dsl.RerunUndoFirst || step.Undo == nil {
		return false
	}
	return n.Known || step.Undo.Do.ByKey || !step.Undo.UsesSelf
}

// abandon ends the undo before another attempt of a node, if there is one, at any stage.
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

// cleared ends an undo before another attempt that has succeeded.
func (d undoing) cleared(i int) {
	d.edit(i).Wipe(true)
	d.rerun(i)
}

// rerun starts the next attempt of a node that has nothing left behind.
func (d undoing) rerun(i int) {
	d.abandon(i)
	d.edit(i).Fwd.Kind = model.CallDo
	d.launch.push(i)
}
