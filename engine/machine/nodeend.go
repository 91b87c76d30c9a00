package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// This file ends the forward work and the undo of a node. The end of forward work may make the run
// turn back (turn.go). When the run turns back, the forward work of other nodes ends. So this file
// and turn.go call each other.

// endForward ends the forward work of node i in the given state.
func (d forward) endForward(i int, state status.StepState) {
	n := d.edit(i)
	n.State = state
	n.Fwd.Act, n.Fwd.Ended = model.Idle, d.at
	n.Queue, n.Hold = 0, 0
	handover(d).end(i)
	// The run has begun now, unless the step was skipped or is a for_each step without instances.
	if state != status.StepSkipped && (!n.Expanded || n.Count > 0) {
		d.run.Begin()
	}
	switch {
	case n.Undo != model.UndoNone:
		d.undo.push(i)
	case n.Item:
		a := d.edit(n.Of())
		a.Active--
		a.Over++
		d.aggregate(n.Of())
	case n.Well():
		d.run.Done++
		if i == d.wf.Pivot && state == status.StepSucceeded {
			d.undoing().pivotPassed()
		}
		for _, j := range d.wf.Steps[i].Before {
			b := d.edit(j)
			if b.Deps++; int(b.Deps) == len(d.wf.Steps[j].After) {
				d.ready.push(j)
			}
		}
	}
}

// aggregate updates the for_each step i after one of its instances has ended. If all instances
// have ended, it ends the step. Otherwise it lets further instances begin.
func (d forward) aggregate(i int) {
	a := d.get(i)
	if a.Ended() || d.frozen == i+1 || a.Bad > d.tolerated(i) {
		return
	}
	if a.Over == a.Count {
		if d.anyHopeless(i, i) {
			return // an operator must settle an unknown outcome first
		}
		d.edit(i).Fwd.Blame(model.Miss{})
		d.endForward(i, status.StepSucceeded)
		return
	}
	if d.fan.last() != i {
		d.fan.push(i)
	}
}

// tolerated returns how many instances of the for_each step i may fail; 0 if max_failures is
// not set, or if the settings of the step cannot be evaluated.
func (d forward) tolerated(i int) int {
	a := d.get(i)
	settings, err := d.settings(a)
	if err != nil || settings.MaxFailures == nil {
		return 0
	}
	return settings.MaxFailures(a.Count)
}

// anyHopeless reports whether only a person can deal with the effect of the failed node i, which is
// the step with the number `step` or one of its instances. If i is a for_each step itself,
// anyHopeless reports whether this is so for any failed instance of the step.
func (d forward) anyHopeless(step, i int) bool {
	if i != step || !d.get(step).Expanded {
		return d.hopeless(i)
	}
	a := d.get(step)
	for k := a.First; k < a.First+a.Count; k++ {
		if d.get(k).State == status.StepFailed && d.hopeless(k) {
			return true
		}
	}
	return false
}

// noTimeLeft records that node i failed and has no time for another attempt. The parameter `last`
// is the failure of the last attempt. noTimeLeft returns the new failure, which replaces the
// failure of the attempt.
func (d forward) noTimeLeft(i int, last model.Miss) model.Miss {
	n, m := d.edit(i), noTime(last)
	n.Data = d.s.keep(model.LastAttempt(last, n.Data.V))
	d.grown += int64(len(n.Data.V.JSON()))
	n.Fwd.Blame(m)
	return m
}

// catches ends node i as caught and returns true, if the step's catch accepts the code of the
// failure m. It returns false if catch does not accept the code, or if catch.output cannot be
// used.
func (d forward) catches(i int, m model.Miss) bool {
	n := d.get(i)
	c := d.step(n).Catch
	if c == nil {
		return false
	}
	codes, err := c.Errors(d.scope(n))
	if err != nil || !slices.Contains(codes, m.Code) && !slices.Contains(codes, "*") {
		return false
	}
	var out dsl.Value
	if c.Output != nil {
		if out, err = c.Output(caughtScope(d.decider, n, m)); err != nil {
			return false // catch.output failed, so the original failure counts
		}
		if _, ok := d.grow("catch.output", len(out.JSON())); !ok {
			return false
		}
	}
	d.edit(i).Caught = d.s.keep(out)
	d.endForward(i, status.StepCaught)
	return true
}

