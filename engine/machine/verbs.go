package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// refuse refuses a verb that does not apply to the run. It replaces the event of the record by
// a Refused with the reason, and changes nothing else.
func (d verbs) refuse(verb, by, format string, args ...any) {
	d.event = d.refusal(verb, fmt.Sprintf(format, args...), by)
}

// refusal returns the Refused that answers the verb. It contains the number of the message
// with the verb, so that the person who sent the verb finds the answer.
func (d verbs) refusal(verb, reason, by string) Refused {
	ask, _, _ := Asked(d.in.Event)
	return Refused{Verb: verb, Reason: reason, By: by, Ask: ask}
}

// noneFailed returns the reason for refusing a verb that found no failed step or no failed undo.
func noneFailed(of, step string) string {
	switch {
	case step == "":
		return "no " + of + " has failed"
	case of == "undo":
		return "no failed undo of " + step
	}
	return "no failed step " + step
}

// takenOver records the new owner. Attempts of the former owner stay open, except lookups, which
// are made again. A call for a child run is sent again as the same attempt (attach). For another
// call, the method `supersede` decides whether a further attempt with the same key may start at
// once. If not, the run waits until the old attempt is answered or has expired.
func (d verbs) takenOver(ev TakenOver) {
	d.run.Owner = ev.By
	if len(d.run.Holds) > 0 { // no time or reason is kept: the new owner has other circuits and slots
		d.run.Holds = slices.Clone(d.run.Holds)
		for k := range d.run.Holds {
			d.run.Holds[k].Until, d.run.Holds[k].Why = 0, ""
		}
		d.run.Refused = nil
	}
	const always = model.Instant(1<<63 - 1)
	for _, i := range ascending(d.s.expiry.upTo(always, nil)) {
		if d.get(i).Open() && !d.caller().attach(i) {
			d.supersede(i)
		}
	}
}

// supersede plans another call of node i while the agent may still work on a call of the former
// owner. It does so only if two calls at the same time are safe. For a call that is not a lookup,
// attempts must be left, too. If the call of the former owner is a lookup, supersede closes it.
func (d verbs) supersede(i int) {
	n := d.get(i)
	t := n.Track()
	if t.Act != model.Running {
		return
	}
	step := d.step(n)
	switch t.Kind {
	case model.CallDo:
		settings, err := d.settings(n)
		if n.Undo != model.UndoNone || d.run.Turning || d.slots().halted() || err != nil || t.Rest > d.at ||
			!step.Do.Idempotent && !step.Do.ReadOnly || !attemptsLeft(t, settings.Retry) {
			return
		}
	case model.CallLookup, model.CallUndoLookup: // two lookups at the same time do no harm
		d.caller().needless(i, t.Kind)
	case model.CallLearn:
		if !attemptsLeft(t, d.undoSettings(n).Retry) {
			return
		}
	case model.CallUndo:
		if !step.Undo.Do.Idempotent || !attemptsLeft(t, d.undoSettings(n).Retry) {
			return
		}
	default:
		return
	}
	d.launch.push(i)
}

// cancelRequested makes the run turn back. With NoCompensate, the run ends without any undo.
func (d verbs) cancelRequested(ev CancelRequested) {
	r := &d.run
	switch {
	case r.Phase == model.PhaseUndo && ev.NoCompensate:
		d.refuse("cancel", ev.By, "the run is already being undone; the undo cannot be cut short")
		return
	case r.Phase == model.PhaseUndo || r.Turning && r.Cancel:
		d.refuse("cancel", ev.By, "%s", d.turned())
		return
	case r.Passed && !ev.NoCompensate:
		d.refuse("cancel", ev.By, "the pivot has succeeded: nothing is undone any more")
		return
	case r.Parked && d.pivotOpen():
		d.refuse("cancel", ev.By, "the pivot's outcome is unknown: settle it first")
		return
	}
	d.found()
	r.Cancel, r.NoUndo = true, ev.NoCompensate
	r.Failure = dsl.Failure{Code: cmp.Or(ev.Code, CodeCancelled), Message: ev.Reason}
	d.undoing().turn(r.Failure)
}

// reopens reports whether a run that has ended turns back because of the event.
func reopens(r *model.Run, e Event) bool {
	ev, verb := e.(CompensateRequested)
	return verb && ev.Parent && r.Undoable()
}

