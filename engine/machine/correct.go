package machine

import "github.com/saga-engine/engine/dsl"

// A person who settled a step may have been wrong. The statement can be
// corrected until something was done on its strength: until a call of the step
// or of a step that depends on it is made, or such a step ends. What has only
// become ready, or waits for its agent, is taken back. Statements about an undo
// cannot be corrected, because the run goes on with them at once.

// A statement says what followed from a settlement that can still be corrected.
// Numbers are persisted.
type statement uint8

const (
	statedNothing statement = 0 // no settlement, or a call was made since
	statedEffect  statement = 1 // it says what is left behind, no more
	statedEnd     statement = 2 // the step ended by it, or waits for a person
)

// correctable reports whether there is a statement that another may replace.
func (n *node) correctable() bool {
	return n.stated != statedNothing && !n.expanded && !n.clearing && !n.open() &&
		(n.undo == undoNone || n.undo == undoPending || n.undo == undoActive || n.undo == undoFailed)
}

// correct replaces what a person stated about a step.
func (d *decider) correct(i int, ev SettleRequested) {
	n := d.get(i)
	switch {
	case ev.As == SettleUndone:
		d.refuse("settle", ev.By, "that %s has been undone can only be said while nobody knows its outcome", d.name(i))
		return
	case ev.As == SettleNotDone && !n.done, ev.As == SettleSucceeded && n.done && sameOutcome(n, ev):
		d.refuse("settle", ev.By, "the outcome of %s is not in doubt: it was settled so already, and is known", d.name(i))
		return
	case ev.As != SettleNotDone && ev.As != SettleSucceeded:
		d.refuse("settle", ev.By, "say what happened")
		return
	case n.done && ev.As == SettleNotDone && n.of() == d.wf.Pivot && d.run.passed:
		d.refuse("settle", ev.By, "the pivot has succeeded: only its output can be corrected")
		return
	}
	if n.stated == statedEnd {
		if j := d.relying(n.of()); j >= 0 {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has begun on the strength of that: it cannot be corrected any more", d.name(i), n.manual, d.name(j))
			return
		}
		if n.item && d.get(n.of()).ended() && d.get(n.of()).well() && ev.As != SettleSucceeded {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has ended on the strength of that: it cannot be corrected any more", d.name(i), n.manual, d.name(n.of()))
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
	case n.undo != undoNone:
		d.correctUndone(i, ev, out)
	case n.done && ev.As == SettleSucceeded:
		d.correctOutput(i, ev, out)
	default:
		d.takeBack(i)
		d.settleForward(i, ev)
	}
}

// sameOutcome reports whether a node has the output that is stated.
func sameOutcome(n *node, ev SettleRequested) bool {
	return n.known && string(n.output.v.JSON()) == string(ev.Output.JSON())
}

// relying returns a step that has begun on the strength of a step's end; -1 =
// there is none.
func (d *decider) relying(step int) int {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.calls > 0 || b.expanded || b.fwd.attempt > 0 || b.ended() && b.state != StepCancelled {
			return j
		}
	}
	return -1
}

// forget drops what expressions have made of results so far: one of them
// changes.
func (d *decider) forget() {
	d.s.cache = &cache{}
	d.seen = seen{}
}

// correctOutput gives a settled step another output.
func (d *decider) correctOutput(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.known, n.output = true, d.s.keep(out)
	n.manual = ev.By
	if n.stated == statedEnd {
		d.unready(n.of())
	}
}

// unready makes the dependents of a step start over that have not begun: what
// they were made ready with has changed.
func (d *decider) unready(step int) {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.ended() || b.fwd.ready == 0 {
			continue
		}
		b = d.edit(j)
		b.state = StepPending
		b.fwd.act, b.fwd.kind = idle, callNone
		b.fwd.ready, b.fwd.deadline, b.fwd.until = 0, 0, 0
		b.queue, b.hold = 0, 0
		b.prepared, b.input, b.bizKey = false, held{}, ""
		d.reopen(j)
	}
}

// takeBack makes a node of the forward part one of which nobody knows whether it
// took effect, as it was before it was settled.
func (d *decider) takeBack(i int) {
	n := d.edit(i)
	ended := n.stated == statedEnd
	n.stated = statedNothing
	n.done, n.known, n.output = false, false, held{}
	n.doubt = max(1, n.doubt)
	if !ended || n.state == StepFailed && d.run.parked {
		return
	}
	if n.item {
		d.takeBackItem(i)
	} else {
		if n.well() {
			d.run.done--
			for _, j := range d.wf.Steps[i].Before {
				d.edit(j).deps--
			}
			d.unready(i)
		}
		n.fwd.blame(n.doubtful())
	}
	n.state, n.caught = StepFailed, held{}
	d.park(d.failure(i, n.fwd.blamed()))
}

// takeBackItem is takeBack for an instance whose step has not ended.
func (d *decider) takeBackItem(i int) {
	n := d.edit(i)
	m := n.doubtful()
	n.fwd.blame(m)
	if n.state == StepFailed {
		return
	}
	a := d.edit(n.of())
	if a.bad++; a.bad > d.tolerated(n.of()) {
		a.state, a.fwd.ended = StepFailed, d.at
		a.queue, a.hold = 0, 0
		a.fwd.act = idle
		a.fwd.blame(m)
	}
}

// doubtful returns the failure of the latest attempt whose outcome is unknown.
func (n *node) doubtful() miss {
	for k := len(n.attempts) - 1; k >= 0; k-- {
		if a := &n.attempts[k]; a.kind == callDo && a.status == attemptUnknown {
			return miss{missUnknown, a.code(), a.message()}
		}
	}
	return miss{missUnknown, CodeOutcomeUnknown, ""}
}

// correctUndone corrects what is left behind while the run is being undone and
// the step's undo has not been called.
func (d *decider) correctUndone(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.manual = ev.By
	was := n.undo
	if ev.As == SettleSucceeded {
		n.done, n.known, n.output = true, true, d.s.keep(out)
	} else {
		n.wipe(false)
	}
	n.undoReady, n.undoInput = false, held{}
	switch {
	case was == undoPending || was == undoFailed && n.undoDoubt > 0:
		return
	case was == undoFailed:
		d.reviveUndo()
	}
	n.queue, n.hold = 0, 0
	if ev.As == SettleSucceeded {
		d.freshUndo(i)
		return
	}
	d.awake(i)
	d.endUndo(i, undoNothing)
}