// resumeUndo continues the undo of node i, because the call for which the undo waited has
// ended.
func (d undoing) resumeUndo(i int) {
	n := d.edit(i)
	n.Undo = model.UndoPending
	n.Und.Act = model.Idle
	n.Queue, n.Hold = 0, 0
	d.undo.push(i)
}

// undoFails ends the undo of node i as failed. The steps on which this node depends cannot be
// undone now. The undo of all other steps continues. If the node was being undone before its next
// attempt, the method `clearingFails` decides what happens instead.
func (d undoing) undoFails(i int, m model.Miss) {
	n := d.edit(i)
	if n.Clearing {
		d.clearingFails(i, m)
		return
	}
	n.Undo = model.UndoFailed
	n.Und.Blame(m)
	n.Und.Act, n.Und.Ended = model.Idle, d.at
	n.Queue, n.Hold = 0, 0
	if n.Item {
		d.edit(n.Of()).Undo = model.UndoFailed
	}
}

// clearingFails is called when the undo before the next attempt of node i has failed. The step
// gets no other attempt. If the step's catch accepts the original failure, the step ends as
// caught. If max_failures tolerates the failed instance, the run continues. Otherwise the run
// is parked.
func (d undoing) clearingFails(i int, m model.Miss) {
	n := d.edit(i)
	n.Und.Blame(m)
	d.abandon(i)
	first := n.Fwd.Blamed()
	if d.forward().catches(i, first) {
		return
	}
	f := d.failure(i, model.Miss{Kind: m.Kind, Code: m.Code, Message: "undo before another attempt: " + m.Message})
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

// endUndo ends the undo of node i. The parameter `how` is the state of the undo from now on. After
// this, the steps on which the node depends may be undone. If the node was being undone before its
// next attempt, endUndo instead starts this attempt (cleared).
func (d undoing) endUndo(i int, how model.UndoState) {
	n := d.edit(i)
	if n.Clearing {
		d.cleared(i)
		return
	}
	n.Undo = how
	n.Und.Act, n.Und.Ended = model.Idle, d.at
	n.Queue, n.Hold = 0, 0
	// If effects of a child run stay, the field Kept says so, and the method `remember` has already
	// counted the node in Left or in Undeclared. The node must not count twice.
	switch {
	case n.Expanded:
	case how == model.UndoDone:
		d.run.Undone++
	case how == model.UndoLeft && !n.Kept.Has(status.KeptLeft):
		d.run.Left++
	case how == model.UndoDeclared && !n.Kept.Has(status.KeptDeclared):
		d.run.Undeclared++
	}
	if !n.Item {
		d.passed.push(i)
		return
	}
	a := d.edit(n.Of())
	if a.Past++; a.Past == a.Count {
		d.endUndo(n.Of(), d.strongest(a))
	}
}

// pivotKept is called when the pivot is a step with a child run, and this child run has failed
// after a pivot of its own. The effect of the child stays, so the run is not undone any more. If
// the run was cancelled without compensation, it does not continue: it ends.
func (d undoing) pivotKept() {
	if d.run.Turning && d.run.NoUndo {
		d.run.Passed = true
		return
	}
	d.pivotPassed()
}

// strongest returns one undo state for a for_each step, computed from the undo states of all
// its instances. It is UndoDone if at least one instance was undone. If no instance was
// undone, the next state counts, in this order: UndoLeft, UndoDeclared, UndoNothing.
func (d undoing) strongest(a *model.Node) model.UndoState {
	sum := model.UndoNothing
	for k := a.First; k < a.First+a.Count; k++ {
		sum = min(sum, d.get(k).Undo)
	}
	return sum
}