// ended returns the reason why the verb compensate does not change a run that has ended.
func ended(r *model.Run, ev CompensateRequested) string {
	if ev.Parent && r.State == status.RunSucceeded && r.Passed {
		return "the pivot has succeeded: nothing is undone any more"
	}
	return "the run has ended: " + r.State.String()
}

// parentUndone makes a child run that has succeeded turn back, because its parent is being undone.
func (d verbs) parentUndone(ev CompensateRequested) {
	r := &d.run
	if r.State != status.RunSucceeded {
		d.refuse("compensate", ev.By, "the run has not ended: it is %s", d.runState())
		return
	}
	r.Finished, r.State, r.Outputs = 0, status.RunRunning, nil
	d.undoing().turn(dsl.Failure{Code: codeUndone, Message: ev.Reason})
}

// turned returns the reason why the run is turning back already.
func (d verbs) turned() string {
	switch {
	case d.run.Cancel:
		return "the run is already being cancelled"
	case d.run.Failure.Code == CodeDeadlineExceeded && d.run.Failure.Step == "":
		return "the run's deadline has passed, so the run turns back in any case"
	}
	return "the run is already being undone"
}

// pauseRequested pauses the run and the runs of its groups: no new call starts, but deadlines still
// pass.
func (d verbs) pauseRequested(ev PauseRequested) {
	switch {
	case d.run.Parked || d.run.Stuck || d.run.Lost():
		d.refuse("pause", ev.By, "the run is %s: nothing starts anyway", d.runState())
	case d.run.Paused:
		d.refuse("pause", ev.By, "the run is already paused")
	default:
		d.run.Paused = true
		d.run.PausedAt, d.run.PausedBy, d.run.PauseWhy = d.at, ev.By, ev.Reason
	}
}

// resumeRequested ends a pause, and extends the deadline of the run if the event says so. For a run
// that is parked and not paused, it only extends the deadline. If the verb comes from the parent,
// it ends only a pause that also came from the parent.
func (d verbs) resumeRequested(ev ResumeRequested) {
	r := &d.run
	switch {
	case r.Paused && r.Parent.Run != 0 && ev.By == r.Parent.Name && r.PausedBy != ev.By:
		d.refuse("resume", ev.By, "the run was paused by %s, and not with its parent", r.PausedBy)
	case (r.Paused || r.Parked) && d.tooLong("resume", ev.By, ev.Extend, "extend the deadline of the parent"):
	case r.Paused:
		r.Paused = false
		r.PausedAt, r.PausedBy, r.PauseWhy = 0, "", ""
		r.Begun = true // set Begun: a run never returns to the state queued (S53)
		d.extend(ev.Extend)
		for i := range d.count() {
			if !d.get(i).Ended() {
				d.ending().reopen(i)
			}
		}
	case r.Parked && ev.Extend > 0 && r.Deadline == 0:
		d.refuse("resume", ev.By, "the run has no deadline to extend; retry or compensate it")
	case r.Parked && ev.Extend > 0:
		d.extend(ev.Extend)
	case r.Parked || r.Lost():
		d.refuse("resume", ev.By, "the run is parked: retry or compensate it")
	default:
		d.refuse("resume", ev.By, "the run is not paused")
	}
}

// tooLong refuses the verb and returns true if the person wants to extend the deadline of a child
// run, and the parent does not wait so long. The parameter `instead` says what the person can do.
func (d verbs) tooLong(verb, person string, by time.Duration, instead string) bool {
	why := bounds(d).refuses(by)
	if why != "" {
		d.refuse(verb, person, "%s: %s", why, instead)
	}
	return why != ""
}

// extend gives the forward work of the run a later deadline. It does nothing if the run has no
// deadline of its own, or is being undone. The deadline stays if the new one would be earlier.
func (d verbs) extend(by time.Duration) {
	own, until := bounds(d).ownAndUntil()
	if by > 0 && d.run.Phase == model.PhaseForward && own != 0 {
		bounds(d).set(max(own, d.at.Add(by)), until)
	}
}

