package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// DefaultCompensation is how long all undo work may take unless the workflow
// says otherwise.
const DefaultCompensation = 24 * time.Hour

// turn makes the run go back: nothing new starts, calls in flight are awaited
// (those that may be interrupted are asked to stop), and everything with an
// effect is undone. While nobody knows
// whether the pivot took effect, that has to be found out first.
func (d *decider) turn(f dsl.Failure) {
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
		if len(step.Before) == 0 {
			d.undo.push(i)
		}
	}
}

// newUndoDeadline starts the compensation's own clock.
func (d *decider) newUndoDeadline() {
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

// turnNode stops the forward part of a node. An attempt in flight stays open:
// its answer still decides the effect.
func (d *decider) turnNode(i int) {
	d.retract(i)
	n := d.edit(i)
	if n.Clearing { // what its undo brings still counts
		d.abandon(i)
		n.Undo = model.UndoPending
		n.State, n.Fwd.Ended = StepFailed, d.at
		return
	}
	n.Undo = model.UndoPending
	n.Queue, n.Hold = 0, 0
	d.stop(i)
	if n.Open() {
		n.Fwd.Act = model.Running
		return
	}
	n.Fwd.Act = model.Idle
	if !n.Ended() {
		n.State, n.Fwd.Ended = StepCancelled, d.at
	}
}

// stop asks the agents of a node to end forward work that is not needed any
// more, where the action is read-only or declares that it may be interrupted.
// Every other call is awaited until its complete-by: interrupting it would turn
// a result into an unknown outcome. A lookup is awaited too, because the undo
// needs its answer. Work that the agent does before it stops still counts.
func (d *decider) stop(i int) {
	n := d.get(i)
	if do := d.step(n).Do; !do.ReadOnly && !do.Cancellable {
		return
	}
	for _, a := range n.Attempts {
		if a.Status == model.AttemptOpen && a.Kind == model.CallDo && a.CompleteBy > d.at {
			d.commands = append(d.commands, Stop{Attempt: AttemptID{Node: i, Call: int(a.Call)}})
		}
	}
}

// retract takes back an attempt that this very decision started: nothing has
// been sent.
func (d *decider) retract(i int) {
	n, calls := d.get(i), d.original(i).Calls
	if n.Calls == calls {
		return
	}
	n = d.edit(i)
	n.Attempts = slices.DeleteFunc(n.Attempts, func(a model.Attempt) bool {
		if a.Call <= calls {
			return false
		}
		if a.Kind == model.CallDo {
			n.Fwd.Attempt, n.Fwd.Total = n.Fwd.Attempt-1, n.Fwd.Total-1
			n.Doubt = max(0, n.Doubt-1)
		}
		if a.Kind == model.CallUndo {
			n.Und.Attempt, n.Und.Total = n.Und.Attempt-1, n.Und.Total-1
		}
		return true
	})
	n.Calls = calls
	d.commands = slices.DeleteFunc(d.commands, func(c Command) bool {
		inv, ok := c.(Invoke)
		return ok && inv.Attempt.Node == i
	})
	if n.Fwd.Total == 0 {
		n.Fwd.Began = 0
	}
}

// pivotOpen reports whether nobody knows yet if the point of no return has
// been passed.
func (d *decider) pivotOpen() bool {
	if d.wf.Pivot < 0 || d.wf.Pivot >= int(d.run.Steps) || d.run.Passed {
		return false
	}
	n := d.get(d.wf.Pivot)
	return n.Effect() == EffectMaybe && n.Undo == model.UndoNone
}

// turnAtPivot postpones a turn until the pivot's outcome is known.
func (d *decider) turnAtPivot() {
	d.run.Turning = true
	n := d.get(d.wf.Pivot)
	d.stop(d.wf.Pivot)
	if n.Fwd.Kind != model.CallLookup { // what it planned to repeat is off
		d.rest(d.wf.Pivot)
		d.resolvePivot(d.wf.Pivot)
	}
}

// resolvePivot goes on when an attempt of the pivot has ended without result
// while a turn waits: the run turns if nothing can have happened, else it
// parks and nothing is undone.
func (d *decider) resolvePivot(i int) {
	n := d.edit(i)
	if n.Open() {
		n.Fwd.Act = model.Running
		return
	}
	switch {
	case n.Effect() == EffectNone:
		if !n.Ended() {
			d.endForward(i, StepFailed)
		}
		d.run.Turning = false
		if d.wf.CompensationMode == dsl.ModeManual && !d.run.Cancel {
			d.run.Overdue = true
			d.park(d.run.Failure)
			return
		}
		d.turn(d.run.Failure)
	case d.step(n).Do.Lookup && n.Fwd.Lookups < maxLookups && n.Fwd.Kind != model.CallLookup:
		d.lookUp(i)
	default:
		d.endForward(i, StepFailed)
		d.park(d.failure(i, n.Fwd.Blamed()))
	}
}

// pivotPassed notes the point of no return. A turn that waited is off.
func (d *decider) pivotPassed() {
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
	d.passRun() // the deadline may have passed while the turn waited
}

// park has the run wait for an operator (S59, S79). Nothing is undone.
func (d *decider) park(f dsl.Failure) {
	r := &d.run
	if r.Parked {
		return
	}
	r.Parked, r.ParkedAt, r.Begun = true, d.at, true
	if !r.Turning {
		r.Failure = f
	}
	d.alert("parked", f.Step, f.Code, f.Message)
}

// unpark lets the forward part go on. Clocks of steps stood still meanwhile.
func (d *decider) unpark() {
	r := &d.run
	stood := d.at - r.ParkedAt
	if r.Turning { // an operator goes on where a cancel had asked to turn back
		r.Turning, r.Cancel, r.NoUndo = false, false, false
	}
	r.Parked, r.ParkedAt = false, 0
	r.Failure = dsl.Failure{}
	for i := range d.count() {
		n := d.get(i)
		if n.Ended() {
			continue
		}
		if n.Fwd.Deadline != 0 && n.Fwd.Ready != d.at {
			d.edit(i).Fwd.Deadline = max(n.Fwd.Deadline+stood, d.at.Add(time.Microsecond))
		}
		if n.Clearing {
			d.edit(i).Und.Deadline = max(n.Und.Deadline+stood, d.at.Add(time.Microsecond))
		}
		d.reopen(i)
	}
}

// reopen plans again what parking or a pause kept from starting.
func (d *decider) reopen(i int) {
	n := d.get(i)
	switch {
	case n.Item:
	case n.Expanded:
		d.fan.push(i)
	case n.State == StepPending && n.Fwd.Ready == 0 && int(n.Deps) == len(d.step(n).After):
		d.ready.push(i)
	}
}

// settle ends the run when nothing is left to do, or says that it is stuck.
func (d *decider) settle() {
	r := &d.run
	switch {
	case r.Finished != 0:
	case r.Phase == model.PhaseForward && r.Done == r.Steps:
		if r.Parked { // what was in flight has brought it to a good end
			r.Parked, r.ParkedAt, r.Failure = false, 0, dsl.Failure{}
		}
		d.evaluateOutputs()
		d.finish(RunSucceeded)
	case d.liveNodes() > 0:
	case r.Phase == model.PhaseUndo && r.UndonePast == r.Steps:
		d.finish(d.undoneState())
	case r.Phase == model.PhaseUndo && !r.Stuck && !r.Held():
		r.Stuck = true
		d.alertStuck()
	case r.Phase == model.PhaseForward && !r.Parked && !r.Held():
		d.park(d.unresolved())
	}
}

// alertStuck names the undo that has failed. The error that turned the run does not
// help the person who has to clean up.
func (d *decider) alertStuck() {
	f, more := d.run.Failure, 0 // if the deadline passed before any undo could begin
	for i := range d.count() {
		n := d.get(i)
		switch {
		case n.Expanded || n.Undo != model.UndoFailed:
			continue
		case more == 0:
			f = dsl.Failure{Step: d.name(i), Code: n.Und.Code(), Message: n.Und.Message()}
		}
		more++
	}
	if more--; more > 0 {
		f.Message = strings.TrimSpace(fmt.Sprintf("%s (and %d more)", f.Message, more))
	}
	d.alert("compensation_failed", f.Step, f.Code, f.Message)
}

// undoneState names the end of a run that turned back.
func (d *decider) undoneState() RunState {
	switch {
	case d.run.Cancel:
		return RunCancelled
	case d.run.Undone+d.run.Left > 0:
		return RunCompensated
	}
	return RunFailed
}

// unresolved returns the failure of the first step that has failed and that
// nobody has dealt with.
func (d *decider) unresolved() dsl.Failure {
	for i := range d.count() {
		n := d.get(i)
		if n.State == StepFailed && (!n.Item || d.hopeless(i)) {
			return d.failure(i, n.Fwd.Blamed())
		}
	}
	return d.run.Failure
}

func (d *decider) finish(state RunState) {
	r := &d.run
	r.State, r.Finished = state, d.at
	r.Paused, r.Stuck = false, false
	r.PausedAt, r.PausedBy, r.PauseWhy = 0, "", ""
	r.LostAt, r.LostWhy = 0, ""
}

// evaluateOutputs computes the workflow's outputs. One that cannot be
// evaluated is null with a note; the run keeps its status.
func (d *decider) evaluateOutputs() {
	sum := int64(0)
	for _, o := range d.wf.Outputs {
		out := model.Output{Name: o.Name, Sensitive: o.Sensitive}
		v, err := o.Value(d.scope(nil))
		sum += int64(len(v.JSON()))
		switch {
		case err != nil:
			out.Problem = err.Error()
		case sum > d.ceilings().Values:
			out.Problem = fmt.Sprintf("%s: with it the run's outputs would have %d bytes together; the ceiling is %d", CodeLimit, sum, d.ceilings().Values)
			sum -= int64(len(v.JSON()))
		default:
			out.Value = d.s.keep(v)
		}
		d.run.Outputs = append(d.run.Outputs, out)
	}
}

// alert tells an operator (S59).
func (d *decider) alert(kind, step, code, message string) {
	d.commands = append(d.commands, Alert{Kind: kind, Step: step, Code: code, Message: message})
}
