package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// Codes of failures that the machine itself reports.
const (
	CodeDeadlineExceeded = "deadline_exceeded" // a step's, an undo's or the run's deadline passed
	CodeCancelled        = "cancelled"         // the run was cancelled
	CodeEngineLost       = "engine_lost"       // engines ended one after the other while they had the run in hand
	CodeExpression       = "expression_error"  // an expression could not be evaluated
	CodeOutcomeUnknown   = "outcome_unknown"   // an undo is impossible because nobody knows what there is to undo
)

// pass lets time pass to the event's time: the run's deadlines expire before
// those of steps, those before attempts, so that of several the outermost is
// reported.
func (d *decider) pass() {
	d.passRun()
	var due []int
	due = d.s.limits.upTo(d.at, due)
	for _, i := range ascending(due) {
		if n := d.get(i); n.limit() != 0 && n.limit() <= d.at {
			d.passDeadline(i)
		}
	}
	due = d.s.expiry.upTo(d.at, due[:0])
	for _, i := range ascending(due) {
		if x := d.get(i).expires(); x != 0 && x <= d.at {
			d.passAttempts(i)
		}
	}
}

func ascending(nodes []int) []int {
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// passRun looks at the run's own two deadlines (S57).
func (d *decider) passRun() {
	r := &d.run
	if d.deadlineRuns() && r.deadline <= d.at {
		switch {
		case r.passed || r.parked:
			r.overdue = true
			d.alert("overdue", "", CodeDeadlineExceeded, "the run's deadline has passed")
		default:
			f := dsl.Failure{Code: CodeDeadlineExceeded, Message: "the run's deadline has passed"}
			if d.wf.CompensationMode == dsl.ModeManual && !d.pivotOpen() {
				r.overdue = true
				d.park(f)
			} else {
				d.turn(f)
			}
		}
	}
	if r.phase == phaseUndo && !r.stuck && !r.undoExpired && r.undoDeadline != 0 && r.undoDeadline <= d.at {
		r.undoExpired = true
		for i := range d.count() {
			if d.get(i).und.act != idle || d.get(i).undo == undoActive && !d.get(i).expanded {
				d.closeAttempts(i, CodeDeadlineExceeded)
				d.undoFails(i, miss{missDeadline, CodeDeadlineExceeded, "the compensation's deadline has passed"})
			}
		}
	}
}

// deadlineRuns reports whether the passing of the run's deadline would still
// mean something.
func (d *decider) deadlineRuns() bool { return d.run.deadlineRuns() }

func (r *run) deadlineRuns() bool {
	return r.phase == phaseForward && r.deadline != 0 && !r.overdue && !r.turning
}

// passDeadline expires the deadline of a step or of an undo. Nothing expires
// forward while the run is parked.
func (d *decider) passDeadline(i int) {
	n := d.get(i)
	if n.clearing {
		d.passClearing(i)
		return
	}
	if n.undo != undoNone {
		d.closeAttempts(i, sdk.CodeTimeout)
		d.undoFails(i, miss{missDeadline, CodeDeadlineExceeded, "the undo's deadline has passed"})
		return
	}
	if d.run.parked || d.run.phase == phaseUndo || d.run.turning {
		return
	}
	m := miss{missDeadline, CodeDeadlineExceeded, "the step's deadline has passed"}
	if n.expanded {
		d.passAll(i, m)
		return
	}
	d.closeAttempts(i, sdk.CodeTimeout)
	d.missed(i, m)
}

// passAll expires the deadline of a for_each step: every instance that has not
// ended is over; those whose catch does not take it make the step fail.
func (d *decider) passAll(i int, m miss) {
	a := d.edit(i)
	d.frozen = i + 1
	a.next = a.count
	caught := true
	for k := a.first; k < a.first+a.count; k++ {
		n := d.edit(k)
		if n.ended() {
			caught = caught && !(n.state == StepFailed && d.hopeless(k))
			continue
		}
		if n.fwd.ready == 0 {
			a.active++ // it never began; it ends as if it had
		}
		d.closeAttempts(k, sdk.CodeTimeout)
		d.abandon(k)
		d.edit(k).fwd.blame(m)
		if !d.catches(k, m) {
			caught = false
			a.bad++
			d.endForward(k, StepFailed)
		}
	}
	d.frozen = 0
	if caught {
		d.aggregate(i)
		return
	}
	a.fwd.blame(m)
	d.giveUp(i, m, true)
}

// passAttempts ends the attempts of a node whose complete-by has passed, or of
// which nothing was heard for too long: their outcome is unknown (S17, S18).
func (d *decider) passAttempts(i int) {
	n := d.edit(i)
	var over []attempt
	for k := range n.attempts {
		a := &n.attempts[k]
		if a.status != attemptOpen || a.expires() > d.at {
			continue
		}
		message := "no answer by complete-by"
		if a.completeBy > d.at { // it may go on until then, but nobody waits for it
			message = "no heartbeat in time"
			d.commands = append(d.commands, Stop{Attempt: AttemptID{Node: i, Call: int(a.call)}})
		}
		d.closeUnknown(i, a, sdk.CodeTimeout, message)
		over = append(over, *a)
	}
	for _, a := range over {
		d.ended(i, int(a.call), a.kind, miss{missUnknown, sdk.CodeTimeout, a.message()})
	}
}

// closeAttempts ends all open attempts of a node: what they did is unknown.
func (d *decider) closeAttempts(i int, code string) {
	n := d.edit(i)
	for k := range n.attempts {
		if a := &n.attempts[k]; a.status == attemptOpen {
			d.closeUnknown(i, a, code, "no answer in time")
		}
	}
}

// closeUnknown ends an attempt that may have taken effect and that may still
// be at work until its complete-by and some more.
func (d *decider) closeUnknown(i int, a *attempt, code, message string) {
	n := d.edit(i)
	a.status, a.ended, a.said = attemptUnknown, d.at, said(code, message)
	n.quiet = max(n.quiet, a.completeBy.add(grace))
	n.tally(a.kind)
	if a.kind == callDo || a.kind == callLearn {
		n.timedOut = n.timedOut || code == sdk.CodeTimeout
	}
	if a.kind == callUndo {
		n.undoDoubt++
	}
}

// tally counts an attempt that ended without result (S63).
func (n *node) tally(kind callKind) {
	switch kind {
	case callDo:
		n.fwd.failures++
	case callUndo, callLearn:
		n.und.failures++
	}
}
