package machine

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// pass expires all deadlines and attempts that are due at the time of the decision. Deadlines
// of the run expire first, then deadlines of steps and undos, then attempts. So if the
// deadlines of both the run and a step have passed, the failure names the deadline of the run.
func (d clocks) pass() {
	d.passRun()
	var due []int
	due = d.s.limits.upTo(d.at, due)
	for _, i := range ascending(due) {
		if n := d.get(i); n.Limit() != 0 && n.Limit() <= d.at {
			d.passDeadline(i)
		}
	}
	due = d.s.expiry.upTo(d.at, due[:0])
	for _, i := range ascending(due) {
		if x := d.get(i).Expires(); x != 0 && x <= d.at {
			d.passAttempts(i)
		}
	}
}

// passDeadline expires the deadline of node i: of its forward work or of its undo. While the run is
// parked, no deadline of forward work expires, and no deadline of an undo before the next attempt.
func (d clocks) passDeadline(i int) {
	n := d.get(i)
	if n.Clearing {
		d.passClearing(i)
		return
	}
	if n.Undo != model.UndoNone {
		d.caller().closeAttempts(i, sdk.CodeTimeout)
		d.undoing().undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the undo's deadline has passed"})
		return
	}
	if d.run.Parked || d.run.Phase == model.PhaseUndo || d.run.Turning {
		return
	}
	m := model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the step's deadline has passed"}
	if n.Expanded {
		d.passAll(i, m)
		return
	}
	if d.waits().timedOut(i) {
		return
	}
	if d.caller().outlast(i) { // the step waits until its child run has ended
		d.edit(i).Fwd.Deadline = 0
		return
	}
	d.caller().closeAttempts(i, sdk.CodeTimeout)
	d.forward().missed(i, m)
}

// passAll expires the deadline of the for_each step i. An open instance ends with
// deadline_exceeded, with two exceptions. A wait with on_timeout = "continue" succeeds. An instance
// with an open child run ends only when the child ends. The step fails if catch does not accept the
// code of such an instance. It also fails if an instance has failed earlier and only a person can
// deal with its effect.
func (d clocks) passAll(i int, m model.Miss) {
	a := d.edit(i)
	d.frozen = i + 1
	a.Next = a.Count
	caught := true
	for k := a.First; k < a.First+a.Count; k++ {
		n := d.edit(k)
		if n.Ended() {
			caught = caught && !(n.State == status.StepFailed && d.hopeless(k))
			continue
		}
		if n.Fwd.Ready == 0 {
			a.Active++ // the instance never began, but ending it subtracts one from Active
		}
		if d.waits().timedOut(k) {
			caught = caught && d.get(k).State != status.StepFailed
			continue
		}
		if d.caller().outlast(k) {
			a.Fwd.Deadline = 0
			continue
		}
		d.caller().closeAttempts(k, sdk.CodeTimeout)
		d.undoing().abandon(k)
		d.edit(k).Fwd.Blame(m)
		if !d.forward().catches(k, m) {
			caught = false
			a.Bad++
			d.forward().endForward(k, status.StepFailed)
		}
	}
	d.frozen = 0
	if caught {
		d.forward().aggregate(i)
		return
	}
	a.Fwd.Blame(m)
	d.forward().giveUp(i, m, true)
}

// passAttempts closes those attempts of node i whose complete-by has passed, or whose agent was
// silent for longer than heartbeat_timeout. Their outcome is unknown (S17, S18). A forward call for
// a child run stays open, and the method `outlast` asks the child to turn back.
func (d clocks) passAttempts(i int) {
	if d.caller().outlast(i) {
		return
	}
	n := d.edit(i)
	var over []model.Attempt
	for k := range n.Attempts {
		a := &n.Attempts[k]
		if a.Status != model.AttemptOpen || a.Expires() > d.at {
			continue
		}
		message := "no answer by complete-by"
		if a.CompleteBy > d.at { // only the heartbeat is late, so the call may still run
			message = "no heartbeat in time"
			d.commands = append(d.commands, Stop{Attempt: AttemptID{Node: i, Call: int(a.Call)}})
		}
		d.caller().closeUnknown(i, a, sdk.CodeTimeout, message)
		over = append(over, *a)
	}
	for _, a := range over {
		d.answers().ended(i, int(a.Call), a.Kind, model.Miss{Kind: model.MissUnknown, Code: sdk.CodeTimeout, Message: a.Message()})
	}
}

