package machine

import (
	"github.com/saga-engine/engine/dsl"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A person who stated the outcome of a step (SettleRequested) may have been wrong. The person can
// correct the statement until the step or a dependent step is called, or until a dependent step
// has ended. If a dependent step is only ready, or waits for its agent, a correction makes that
// step pending again. A statement about an undo cannot be corrected, because the run continues
// with it at once.

// correct replaces what a person stated earlier about the outcome of node i. If that is not
// possible any more, correct refuses the verb.
func (d verbs) correct(i int, ev SettleRequested) {
	n := d.get(i)
	switch {
	case ev.As == SettleUndone:
		d.refuse("settle", ev.By, "that %s has been undone can only be said while nobody knows its outcome", d.name(i))
		return
	case ev.As == SettleNotDone && !n.Done, ev.As == SettleSucceeded && n.Done && sameOutcome(n, ev):
		d.refuse("settle", ev.By, "the outcome of %s is not in doubt: it was settled so already, and is known", d.name(i))
		return
	case ev.As != SettleNotDone && ev.As != SettleSucceeded:
		d.refuse("settle", ev.By, "say what happened")
		return
	case n.Done && ev.As == SettleNotDone && n.Of() == d.wf.Pivot && d.run.Passed:
		d.refuse("settle", ev.By, "the pivot has succeeded: only its output can be corrected")
		return
	}
	if n.Stated == model.StatedEnd {
		if j := d.relying(n.Of()); j >= 0 {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has begun on the strength of that: it cannot be corrected any more", d.name(i), n.Manual, d.name(j))
			return
		}
		if n.Item && d.get(n.Of()).Ended() && d.get(n.Of()).Well() && ev.As != SettleSucceeded {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has ended on the strength of that: it cannot be corrected any more", d.name(i), n.Manual, d.name(n.Of()))
			return
		}
	}
	var out dsl.Value
	if ev.As == SettleSucceeded {
		var ok bool
		if out, ok = d.stated(i, ev); !ok {
			return
		}
	}
	d.forget()
	switch {
	case n.Undo != model.UndoNone:
		d.correctUndone(i, ev, out)
	case n.Done && ev.As == SettleSucceeded:
		d.correctOutput(i, ev, out)
	default:
		d.takeBack(i)
		d.settleForward(i, ev)
	}
}

// sameOutcome reports whether the node already has the output that the person states.
func sameOutcome(n *model.Node, ev SettleRequested) bool {
	return n.Known && string(n.Output.V.JSON()) == string(ev.Output.JSON())
}

// relying returns the index of a step that depends on the given step and has begun; -1 if there
// is none. If there is one, the outcome of the given step cannot be corrected any more.
func (d verbs) relying(step int) int {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.Calls > 0 || b.Expanded || b.Loop != (model.Loop{}) || b.Fwd.Attempt > 0 || b.Ended() && b.State != status.StepCancelled {
			return j
		}
	}
	return -1
}

// forget drops cached values, because they were computed from a result that changes now.
func (d verbs) forget() {
	d.s.cache = &cache{}
	d.seen = seen{}
}

// correctOutput replaces the output of a settled node by out.
func (d verbs) correctOutput(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.Known, n.Output = true, d.s.keep(out)
	n.Manual = ev.By
	if n.Stated == model.StatedEnd {
		d.unready(n.Of())
	}
}

// unready makes dependents of a step pending again, if they are ready but were not called. The
// reason is that their inputs may change.
func (d verbs) unready(step int) {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.Ended() || b.Fwd.Ready == 0 {
			continue
		}
		b = d.edit(j)
		b.State = status.StepPending
		b.Fwd.Act, b.Fwd.Kind = model.Idle, model.CallNone
		b.Fwd.Ready, b.Fwd.Deadline, b.Fwd.Until = 0, 0, 0
		b.Queue, b.Hold = 0, 0
		b.Prepared, b.Input, b.BizKey = false, model.Held{}, ""
		d.ending().reopen(j)
	}
}

// takeBack removes what a person stated about node i. Then the outcome of the node is unknown
// again, as before the statement.
func (d verbs) takeBack(i int) {
	n := d.edit(i)
	ended := n.Stated == model.StatedEnd
	n.Stated = model.StatedNothing
	n.Done, n.Known, n.Output = false, false, model.Held{}
	n.Doubt = max(1, n.Doubt)
	if !ended || n.State == status.StepFailed && d.run.Parked {
		return
	}
	if n.Item {
		d.takeBackItem(i)
	} else {
		if n.Well() {
			d.run.Done--
			for _, j := range d.wf.Steps[i].Before {
				d.edit(j).Deps--
			}
			d.unready(i)
		}
		n.Fwd.Blame(doubtful(n))
	}
	n.State, n.Caught = status.StepFailed, model.Held{}
	d.ending().park(d.failure(i, n.Fwd.Blamed()))
}

// takeBackItem takes back what a person said about the outcome of instance i: the instance counts
// as failed, as before. If max_failures
// does not tolerate one more failure, the for_each step fails, too.
func (d verbs) takeBackItem(i int) {
	n := d.edit(i)
	m := doubtful(n)
	n.Fwd.Blame(m)
	if n.State == status.StepFailed {
		return
	}
	a := d.edit(n.Of())
	if a.Bad++; a.Bad > d.forward().tolerated(n.Of()) {
		a.State, a.Fwd.Ended = status.StepFailed, d.at
		a.Queue, a.Hold = 0, 0
		a.Fwd.Act = model.Idle
		a.Fwd.Blame(m)
	}
}

// doubtful looks for the node's latest forward attempt with an unknown outcome, and returns the
// failure of that attempt. If there is none, it returns a failure with the code
// CodeOutcomeUnknown.
func doubtful(n *model.Node) model.Miss {
	if a := n.LastUnknown(); a != nil {
		return model.Miss{Kind: model.MissUnknown, Code: a.Code(), Message: a.Message()}
	}
	return model.Miss{Kind: model.MissUnknown, Code: CodeOutcomeUnknown, Message: ""}
}

// correctUndone corrects what a person stated about the effect of node i, while the run is being
// undone. The caller has checked that no undo was called after that statement.
func (d verbs) correctUndone(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.Manual = ev.By
	was := n.Undo
	if ev.As == SettleSucceeded {
		n.Done, n.Known, n.Output = true, true, d.s.keep(out)
	} else {
		n.Wipe(false)
	}
	n.UndoReady, n.UndoInput = false, model.Held{}
	switch {
	case was == model.UndoPending || was == model.UndoFailed && n.UndoDoubt > 0:
		return
	case was == model.UndoFailed:
		d.reviveUndo()
	}
	n.Queue, n.Hold = 0, 0
	if ev.As == SettleSucceeded {
		d.freshUndo(i)
		return
	}
	d.awake(i)
	d.undoing().endUndo(i, model.UndoNothing)
}
