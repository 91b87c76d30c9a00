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
// deadline_exceeded; if it has an open child run, it ends when the child ends. The step fails if
// catch does not accept this code. It also fails if an instance has failed earlier and only a
// person can deal with its effect.
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

// passClearing is called if node i is being undone before its next attempt, and the deadline of this
// undo or of the step has passed. It ends the undo, unless the run is parked.
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
