package machine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A step with on_rerun = "undo_first" whose earlier attempts may have left
// something behind is cleared before its next attempt: its undo is called while
// the run still goes forward, by the rules of every undo, and then the step
// starts anew under a key of the next generation. What was undone under a key
// cannot be done again under it.

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

// clear begins to clear a node, as soon as none of its attempts can be at work.
func (d undoing) clear(i int) {
	n := d.edit(i)
	switch {
	case n.Open(): // its answer may make this needless
		n.Fwd.Act, n.State = model.Running, status.StepRunning
	case n.Quiet > d.at:
		d.forward().pause(i, n.Quiet)
	default:
		n.Clearing = true
		n.State, n.Fwd.Act = status.StepBackoff, model.Idle
		n.Queue, n.Hold = 0, 0
		n.Und = model.Track{Failures: n.Und.Failures, Total: n.Und.Total}
		d.climb(i)
	}
}

// reconsider continues the undo before another attempt, after it had to wait for a time or
// for the answer of a lookup.
func (d undoing) reconsider(i int) {
	n := d.get(i)
	switch {
	case n.Open():
	case n.Quiet > d.at:
		d.forward().pause(i, n.Quiet)
	default:
		d.climb(i)
	}
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

// clearingFails ends a clearing without success: there is no further attempt,
// and an operator has to look unless a catch takes the step's own failure.
func (d undoing) clearingFails(i int, m model.Miss) {
	n := d.edit(i)
	n.Und.Blame(m)
	d.abandon(i)
	first := n.Fwd.Blamed()
	if d.forward().catches(i, first) {
		return
	}
	f := d.forward().failure(i, model.Miss{Kind: m.Kind, Code: m.Code, Message: "undo before another attempt: " + m.Message})
	if !n.Item {
		d.forward().endForward(i, status.StepFailed)
		d.ending().park(f)
		return
	}
	a := d.edit(n.Of())
	a.Bad++
	if a.Fwd.Miss == model.MissNone {
		a.Fwd.Blame(first)
	}
	d.forward().endForward(i, status.StepFailed)
	if a.Bad > d.forward().tolerated(n.Of()) && !a.Ended() {
		d.forward().endForward(n.Of(), status.StepFailed)
		d.ending().park(f)
	}
}

// outOfTime ends a clearing whose next try would come too late for the step: the
// step has run out of time.
func (d undoing) outOfTime(i int) {
	d.abandon(i)
	last := d.get(i).Fwd.Blamed()
	d.forward().noTimeLeft(i, last)
	m := noTime(last)
	if !d.forward().catches(i, m) {
		d.forward().giveUp(i, m, true)
	}
}

// passClearing expires the deadline of a step that is being cleared, or of that
// undo.
func (d undoing) passClearing(i int) {
	if d.run.Parked {
		return
	}
	d.caller().closeAttempts(i, sdk.CodeTimeout)
	if n := d.get(i); n.Fwd.Deadline == 0 || n.Fwd.Deadline > d.at {
		d.undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the undo's deadline has passed"})
		return
	}
	d.abandon(i)
	d.forward().missed(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the step's deadline has passed"})
}
