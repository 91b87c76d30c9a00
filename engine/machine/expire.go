package machine

import (
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
// parked, no deadline of forward work expires.
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

// passAll expires the deadline of the for_each step i. Every open instance ends with
// deadline_exceeded. An instance with an open child run ends only when the child ends. The step
// fails if catch does not accept this code. It also fails if an instance has failed earlier and
// only a person can deal with its effect.
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

// passAttempts closes those attempts of node i whose complete-by has passed, or whose agent
// was silent for longer than heartbeat_timeout. Their outcome is unknown (S17, S18).
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

// boundChildren gives each open call for a child run the complete-by that follows from the present
// deadlines of the run and the step. It adds a command for each call whose complete-by changes. A
// call whose time was over before keeps its complete-by: its child has already been asked to turn
// back.
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
			by := model.Earliest(a.Started.Add(childTimeout), d.forward().forwardBound(i))
			if by != a.CompleteBy && by > d.at {
				a.CompleteBy = by
				d.commands = append(d.commands, bound(i, a))
			}
		}
	}
}

// The type bounds computes the deadline of a child run from the deadline of the child's workflow
// and from the time until which the parent waits.
type bounds struct{ *decider }

// parentWaits sets the deadline of a child run after the parent has changed the time until which
// the parent waits. The deadline of the child's own workflow still counts. If a person has extended
// that deadline, the extended deadline counts.
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
	deadline := r.Deadline
	if d.byParent() {
		deadline, _ = d.own()
	}
	r.Deadline = model.Earliest(deadline, model.ToInstant(ev.Until))
	r.Overdue = r.Overdue && r.Deadline <= d.at
	d.caller().boundChildren()
}

// byParent reports whether the deadline of the run is the time until which its parent waits.
// That is so if this time comes before the deadline that the workflow sets.
func (d bounds) byParent() bool {
	r := &d.run
	if r.Parent.Run == 0 || r.Deadline == 0 {
		return false
	}
	own, ok := d.own()
	return !ok || r.Deadline < own
}

// own returns the deadline that the workflow of the run sets. The result `ok` is false if the
// workflow sets no deadline, or if the expression cannot be evaluated.
func (d bounds) own() (at model.Instant, ok bool) {
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
