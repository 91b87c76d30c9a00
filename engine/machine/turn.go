package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// DefaultCompensation is how long the compensation of a run may take if the workflow does not
// set a limit.
const DefaultCompensation = 24 * time.Hour

// turn makes the run turn back because of the failure f. No new step starts. The run waits for
// calls in flight, but asks agents to stop those that may be interrupted. Then each step that
// has an effect is undone. If the outcome of the pivot is unknown, the run first waits until
// the outcome is known.
func (d undoing) turn(f dsl.Failure) {
	r := &d.run
	if r.Failure == (dsl.Failure{}) {
		r.Failure = f
	}
	if d.pivotOpen() {
		d.turnAtPivot()
		return
	}
	r.Phase = model.PhaseUndo
	r.Parked, r.Turning, r.Begun = false, false, true
	r.UndoStarted = d.at
	d.newUndoDeadline()
	d.ready.reset()
	d.launch.reset()
	d.fan.reset()
	for i := range d.count() {
		d.turnNode(i)
	}
	for i, step := range d.wf.Steps {
		if len(step.Before) == 0 && !step.Instance {
			d.undo.push(i)
		}
	}
}

// newUndoDeadline sets the deadline of the compensation. The time counts from now.
func (d undoing) newUndoDeadline() {
	limit := dsl.Limit{After: DefaultCompensation}
	if d.wf.CompensationDeadline != nil {
		if l, err := d.wf.CompensationDeadline(d.scope(nil)); err == nil {
			limit = l
		}
	}
	d.run.UndoExpired = false
	d.run.UndoDeadline = 0
	if at, ok := limit.From(d.at.Time()); ok {
		d.run.UndoDeadline = model.ToInstant(at)
	}
}

// turnNode stops the forward work of node i. An attempt in flight stays open, because its answer
// will show whether the node has an effect.
func (d undoing) turnNode(i int) {
	d.caller().retract(i)
	n := d.edit(i)
	if n.Clearing { // undo before the next attempt: the answer to this undo still counts
		d.abandon(i)
		n.Undo = model.UndoPending
		n.State, n.Fwd.Ended = status.StepFailed, d.at
		return
	}
	n.Undo = model.UndoPending
	n.Queue, n.Hold = 0, 0
	d.caller().stop(i)
	if n.Open() {
		n.Fwd.Act = model.Running
		return
	}
	n.Fwd.Act = model.Idle
	if !n.Ended() {
		n.State, n.Fwd.Ended = status.StepCancelled, d.at
	}
}

// turnAtPivot makes the run wait until the outcome of the pivot is known. The run turns back if the
// pivot has no effect, and continues forward if the pivot has succeeded.
func (d undoing) turnAtPivot() {
	d.run.Turning = true
	n := d.get(d.wf.Pivot)
	d.caller().stop(d.wf.Pivot)
	if n.Fwd.Kind != model.CallLookup { // drop the next attempt of the pivot, if it is planned
		d.caller().rest(d.wf.Pivot)
		d.resolvePivot(d.wf.Pivot)
	}
}

// resolvePivot is called while the run waits for the outcome of the pivot before it turns back:
// when this wait begins, and when an attempt of the pivot, node i, has ended without a result. If
// an attempt is open, resolvePivot waits for its end. If the pivot cannot have had an effect, the
// run turns back. But if the workflow's compensation mode is manual, and the run was not cancelled,
// the run is parked instead. If the outcome of the pivot is unknown and the action has a lookup,
// the lookup is planned. If the outcome stays unknown, the run is parked and nothing is undone.
func (d undoing) resolvePivot(i int) {
	n := d.edit(i)
	if n.Open() {
		n.Fwd.Act = model.Running
		return
	}
	switch {
	case n.OwnEffect() == status.EffectNone:
		if !n.Ended() {
			d.forward().endForward(i, status.StepFailed)
		}
		d.run.Turning = false
		if d.wf.CompensationMode == dsl.ModeManual && !d.run.Cancel {
			d.run.Overdue = true
			d.ending().park(d.run.Failure)
			return
		}
		d.turn(d.run.Failure)
	case d.step(n).Do.Lookup && n.Fwd.Lookups < maxLookups && n.Fwd.Kind != model.CallLookup:
		d.caller().lookUp(i)
	default:
		d.forward().endForward(i, status.StepFailed)
		d.ending().park(d.failure(i, n.Fwd.Blamed()))
	}
}

// pivotPassed records that the pivot has succeeded. If the run waited for this outcome before
// turning back, the run continues forward instead.
func (d undoing) pivotPassed() {
	r := &d.run
	r.Passed = true
	if !r.Turning {
		return
	}
	r.Turning = false
	if r.Cancel {
		r.Cancel, r.NoUndo = false, false
	} else {
		r.Overdue = true
		d.alert("overdue", "", r.Failure.Code, r.Failure.Message)
	}
	r.Failure = dsl.Failure{}
	d.clocks().passRun() // the deadline may have passed while the run waited for the pivot
}

// passRun expires the two deadlines of the run, if they have passed: the deadline of the forward
// work, and the deadline of the compensation (S57). It also makes the run turn back if the time
// StartBy has passed and no step has begun.
func (d clocks) passRun() {
	r := &d.run
	if d.run.DeadlineRuns() && r.Deadline <= d.at {
		switch {
		case r.Passed || r.Parked:
			r.Overdue = true
			d.alert("overdue", "", CodeDeadlineExceeded, "the run's deadline has passed")
		default:
			f := dsl.Failure{Code: CodeDeadlineExceeded, Message: "the run's deadline has passed"}
			if d.wf.CompensationMode == dsl.ModeManual && !d.pivotOpen() {
				r.Overdue = true
				d.ending().park(f)
			} else {
				d.undoing().turn(f)
			}
		}
	}
	if r.MustStart() && r.StartBy <= d.at {
		d.undoing().turn(dsl.Failure{Code: codeNotStarted, Message: "no step had begun at the time start_by"})
	}
	if r.Phase == model.PhaseUndo && !r.Stuck && !r.UndoExpired && r.UndoDeadline != 0 && r.UndoDeadline <= d.at {
		r.UndoExpired = true
		for i := range d.count() {
			if d.get(i).Und.Act != model.Idle || d.get(i).Undo == model.UndoActive && !d.get(i).Expanded {
				d.caller().closeAttempts(i, CodeDeadlineExceeded)
				d.undoing().undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the compensation's deadline has passed"})
			}
		}
	}
}
