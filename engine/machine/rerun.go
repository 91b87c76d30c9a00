package machine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// A step with on_rerun = "undo_first" whose earlier attempts may have left
// something behind is cleared before its next attempt: its undo is called while
// the run still goes forward, by the rules of every undo, and then the step
// starts anew under a key of the next generation. What was undone under a key
// cannot be done again under it.

// mustClear reports whether the undo has to be called before the next attempt.
func (d *decider) mustClear(n *node) bool {
	step := d.step(n)
	return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.effect() != EffectNone
}

// clearable reports whether what a node may have left behind can be undone
// before another attempt, so that this is no repetition.
func (d *decider) clearable(n *node) bool {
	step := d.step(n)
	if step.OnRerun != dsl.RerunUndoFirst || step.Undo == nil {
		return false
	}
	return n.known || step.Undo.Do.ByKey || !step.Undo.UsesSelf
}

// clear begins to clear a node, as soon as none of its attempts can be at work.
func (d *decider) clear(i int) {
	n := d.edit(i)
	switch {
	case n.open(): // its answer may make this needless
		n.fwd.act, n.state = running, StepRunning
	case n.quiet > d.at:
		d.pause(i, n.quiet)
	default:
		n.clearing = true
		n.state, n.fwd.act = StepBackoff, idle
		n.queue, n.hold = 0, 0
		n.und = track{failures: n.und.failures, total: n.und.total}
		d.climb(i)
	}
}

// reconsider goes on with a clearing that had to wait or to ask.
func (d *decider) reconsider(i int) {
	n := d.get(i)
	switch {
	case n.open():
	case n.quiet > d.at:
		d.pause(i, n.quiet)
	default:
		d.climb(i)
	}
}

// abandon ends the clearing of a node, whatever has become of it.
func (d *decider) abandon(i int) {
	if !d.get(i).clearing {
		return
	}
	n := d.edit(i)
	n.clearing, n.undo = false, undoNone
	n.und.act, n.und.attempt, n.und.lookups = idle, 0, 0
	n.und.began, n.und.ready, n.und.deadline, n.und.rest = 0, 0, 0, 0
	n.queue, n.hold = 0, 0
}

// cleared ends a clearing that has succeeded.
func (d *decider) cleared(i int) {
	d.edit(i).wipe(true)
	d.rerun(i)
}

// wipe makes a node one that has done nothing yet, with a new key if its undo
// was called under the present one.
func (n *node) wipe(newKey bool) {
	n.doubt, n.done, n.known, n.output = 0, false, false, held{}
	n.point, n.blob = 0, nil
	n.fwd.lookups = 0
	if newKey {
		n.gen++
	}
	n.undoReady, n.undoInput, n.undoDoubt = false, held{}, 0
	n.undoPoint, n.undoBlob = 0, nil
	n.und.total = 0
	n.und.blame(miss{})
}

// rerun starts the next attempt of a node that has nothing left behind.
func (d *decider) rerun(i int) {
	d.abandon(i)
	d.edit(i).fwd.kind = callDo
	d.launch.push(i)
}

// clearingFails ends a clearing without success: there is no further attempt,
// and an operator has to look unless a catch takes the step's own failure.
func (d *decider) clearingFails(i int, m miss) {
	n := d.edit(i)
	n.und.blame(m)
	d.abandon(i)
	first := n.fwd.blamed()
	if d.catches(i, first) {
		return
	}
	f := d.failure(i, miss{m.kind, m.code, "undo before another attempt: " + m.message})
	if !n.item {
		d.endForward(i, StepFailed)
		d.park(f)
		return
	}
	a := d.edit(n.of())
	a.bad++
	if a.fwd.miss == missNone {
		a.fwd.blame(first)
	}
	d.endForward(i, StepFailed)
	if a.bad > d.tolerated(n.of()) && !a.ended() {
		d.endForward(n.of(), StepFailed)
		d.park(f)
	}
}

// outOfTime ends a clearing whose next try would come too late for the step: the
// step has run out of time.
func (d *decider) outOfTime(i int) {
	d.abandon(i)
	m := noTime(d.get(i).fwd.blamed())
	d.edit(i).fwd.blame(m)
	if !d.catches(i, m) {
		d.giveUp(i, m, true)
	}
}

// passClearing expires the deadline of a step that is being cleared, or of that
// undo.
func (d *decider) passClearing(i int) {
	if d.run.parked {
		return
	}
	d.closeAttempts(i, sdk.CodeTimeout)
	if n := d.get(i); n.fwd.deadline == 0 || n.fwd.deadline > d.at {
		d.undoFails(i, miss{missDeadline, CodeDeadlineExceeded, "the undo's deadline has passed"})
		return
	}
	d.abandon(i)
	d.missed(i, miss{missDeadline, CodeDeadlineExceeded, "the step's deadline has passed"})
}
