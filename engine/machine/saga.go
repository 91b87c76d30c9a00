package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
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
	if r.failure == (dsl.Failure{}) {
		r.failure = f
	}
	if d.pivotOpen() {
		d.turnAtPivot()
		return
	}
	r.phase = phaseUndo
	r.parked, r.turning, r.begun = false, false, true
	r.undoStarted = d.at
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
	d.run.undoExpired = false
	d.run.undoDeadline = 0
	if at, ok := limit.From(d.at.time()); ok {
		d.run.undoDeadline = toInstant(at)
	}
}

// turnNode stops the forward part of a node. An attempt in flight stays open:
// its answer still decides the effect.
func (d *decider) turnNode(i int) {
	d.retract(i)
	n := d.edit(i)
	if n.clearing { // what its undo brings still counts
		d.abandon(i)
		n.undo = undoPending
		n.state, n.fwd.ended = StepFailed, d.at
		return
	}
	n.undo = undoPending
	n.queue, n.hold = 0, 0
	d.stop(i)
	if n.open() {
		n.fwd.act = running
		return
	}
	n.fwd.act = idle
	if !n.ended() {
		n.state, n.fwd.ended = StepCancelled, d.at
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
	for _, a := range n.attempts {
		if a.status == attemptOpen && a.kind == callDo && a.completeBy > d.at {
			d.commands = append(d.commands, Stop{Attempt: AttemptID{Node: i, Call: int(a.call)}})
		}
	}
}

// retract takes back an attempt that this very decision started: nothing has
// been sent.
func (d *decider) retract(i int) {
	n, calls := d.get(i), d.original(i).calls
	if n.calls == calls {
		return
	}
	n = d.edit(i)
	n.attempts = slices.DeleteFunc(n.attempts, func(a attempt) bool {
		if a.call <= calls {
			return false
		}
		if a.kind == callDo {
			n.fwd.attempt, n.fwd.total = n.fwd.attempt-1, n.fwd.total-1
			n.doubt = max(0, n.doubt-1)
		}
		if a.kind == callUndo {
			n.und.attempt, n.und.total = n.und.attempt-1, n.und.total-1
		}
		return true
	})
	n.calls = calls
	d.commands = slices.DeleteFunc(d.commands, func(c Command) bool {
		inv, ok := c.(Invoke)
		return ok && inv.Attempt.Node == i
	})
	if n.fwd.total == 0 {
		n.fwd.began = 0
	}
}

// pivotOpen reports whether nobody knows yet if the point of no return has
// been passed.
func (d *decider) pivotOpen() bool {
	if d.wf.Pivot < 0 || d.wf.Pivot >= int(d.run.steps) || d.run.passed {
		return false
	}
	n := d.get(d.wf.Pivot)
	return n.effect() == EffectMaybe && n.undo == undoNone
}

// turnAtPivot postpones a turn until the pivot's outcome is known.
func (d *decider) turnAtPivot() {
	d.run.turning = true
	n := d.get(d.wf.Pivot)
	d.stop(d.wf.Pivot)
	if n.fwd.kind != callLookup { // what it planned to repeat is off
		d.rest(d.wf.Pivot)
		d.resolvePivot(d.wf.Pivot)
	}
}

// resolvePivot goes on when an attempt of the pivot has ended without result
// while a turn waits: the run turns if nothing can have happened, else it
// parks and nothing is undone.
func (d *decider) resolvePivot(i int) {
	n := d.edit(i)
	if n.open() {
		n.fwd.act = running
		return
	}
	switch {
	case n.effect() == EffectNone:
		if !n.ended() {
			d.endForward(i, StepFailed)
		}
		d.run.turning = false
		if d.wf.CompensationMode == dsl.ModeManual && !d.run.cancel {
			d.run.overdue = true
			d.park(d.run.failure)
			return
		}
		d.turn(d.run.failure)
	case d.step(n).Do.Lookup && n.fwd.lookups < maxLookups && n.fwd.kind != callLookup:
		d.lookUp(i)
	default:
		d.endForward(i, StepFailed)
		d.park(d.failure(i, n.fwd.blamed()))
	}
}

// pivotPassed notes the point of no return. A turn that waited is off.
func (d *decider) pivotPassed() {
	r := &d.run
	r.passed = true
	if !r.turning {
		return
	}
	r.turning = false
	if r.cancel {
		r.cancel, r.noUndo = false, false
	} else {
		r.overdue = true
		d.alert("overdue", "", r.failure.Code, r.failure.Message)
	}
	r.failure = dsl.Failure{}
	d.passRun() // the deadline may have passed while the turn waited
}

// park has the run wait for an operator (S59, S79). Nothing is undone.
func (d *decider) park(f dsl.Failure) {
	r := &d.run
	if r.parked {
		return
	}
	r.parked, r.parkedAt, r.begun = true, d.at, true
	if !r.turning {
		r.failure = f
	}
	d.alert("parked", f.Step, f.Code, f.Message)
}

// unpark lets the forward part go on. Clocks of steps stood still meanwhile.
func (d *decider) unpark() {
	r := &d.run
	stood := d.at - r.parkedAt
	if r.turning { // an operator goes on where a cancel had asked to turn back
		r.turning, r.cancel, r.noUndo = false, false, false
	}
	r.parked, r.parkedAt = false, 0
	r.failure = dsl.Failure{}
	for i := range d.count() {
		n := d.get(i)
		if n.ended() {
			continue
		}
		if n.fwd.deadline != 0 && n.fwd.ready != d.at {
			d.edit(i).fwd.deadline = max(n.fwd.deadline+stood, d.at.add(time.Microsecond))
		}
		if n.clearing {
			d.edit(i).und.deadline = max(n.und.deadline+stood, d.at.add(time.Microsecond))
		}
		d.reopen(i)
	}
}

// reopen plans again what parking or a pause kept from starting.
func (d *decider) reopen(i int) {
	n := d.get(i)
	switch {
	case n.item:
	case n.expanded:
		d.fan.push(i)
	case n.state == StepPending && n.fwd.ready == 0 && int(n.deps) == len(d.step(n).After):
		d.ready.push(i)
	}
}

// settle ends the run when nothing is left to do, or says that it is stuck.
func (d *decider) settle() {
	r := &d.run
	switch {
	case r.finished != 0:
	case r.phase == phaseForward && r.done == r.steps:
		if r.parked { // what was in flight has brought it to a good end
			r.parked, r.parkedAt, r.failure = false, 0, dsl.Failure{}
		}
		d.evaluateOutputs()
		d.finish(RunSucceeded)
	case d.liveNodes() > 0:
	case r.phase == phaseUndo && r.undonePast == r.steps:
		d.finish(d.undoneState())
	case r.phase == phaseUndo && !r.stuck && !r.held():
		r.stuck = true
		d.alertStuck()
	case r.phase == phaseForward && !r.parked && !r.held():
		d.park(d.unresolved())
	}
}

// alertStuck names the undo that has failed. The error that turned the run does not
// help the person who has to clean up.
func (d *decider) alertStuck() {
	nodes := make([]*node, d.count())
	for i := range nodes {
		nodes[i] = d.get(i)
	}
	failures, _ := undoFailures(d.wf, nodes)
	if len(failures) == 0 { // the deadline passed before any undo could begin
		f := d.run.failure
		failures = []UndoFailure{{f.Step, f.Code, f.Message}}
	}
	f := failures[0]
	if more := len(failures) - 1; more > 0 {
		f.Message = strings.TrimSpace(fmt.Sprintf("%s (and %d more)", f.Message, more))
	}
	d.alert("compensation_failed", f.Step, f.Code, f.Message)
}

// undoneState names the end of a run that turned back.
func (d *decider) undoneState() RunState {
	switch {
	case d.run.cancel:
		return RunCancelled
	case d.run.undone+d.run.left > 0:
		return RunCompensated
	}
	return RunFailed
}

// unresolved returns the failure of the first step that has failed and that
// nobody has dealt with.
func (d *decider) unresolved() dsl.Failure {
	for i := range d.count() {
		n := d.get(i)
		if n.state == StepFailed && (!n.item || d.hopeless(i)) {
			return d.failure(i, n.fwd.blamed())
		}
	}
	return d.run.failure
}

func (d *decider) finish(state RunState) {
	r := &d.run
	r.state, r.finished = state, d.at
	r.paused, r.stuck = false, false
	r.pausedAt, r.pausedBy, r.pauseWhy = 0, "", ""
	r.lostAt, r.lostWhy = 0, ""
}

// evaluateOutputs computes the workflow's outputs. One that cannot be
// evaluated is null with a note; the run keeps its status.
func (d *decider) evaluateOutputs() {
	sum := int64(0)
	for _, o := range d.wf.Outputs {
		out := output{name: o.Name, sensitive: o.Sensitive}
		v, err := o.Value(d.scope(nil))
		sum += int64(len(v.JSON()))
		switch {
		case err != nil:
			out.problem = err.Error()
		case sum > d.ceilings().Values:
			out.problem = fmt.Sprintf("%s: with it the run's outputs would have %d bytes together; the ceiling is %d", CodeLimit, sum, d.ceilings().Values)
			sum -= int64(len(v.JSON()))
		default:
			out.value = d.s.keep(v)
		}
		d.run.outputs = append(d.run.outputs, out)
	}
}

// alert tells an operator (S59).
func (d *decider) alert(kind, step, code, message string) {
	d.commands = append(d.commands, Alert{Kind: kind, Step: step, Code: code, Message: message})
}
