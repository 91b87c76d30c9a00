package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// refuse answers a verb that does not apply; the record says so and changes
// nothing else.
func (d *decider) refuse(verb, by, format string, args ...any) {
	d.event = d.refusal(verb, fmt.Sprintf(format, args...), by)
}

// refusal keeps the number of the message that asked, so that the asker finds
// the answer.
func (d *decider) refusal(verb, reason, by string) Refused {
	ask, _, _ := Asked(d.in.Event)
	return Refused{Verb: verb, Reason: reason, By: by, Ask: ask}
}

// noneFailed says that a verb found nothing that has failed: no step, or no undo.
func noneFailed(of, step string) string {
	switch {
	case step == "":
		return "no " + of + " has failed"
	case of == "undo":
		return "no failed undo of " + step
	}
	return "no failed step " + step
}

// takenOver notes the new owner. Attempts of the former owner stay open: what
// is idempotent is called again at once with the same key, everything else
// waits until nobody can be at work any more.
func (d *decider) takenOver(ev TakenOver) {
	d.run.owner = ev.By
	if len(d.run.holds) > 0 { // another engine, other circuits and slots
		d.run.holds = slices.Clone(d.run.holds)
		for k := range d.run.holds {
			d.run.holds[k].until, d.run.holds[k].why = 0, ""
		}
		d.run.refused = nil
	}
	const always = instant(1<<63 - 1)
	for _, i := range ascending(d.s.expiry.upTo(always, nil)) {
		if d.get(i).open() {
			d.supersede(i)
		}
	}
}

// supersede plans another attempt beside one that the former owner started, if
// the action bears it and the round has attempts left.
func (d *decider) supersede(i int) {
	n := d.get(i)
	t := n.track()
	if t.act != running {
		return
	}
	step := d.step(n)
	switch t.kind {
	case callDo:
		settings, err := d.settings(n)
		if n.undo != undoNone || d.run.turning || d.halted() || err != nil || t.rest > d.at ||
			!step.Do.Idempotent && !step.Do.ReadOnly || !attemptsLeft(t, settings.Retry) {
			return
		}
	case callLookup, callUndoLookup: // asking twice harms nobody
		d.needless(i, t.kind)
	case callLearn:
		if !attemptsLeft(t, d.undoSettings(n).Retry) {
			return
		}
	case callUndo:
		if !step.Undo.Do.Idempotent || !attemptsLeft(t, d.undoSettings(n).Retry) {
			return
		}
	default:
		return
	}
	d.launch.push(i)
}

// cancelRequested asks the run to turn back, or to stop dead.
func (d *decider) cancelRequested(ev CancelRequested) {
	r := &d.run
	switch {
	case r.phase == phaseUndo && ev.NoCompensate:
		d.refuse("cancel", ev.By, "the run is already being undone; that cannot be cut short")
		return
	case r.phase == phaseUndo || r.turning && r.cancel:
		d.refuse("cancel", ev.By, "%s", d.turned())
		return
	case r.passed && !ev.NoCompensate:
		d.refuse("cancel", ev.By, "the pivot has succeeded: nothing is undone any more")
		return
	case r.parked && d.pivotOpen():
		d.refuse("cancel", ev.By, "the pivot's outcome is unknown: settle it first")
		return
	}
	d.found()
	r.cancel, r.noUndo = true, ev.NoCompensate
	r.failure = dsl.Failure{Code: CodeCancelled, Message: ev.Reason}
	d.turn(r.failure)
}

// turned says why a run has turned back already.
func (d *decider) turned() string {
	switch {
	case d.run.cancel:
		return "the run is already being cancelled"
	case d.run.failure.Code == CodeDeadlineExceeded && d.run.failure.Step == "":
		return "the run's deadline has passed, so that it turns back anyway"
	}
	return "the run is already being undone"
}

// pauseRequested holds all dispatch; clocks go on.
func (d *decider) pauseRequested(ev PauseRequested) {
	switch {
	case d.run.parked || d.run.stuck || d.run.lost():
		d.refuse("pause", ev.By, "the run is %s: nothing starts anyway", d.runState())
	case d.run.paused:
		d.refuse("pause", ev.By, "the run is already paused")
	default:
		d.run.paused = true
		d.run.pausedAt, d.run.pausedBy, d.run.pauseWhy = d.at, ev.By, ev.Reason
	}
}