// retryRequested gives the failed steps of a parked run all their attempts again (S60).
func (d verbs) retryRequested(ev RetryRequested) {
	r := &d.run
	const instead = "retry without extending it, or extend the deadline of the parent"
	if r.Lost() { // if a step has failed, too, the person must send a second retry for it
		if d.tooLong("retry", ev.By, ev.Extend, instead) {
			return
		}
		d.found()
		d.extend(ev.Extend)
		return
	}
	if !r.Parked {
		d.refuse("retry", ev.By, "the run is %s, not parked", d.runState())
		return
	}
	late := r.Deadline != 0 && r.Deadline <= d.at && !r.Passed
	if late && bounds(d).byParent() {
		d.refuse("retry", ev.By, "the parent %s waits no longer for the run: compensate or cancel it", r.Parent.Name)
		return
	}
	if d.tooLong("retry", ev.By, ev.Extend, instead) {
		return
	}
	if late && ev.Extend <= 0 {
		d.refuse("retry", ev.By, "the run's deadline has passed: say by how much to extend it")
		return
	}
	failed := d.pick(ev.Step, func(i int, n *model.Node) bool {
		// True if max_failures allows this failure.
		tolerated := d.get(n.Of()).State != status.StepFailed && !d.hopeless(i)
		return n.State == status.StepFailed && !n.Expanded && !tolerated
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
	d.ending().unpark()
}

// mayRetry reports whether another attempt of node i is harmless. If it is not, mayRetry refuses
// the verb.
func (d verbs) mayRetry(i int, ev RetryRequested) bool {
	n := d.get(i)
	effect, do := n.Present(), d.step(n).Do
	switch {
	case n.Kept.Stay() && !ev.NewKey:
		d.refuse("retry", ev.By, "the child run of %s has left effects in place, which another child run may cause again: to allow that, retry with a new key", d.name(i))
	case ev.NewKey && n.BizKey != "":
		d.refuse("retry", ev.By, "the key of %s is set by idempotency_key: it cannot have a new one", d.name(i))
	case n.UndoDoubt > 0 && !d.step(n).Undo.Do.Idempotent && !d.step(n).Undo.Do.Lookup:
		d.refuse("retry", ev.By, "nobody knows whether the undo of %s took effect, and it is not idempotent: settle that first", d.name(i))
	case ev.NewKey && effect != status.EffectNone:
		d.refuse("retry", ev.By, "%s may have taken effect under its present key: settle that first", d.name(i))
	case effect == status.EffectMaybe && !do.Idempotent && !d.undoing().clearable(n):
		d.refuse("retry", ev.By, "nobody knows whether %s took effect, and its action is not idempotent: settle that first", d.name(i))
	case effect == status.EffectDone && !do.Idempotent && !d.undoing().clearable(n):
		d.refuse("retry", ev.By, "%s has taken effect, and its action is not idempotent", d.name(i))
	default:
		return true
	}
	return false
}

// freshRound makes the failed node i start again, with a new round of attempts and a new
// deadline.
func (d verbs) freshRound(i int, newKey bool) {
	n := d.edit(i)
	n.Stated = model.StatedNothing
	n.Fwd.Attempt, n.Fwd.Rounds, n.Fwd.Lookups = 0, 0, 0
	n.Fwd.Ended, n.Fwd.Rest = 0, 0
	n.Fwd.Kind = model.CallDo
	n.Fwd.Blame(model.Miss{})
	// A step that starts a child run gets a new key, too: the child run with the old key has ended.
	if newKey || d.step(n).Child != nil && n.OwnEffect() == status.EffectNone {
		n.Gen++
		n.Point, n.Blob = 0, nil
	}
	if n.Item {
		a := d.edit(n.Of())
		a.Bad--
		a.Over--
		a.Next = min(a.Next, i-a.First) // set Next back, so that the instance begins again
		if a.Ended() {
			a.State, a.Fwd.Ended = status.StepWaiting, 0
		}
		a.Fwd.Blame(model.Miss{})
		d.newDeadline(n.Of())
		n.State, n.Fwd.Ready = status.StepPending, 0
		return
	}
	n.State = status.StepPending
	n.Fwd.Ready, n.Fwd.Deadline = 0, 0
	if n.Prepared { // the input is stored already; only the step's deadline starts again
		n.Fwd.Ready = d.at
		d.newDeadline(i)
		n.Fwd.Act = model.Idle
		d.launch.push(i)
	} else {
		d.ready.push(i)
	}
}

// newDeadline sets the deadline of step i again. The time counts from now.
func (d verbs) newDeadline(i int) {
	n := d.edit(i)
	n.Fwd.Ready, n.Fwd.Deadline = d.at, 0
	if settings, err := d.settings(n); err == nil {
		if at, ok := settings.Deadline.From(d.at.Time()); ok {
			n.Fwd.Deadline = model.ToInstant(at)
		}
	}
}

// pick returns the number i of each node n that has this name and for which qualifies(i, n) is
// true. The name of a for_each step also selects all its instances. The name "" selects every node.
func (d verbs) pick(name string, qualifies func(int, *model.Node) bool) []int {
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

// compensateRequested makes a parked run turn back. With Retry or Skip it instead repeats or skips
// failed undos: those of the step ev.Step, or all failed undos if ev.Step is "". If the verb comes
// from the parent, compensateRequested makes a child run turn back that has succeeded.
func (d verbs) compensateRequested(ev CompensateRequested) {
	r := &d.run
	if ev.Parent {
		d.parentUndone(ev)
		return
	}
	if ev.Step == "" && !ev.Retry && !ev.Skip {
		switch {
		case r.Lost() && r.Phase == model.PhaseUndo:
			d.refuse("compensate", ev.By, "the run is already being undone: retry lets it go on")
		case !r.Parked && !r.Lost():
			d.refuse("compensate", ev.By, "the run is %s, not parked", d.runState())
		case r.Passed:
			d.refuse("compensate", ev.By, "the pivot has succeeded: nothing is undone any more")
		case d.pivotOpen():
			d.refuse("compensate", ev.By, "the pivot's outcome is unknown: settle it first")
		default:
			why := r.Failure
			if r.Lost() && !r.Parked {
				why = LostFailure(r)
			}
			d.found()
			d.undoing().turn(why)
		}
		return
	}
	if ev.Retry == ev.Skip {
		d.refuse("compensate", ev.By, "say either to retry or to skip")
		return
	}
	failed := d.pick(ev.Step, func(_ int, n *model.Node) bool { return n.Undo == model.UndoFailed && !n.Expanded })
	if len(failed) == 0 {
		d.refuse("compensate", ev.By, "%s", noneFailed("undo", ev.Step))
		return
	}
	if ev.Retry {
		for _, i := range failed {
			n := d.get(i)
			if n.UndoDoubt > 0 && !d.step(n).Undo.Do.Idempotent {
				d.refuse("compensate", ev.By, "nobody knows whether the undo of %s took effect, and it is not idempotent: settle that first", d.name(i))
				return
			}
		}
	}
	d.found()
	d.reviveUndo()
	for _, i := range failed {
		d.edit(i).Manual = ev.By
		if ev.Retry {
			d.freshUndo(i)
			continue
		}
		d.awake(i)
		d.undoing().endUndo(i, model.UndoLeft)
	}
}

// reviveUndo continues a failed compensation, with a new deadline that counts from now.
func (d verbs) reviveUndo() {
	d.run.Stuck = false
	d.undoing().newUndoDeadline()
}

// freshUndo makes the failed undo of node i start again, with all its attempts.
func (d verbs) freshUndo(i int) {
	d.awake(i)
	n := d.edit(i)
	n.Undo = model.UndoPending
	n.Und.Attempt, n.Und.Lookups, n.Fwd.Lookups = 0, 0, 0
	n.Und.Ready, n.Und.Deadline, n.Und.Ended, n.Und.Rest = 0, 0, 0, 0
	n.Und.Blame(model.Miss{})
	d.undo.push(i)
}

// awake is called when a person repeats, skips or settles the undo of node i. If the node is an
// instance, awake makes the undo of its for_each step active again, unless the undo of another
// instance has failed. If the node is not an instance, awake does nothing.
func (d verbs) awake(i int) {
	n := d.get(i)
	if !n.Item {
		return
	}
	for k, a := d.get(n.Of()).First, d.get(n.Of()); k < a.First+a.Count; k++ {
		if k != i && d.get(k).Undo == model.UndoFailed {
			return
		}
	}
	d.edit(n.Of()).Undo = model.UndoActive
}

// engineLost returns the record that parks the run because engines died. If the run is parked
// for this reason already, the record changes nothing.
func (d verbs) engineLost(ev EngineLost) Record {
	if d.run.Lost() {
		return d.nothing()
	}
	return Lost(d.at.Time(), ev, d.run.State)
}

// found continues a run that was parked because engines died while they read or decided it.
func (d verbs) found() {
	r := &d.run
	if !r.Lost() {
		return
	}
	r.LostAt, r.LostWhy = 0, ""
	r.Begun = true // set Begun: a run never returns to the state queued (S53)
	for i := range d.count() {
		if !d.get(i).Ended() {
			d.ending().reopen(i)
		}
	}
}