// passClearing is called if node i is being undone before its next attempt, and the deadline of
// this undo or of the step has passed. It ends the undo, unless the run is parked.
func (d clocks) passClearing(i int) {
	if d.run.Parked {
		return
	}
	d.caller().closeAttempts(i, sdk.CodeTimeout)
	if n := d.get(i); n.Fwd.Deadline == 0 || n.Fwd.Deadline > d.at {
		d.undoing().undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the undo's deadline has passed"})
		return
	}
	d.undoing().abandon(i)
	d.forward().missed(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the step's deadline has passed"})
}

// The deadline of a run also limits its child runs and groups, because the time until which a step
// waits for a child is a deadline of the child. A child gets this time with its start. If the
// deadline of the parent changes later, the parent moves the complete-by of its open calls for
// child runs. The engine of the parent sends the new time to each child (ParentWaits).

// verbExtend is the name of the verb ParentWaits in a refusal.
const verbExtend = "extend"

// leadChildren adds the commands for open child runs that follow from this decision. If the run is
// paused or parked now, the runs of its groups must be paused. If the run continues now, these
// pauses end. Child runs of other steps are independent, so they are not paused. If the deadline of
// the run has changed, or the run was parked or has left that state, the child runs get new
// deadlines.
func (d caller) leadChildren() {
	before, now := &d.s.run, &d.run
	parked := before.Parked != now.Parked
	if now.Phase == model.PhaseForward && (parked || before.Deadline != now.Deadline) {
		d.boundChildren()
	}
	if holdsGroups(before) == holdsGroups(now) {
		return
	}
	for i := range d.count() {
		n := d.get(i)
		if c := d.step(n).Child; c == nil || !c.Group || !n.Open() {
			continue
		}
		for k := range n.Attempts {
			a := &n.Attempts[k]
			if a.Status != model.AttemptOpen || !d.isChild(n, a.Kind) {
				continue
			}
			pause := d.pauseOfGroup(i, a)
			d.amend(i, a, pause, func(inv *Invoke) { inv.Pause = pause })
		}
	}
}

// amend applies the function `change` to the call of the attempt `a` of node i, if this decision
// sends the call. If an earlier decision has made the call, its child run may exist already. In
// this case amend adds the command c, which the engine sends to the child.
func (d caller) amend(i int, a *model.Attempt, c Command, change func(*Invoke)) {
	for k := range d.commands {
		if inv, call := d.commands[k].(Invoke); call && inv.Attempt == (AttemptID{Node: i, Call: int(a.Call)}) {
			change(&inv)
			d.commands[k] = inv
		}
	}
	if i < len(d.s.nodes) && a.Call <= d.s.nodes[i].Calls {
		d.commands = append(d.commands, c)
	}
}

// boundChildren gives each open call for a child run the complete-by that follows from the present
// deadlines of the run and the step. It adds a command for each call whose complete-by changes. If
// the time of a call is over already, the call keeps its complete-by, because the child has already
// been asked to turn back.
func (d caller) boundChildren() {
	for i := range d.count() {
		if n := d.get(i); d.step(n).Child == nil || n.Undo != model.UndoNone || !n.Open() {
			continue
		}
		n := d.edit(i)
		for k := range n.Attempts {
			a := &n.Attempts[k]
			if !waitsForChild(a) {
				continue
			}
			by := a.Started.Add(childTimeout)
			if !d.run.Parked { // while a run is parked, no deadline of its forward work expires
				by = model.Earliest(by, d.forward().forwardBound(i))
			}
			if by == a.CompleteBy || by <= d.at {
				continue
			}
			a.CompleteBy = by
			d.amend(i, a, bound(i, a), func(inv *Invoke) { inv.CompleteBy = by.Time() })
		}
	}
}

// The type bounds computes the deadline of a run from two times: the own deadline of the run, and
// the time until which its parent waits. The earlier time is the deadline.
type bounds struct{ *decider }

// ownAndUntil returns the own deadline of the run, and the time until which its parent waits; 0 =
// none. The own deadline comes from the workflow. A person may have extended it, or a move may have
// changed it.
func (d bounds) ownAndUntil() (own, until model.Instant) {
	r := &d.run
	switch {
	case r.Parent.Run == 0:
		return r.Deadline, 0
	case r.Bound != (model.Bound{}):
		return r.Bound.Own, r.Bound.Until
	}
	// An older engine has started the run, and has stored only the earlier one of the two times. If
	// this time is not the deadline of the workflow, it is the time until which the parent waits.
	if own, ok := d.written(); !ok || r.Deadline < own {
		return own, r.Deadline
	}
	return r.Deadline, 0
}

// set gives the run the deadline that follows from the two times.
func (d bounds) set(own, until model.Instant) {
	r := &d.run
	r.Deadline = model.Earliest(own, until)
	if r.Parent.Run != 0 {
		r.Bound = model.Bound{Own: own, Until: until}
	}
	r.Overdue = r.Overdue && r.Deadline != 0 && r.Deadline <= d.at
}

// parentWaits sets the deadline of a child run after the parent has changed the time until which
// the parent waits. The own deadline of the child still counts.
func (d bounds) parentWaits(ev ParentWaits) {
	r := &d.run
	switch {
	case r.Parent.Run == 0:
		d.verbs().refuse(verbExtend, ev.By, "the run has no parent")
		return
	case r.Phase != model.PhaseForward || r.Turning:
		d.verbs().refuse(verbExtend, ev.By, "the run turns back, so its deadline has no effect any more")
		return
	}
	own, _ := d.ownAndUntil()
	d.set(own, model.ToInstant(ev.Until))
}

// byParent reports whether the deadline of the run is the time until which its parent waits.
func (d bounds) byParent() bool {
	own, until := d.ownAndUntil()
	return until != 0 && (own == 0 || until < own)
}

// refuses returns why a person cannot extend the deadline of the run by the duration `by`; "" = the
// person can. A person can extend the deadline of a child run only within the time for which the
// parent waits.
func (d bounds) refuses(by time.Duration) string {
	_, until := d.ownAndUntil()
	switch {
	case by <= 0 || until == 0 || d.run.Phase != model.PhaseForward:
		// The parent sets no limit for the extension. A run that is being undone has another
		// deadline.
		return ""
	case d.byParent():
		return "the deadline is the time until which the parent " + d.run.Parent.Name + " waits"
	case d.at.Add(by) > until:
		return "the parent " + d.run.Parent.Name + " does not wait so long"
	}
	return ""
}

// written returns the deadline that the workflow of the run sets. The result `ok` is false if the
// workflow sets no deadline, or if the expression cannot be evaluated.
func (d bounds) written() (at model.Instant, ok bool) {
	if d.wf.Deadline == nil {
		return 0, false
	}
	limit, err := d.wf.Deadline(d.scope(nil))
	if err != nil {
		return 0, false
	}
	own, ok := limit.From(d.run.Started.Time())
	if !ok {
		return 0, false
	}
	return model.ToInstant(own), true
}