// resumeRequested ends a pause, or gives a parked run a new deadline.
func (d *decider) resumeRequested(ev ResumeRequested) {
	r := &d.run
	switch {
	case r.paused:
		r.paused = false
		r.pausedAt, r.pausedBy, r.pauseWhy = 0, "", ""
		r.begun = true // no run returns to the queue (S53)
		d.extend(ev.Extend)
		for i := range d.count() {
			if !d.get(i).ended() {
				d.reopen(i)
			}
		}
	case r.parked && ev.Extend > 0 && r.deadline == 0:
		d.refuse("resume", ev.By, "the run has no deadline to extend; retry or compensate it")
	case r.parked && ev.Extend > 0:
		d.extend(ev.Extend)
	case r.parked || r.lost():
		d.refuse("resume", ev.By, "the run is parked: retry or compensate it")
	default:
		d.refuse("resume", ev.By, "the run is not paused")
	}
}

// extend gives the forward part a new deadline, if it has one; never an earlier.
func (d *decider) extend(by time.Duration) {
	if r := &d.run; by > 0 && r.phase == phaseForward && r.deadline != 0 {
		r.deadline = max(r.deadline, d.at.add(by))
		r.overdue = r.overdue && r.deadline <= d.at
	}
}

// retryRequested gives failed steps of a parked run a fresh round (S60).
func (d *decider) retryRequested(ev RetryRequested) {
	r := &d.run
	if r.lost() { // if it was parked for something else too, a second retry is about that
		d.found()
		d.extend(ev.Extend)
		return
	}
	if !r.parked {
		d.refuse("retry", ev.By, "the run is %s, not parked", d.runState())
		return
	}
	late := r.deadline != 0 && r.deadline <= d.at && !r.passed
	if late && ev.Extend <= 0 {
		d.refuse("retry", ev.By, "the run's deadline has passed: say by how much to extend it")
		return
	}
	failed := d.pick(ev.Step, func(i int, n *node) bool {
		tolerated := d.get(n.of()).state != StepFailed && !d.hopeless(i) // by max_failures
		return n.state == StepFailed && !n.expanded && !tolerated
	})
	if len(failed) == 0 && (ev.Step != "" || ev.Extend <= 0) {
		d.refuse("retry", ev.By, "%s", noneFailed("step", ev.Step))
		return
	}
	for _, i := range failed {
		if !d.mayRetry(i, ev) {
			return
		}
	}
	d.extend(ev.Extend)
	for _, i := range failed {
		d.freshRound(i, ev.NewKey)
	}
	d.unpark()
}

// mayRetry refuses the verb where another attempt of a node could do harm.
func (d *decider) mayRetry(i int, ev RetryRequested) bool {
	n := d.get(i)
	effect, do := n.effect(), d.step(n).Do
	switch {
	case ev.NewKey && n.bizKey != "":
		d.refuse("retry", ev.By, "the key of %s is set by idempotency_key: it cannot have a new one", d.name(i))
	case n.undoDoubt > 0 && !d.step(n).Undo.Do.Idempotent && !d.step(n).Undo.Do.Lookup:
		d.refuse("retry", ev.By, "nobody knows whether the undo of %s took effect, and it is not idempotent: settle that first", d.name(i))
	case ev.NewKey && effect != EffectNone:
		d.refuse("retry", ev.By, "%s may have taken effect under its present key: settle that first", d.name(i))
	case effect == EffectMaybe && !do.Idempotent && !d.clearable(n):
		d.refuse("retry", ev.By, "nobody knows whether %s took effect, and its action is not idempotent: settle that first", d.name(i))
	case effect == EffectDone && !do.Idempotent && !d.clearable(n):
		d.refuse("retry", ev.By, "%s has taken effect, and its action is not idempotent", d.name(i))
	default:
		return true
	}
	return false
}

