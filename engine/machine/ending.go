package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// park makes the run wait for an operator because of the failure f (S59, S79). It undoes
// nothing.
func (d ending) park(f dsl.Failure) {
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

// unpark continues the forward work of a parked run. It moves the deadlines of steps by the time
// for which the run was parked.
func (d ending) unpark() {
	r := &d.run
	stood := d.at - r.ParkedAt
	// The run was about to turn back; the operator decided to continue forward instead.
	if r.Turning {
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

// reopen plans the start of a node that could not start while the run was parked or paused.
func (d ending) reopen(i int) {
	n := d.get(i)
	switch {
	case n.Item:
	case n.Expanded:
		d.fan.push(i)
	case n.State == status.StepPending && n.Fwd.Ready == 0 && int(n.Deps) == len(d.step(n).After):
		d.ready.push(i)
	}
}

// conclude ends the run if no work is left. If work is left, but no node can continue without a
// person, there are two cases. If the run goes forward, conclude parks it. If the run is being
// undone, conclude raises the alert that the compensation has failed. In three cases, conclude does
// neither: the run is paused, is parked because engines died, or goes forward and still waits for a
// place or its unique key.
func (d ending) conclude() {
	r := &d.run
	switch {
	case r.Finished != 0:
	case r.Phase == model.PhaseForward && r.Done == r.Steps:
		if r.Parked { // the answer to a call in flight made the last step of the parked run succeed
			r.Parked, r.ParkedAt, r.Failure = false, 0, dsl.Failure{}
		}
		d.evaluateOutputs()
		d.finish(status.RunSucceeded)
	case d.liveNodes() > 0:
	case r.Phase == model.PhaseUndo && r.UndonePast == r.Steps:
		d.finish(d.undoneState())
	case r.Phase == model.PhaseUndo && !r.Stuck && !r.Held():
		r.Stuck = true
		d.alertStuck()
	case r.Phase == model.PhaseForward && !r.Parked && !r.Held() && !r.Awaits:
		d.park(d.unresolved())
	}
}

// alertStuck raises the alert that the compensation has failed. The alert names the first undo
// that failed, because the operator must look at that undo.
func (d ending) alertStuck() {
	// If the deadline passed before an undo could begin, no undo has failed. Then the alert
	// names the failure of the run.
	f, more := d.run.Failure, 0
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

// undoneState returns the final state of a run whose compensation has ended.
func (d ending) undoneState() status.RunState {
	switch {
	case d.run.Cancel:
		return status.RunCancelled
	case d.run.Undone+d.run.Left > 0:
		return status.RunCompensated
	}
	return status.RunFailed
}

// unresolved returns the failure of the first failed step that was not handled by catch, by
// max_failures or by a person. If there is no such step, it returns the failure of the run.
func (d ending) unresolved() dsl.Failure {
	for i := range d.count() {
		n := d.get(i)
		if n.State == status.StepFailed && (!n.Item || d.hopeless(i)) {
			return d.failure(i, n.Fwd.Blamed())
		}
	}
	return d.run.Failure
}

func (d ending) finish(state status.RunState) {
	r := &d.run
	r.State, r.Finished = state, d.at
	r.Paused, r.Stuck = false, false
	r.PausedAt, r.PausedBy, r.PauseWhy = 0, "", ""
	r.LostAt, r.LostWhy = 0, ""
	if d.wf.Notifies != "" && state != status.RunSucceeded {
		d.alert("notify_failed", r.Failure.Step, r.Failure.Code, r.Failure.Message)
	}
}

// evaluateOutputs computes the outputs of the workflow. If an output cannot be evaluated, or makes
// the outputs too large, its value is null, the field Problem holds the reason, and the run
// succeeds anyway.
func (d ending) evaluateOutputs() {
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

// Lost returns the record that parks a run because engines died while they read or decided it. For
// a run that has not ended, Decide makes the same record for the event EngineLost. Lost does not
// need a State. It needs only the status of the run in the store, which is the parameter `was`. So
// the caller need not read the journal: reading the journal may be the reason why the engines died.
// The parameter `at` must not be before the run's last record. If the run already needs a person,
// its status stays the same and the record raises no alert.
//
// Only the store keeps other engines away from such a run (store.Hands.Suspects). In this
// package, the run behaves like a paused run: answers count and deadlines pass. It continues
// when a person sends retry, cancel or compensate.
func Lost(at time.Time, ev EngineLost, was status.RunState) Record {
	patch := model.RunPatch{Mask: model.RunLostBit, To: model.Run{
		Head: &model.NoHead, Rare: &model.Rare{LostAt: model.ToInstant(at), LostWhy: ev.Why},
	}}
	r := Record{at: model.ToInstant(at), event: ev, run: &patch}
	if !was.NeedsHuman() {
		patch.Mask |= model.RunStateBit
		patch.To.State = status.RunParked
		r.commands = []Command{Alert{Kind: status.RunParked.String(), Code: CodeEngineLost, Message: ev.Why}}
	}
	return r
}