// freshRound makes a failed node start over, with all its attempts and a new
// step deadline.
func (d *decider) freshRound(i int, newKey bool) {
	n := d.edit(i)
	n.stated = statedNothing
	n.fwd.attempt, n.fwd.rounds, n.fwd.lookups = 0, 0, 0
	n.fwd.ended, n.fwd.rest = 0, 0
	n.fwd.kind = callDo
	n.fwd.blame(miss{})
	if newKey {
		n.gen++
		n.point, n.blob = 0, nil
	}
	if n.item {
		a := d.edit(n.of())
		a.bad--
		a.over--
		a.next = min(a.next, i-a.first) // it takes its turn again
		if a.ended() {
			a.state, a.fwd.ended = StepWaiting, 0
		}
		a.fwd.blame(miss{})
		d.newDeadline(n.of())
		n.state, n.fwd.ready = StepPending, 0
		return
	}
	n.state = StepPending
	n.fwd.ready, n.fwd.deadline = 0, 0
	if n.prepared { // the input is stored; only the clock starts anew
		n.fwd.ready = d.at
		d.newDeadline(i)
		n.fwd.act = idle
		d.launch.push(i)
	} else {
		d.ready.push(i)
	}
}

// newDeadline starts a step's deadline anew.
func (d *decider) newDeadline(i int) {
	n := d.edit(i)
	n.fwd.ready, n.fwd.deadline = d.at, 0
	if settings, err := d.settings(n); err == nil {
		if at, ok := settings.Deadline.From(d.at.time()); ok {
			n.fwd.deadline = toInstant(at)
		}
	}
}

// pick returns the nodes that a verb means: one step or instance by name,
// all instances of a for_each step, or with "" every node, as far as they
// qualify.
func (d *decider) pick(name string, qualifies func(int, *node) bool) []int {
	var found []int
	for i := range d.count() {
		n := d.get(i)
		if !qualifies(i, n) {
			continue
		}
		if name == "" || d.name(i) == name || d.step(n).Name == name {
			found = append(found, i)
		}
	}
	return found
}

// compensateRequested starts the undo of a parked run; with a step it repeats
// or skips a failed undo.
func (d *decider) compensateRequested(ev CompensateRequested) {
	r := &d.run
	if ev.Step == "" && !ev.Retry && !ev.Skip {
		switch {
		case r.lost() && r.phase == phaseUndo:
			d.refuse("compensate", ev.By, "the run is already being undone: retry lets it go on")
		case !r.parked && !r.lost():
			d.refuse("compensate", ev.By, "the run is %s, not parked", d.runState())
		case r.passed:
			d.refuse("compensate", ev.By, "the pivot has succeeded: nothing is undone any more")
		case d.pivotOpen():
			d.refuse("compensate", ev.By, "the pivot's outcome is unknown: settle it first")
		default:
			why := r.failure
			if r.lost() && !r.parked {
				why = r.lostFailure()
			}
			d.found()
			d.turn(why)
		}
		return
	}
	if ev.Retry == ev.Skip {
		d.refuse("compensate", ev.By, "say either to retry or to skip")
		return
	}
	failed := d.pick(ev.Step, func(_ int, n *node) bool { return n.undo == undoFailed && !n.expanded })
	if len(failed) == 0 {
		d.refuse("compensate", ev.By, "%s", noneFailed("undo", ev.Step))
		return
	}
	if ev.Retry {
		for _, i := range failed {
			n := d.get(i)
			if n.undoDoubt > 0 && !d.step(n).Undo.Do.Idempotent {
				d.refuse("compensate", ev.By, "nobody knows whether the undo of %s took effect, and it is not idempotent: settle that first", d.name(i))
				return
			}
		}
	}
	d.found()
	d.reviveUndo()
	for _, i := range failed {
		d.edit(i).manual = ev.By
		if ev.Retry {
			d.freshUndo(i)
			continue
		}
		d.awake(i)
		d.endUndo(i, undoLeft)
	}
}

// reviveUndo gives a run whose compensation had failed a new clock.
func (d *decider) reviveUndo() {
	d.run.stuck = false
	d.newUndoDeadline()
}

// freshUndo makes a failed undo start over.
func (d *decider) freshUndo(i int) {
	d.awake(i)
	n := d.edit(i)
	n.undo = undoPending
	n.und.attempt, n.und.lookups, n.fwd.lookups = 0, 0, 0
	n.und.ready, n.und.deadline, n.und.ended, n.und.rest = 0, 0, 0, 0
	n.und.blame(miss{})
	d.undo.push(i)
}

// awake takes the mark of a failed instance off its for_each step.
func (d *decider) awake(i int) {
	n := d.get(i)
	if !n.item {
		return
	}
	for k, a := d.get(n.of()).first, d.get(n.of()); k < a.first+a.count; k++ {
		if k != i && d.get(k).undo == undoFailed {
			return
		}
	}
	d.edit(n.of()).undo = undoActive
}
