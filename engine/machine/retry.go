package machine

import (
	"math"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// transient has the error codes of failures that often end soon, so that another attempt may
// succeed. Agents and the engine report these codes.
var transient = []string{
	sdk.CodeUnavailable, sdk.CodeTimeout, sdk.CodeAgentLost, sdk.CodeRateLimited, sdk.CodeAborted,
}

// missed decides what follows a failure of the forward work of node i: an attempt has failed, its
// outcome is unknown, or no attempt could be made, for example because an expression failed. If the
// outcome is unknown, the action has a lookup, and no attempt is open, missed plans the lookup
// first.
func (d forward) missed(i int, m model.Miss) {
	n := d.edit(i)
	n.Fwd.Blame(m)
	if m.Kind == model.MissUnknown && d.step(n).Do.Lookup && !n.Open() && !n.Done && n.Doubt > 0 {
		n.Fwd.Lookups = 0
		d.caller().lookUp(i)
		return
	}
	d.follow(i, m)
}

// lookupMissed handles a lookup of node i that did not find out the outcome. If fewer than
// maxLookups lookups were tried, it plans another one. Otherwise it calls the method `follow`.
func (d forward) lookupMissed(i int) {
	n := d.edit(i)
	if n.Fwd.Lookups++; n.Fwd.Lookups < maxLookups {
		d.caller().pause(i, max(d.at.Add(d.lookupPause(n)), n.Fwd.Rest))
		return
	}
	d.follow(i, n.Fwd.Blamed())
}

// follow decides what follows a failed attempt of node i. If the run goes forward, it tries, in
// this order: another attempt, a cool-down, catch, and the failure of the step. While another
// attempt is open, the step does not fail, because that attempt may still succeed. If the run has
// turned back, the node ends as failed. If the run waits for the outcome of its pivot before it
// turns back, the method `resolvePivot` decides.
func (d forward) follow(i int, m model.Miss) {
	n := d.edit(i)
	if n.Undo != model.UndoNone {
		d.endForward(i, status.StepFailed)
		return
	}
	if d.run.Turning {
		d.undoing().resolvePivot(i)
		return
	}
	again, late := d.repeatable(i, m), false
	if again {
		var planned bool
		if planned, late = d.repeat(i); planned {
			return
		}
	}
	if n.Open() {
		n.Fwd.Act, n.State = model.Running, status.StepRunning
		return
	}
	if again && d.coolDown(i) {
		return
	}
	if late {
		m = d.noTimeLeft(i, m)
	}
	if d.catches(i, m) {
		return
	}
	d.giveUp(i, m, again || m.Kind == model.MissDeadline)
}

// giveUp ends node i as failed, with the failure m. The parameter `exhausted` is true if the
// failure allowed another attempt, but no attempts or no time were left.
func (d forward) giveUp(i int, m model.Miss, exhausted bool) {
	n := d.edit(i)
	if !n.Item {
		d.endForward(i, status.StepFailed)
		d.failed(i, i, m, exhausted)
		return
	}
	a := d.edit(n.Of())
	a.Bad++
	if a.Fwd.Miss == model.MissNone {
		a.Fwd.Blame(m)
	}
	// The child run ended too late: the step fails, even if max_failures allows more failures.
	late := d.caller().overstayed(n)
	if late {
		d.frozen = n.Of() + 1
	}
	d.endForward(i, status.StepFailed)
	d.frozen = 0
	if (a.Bad > d.tolerated(n.Of()) || late) && !a.Ended() {
		d.endForward(n.Of(), status.StepFailed)
		d.failed(n.Of(), i, a.Fwd.Blamed(), exhausted)
		return
	}
	if d.hopeless(i) {
		d.ending().park(d.failure(i, m))
	}
}

// failed decides what the run does after the step with the number `step` has failed with the
// failure m. The parameter `i` is the node that made the step fail: the step itself, or one of its
// instances. The parameter `exhausted` is true if the failure allowed another attempt, but no
// attempts or no time were left.
func (d forward) failed(step, i int, m model.Miss, exhausted bool) {
	f := d.failure(step, m)
	switch {
	case d.run.Parked || d.run.Phase == model.PhaseUndo:
		return // the failure is recorded, and an operator decides
	case d.run.Passed, d.pivotOpen(), d.anyHopeless(step, i):
		d.ending().park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedPark:
		d.ending().park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedCompensate:
		d.undoing().turn(f)
	case d.wf.CompensationMode == dsl.ModeManual:
		d.ending().park(f)
	default:
		d.undoing().turn(f)
	}
}

func (d forward) exhausted(step int) dsl.Exhausted {
	n := d.get(step)
	settings, err := d.settings(n)
	if err != nil {
		return dsl.ExhaustedMode
	}
	return settings.Retry.OnExhausted
}

// repeatable reports whether the kind of the failure m allows another forward attempt. It does
// not check whether attempts and time are left (S77).
func (d forward) repeatable(i int, m model.Miss) bool {
	n := d.get(i)
	step := d.step(n)
	settings, err := d.settings(n)
	if err != nil || n.Expanded || !step.Calls() {
		return false
	}
	again := step.Do.Idempotent
	if !again && d.undoing().clearable(n) { // the possible effect is undone before the next attempt
		again = true
		if m.Kind == model.MissUnknown {
			m.Kind = model.MissFailed
		}
	}
	if m.Kind == model.MissCondition && n.Done && !again {
		return false // the effect exists: another attempt would cause it a second time
	}
	return MayRepeat(m, settings.Retry, step.Do.Idempotent, step.Retryable)
}

// MayRepeat reports whether another attempt is allowed after the failure m. The rules are the
// same for forward attempts and for attempts of an undo.
func MayRepeat(m model.Miss, r dsl.Retry, idempotent bool, retryable func(string) bool) bool {
	if slices.Contains(r.NotOn, m.Code) {
		return false
	}
	named := slices.Contains(r.On, m.Code)
	switch m.Kind {
	case model.MissUnknown:
		return idempotent
	case model.MissCondition:
		return named
	case model.MissFailed:
		if m.Code == sdk.CodeInvalid || m.Code == sdk.CodeDenied {
			return named
		}
		return named || slices.Contains(transient, m.Code) || retryable != nil && retryable(m.Code)
	}
	// The failure is permanent, or an expression or a deadline failed: repeating does not help.
	return false
}

// repeat plans the next attempt of this round. The result `planned` is true if attempts and time
// are left. The result `late` is true if only time is missing: the pause before the attempt would
// end after the deadline. The limit for attempts applies to each round separately (S64, S79).
func (d forward) repeat(i int) (planned, late bool) {
	n := d.edit(i)
	settings, err := d.settings(n)
	if err != nil || !attemptsLeft(&n.Fwd, settings.Retry) {
		return false, false
	}
	until := d.nextAttempt(settings.Retry, n, &n.Fwd)
	if by := d.forwardBound(i); by != 0 && until >= by {
		return false, true
	}
	n.Fwd.Kind = model.CallDo
	d.caller().pause(i, until)
	return true, false
}

func attemptsLeft(t *model.Track, r dsl.Retry) bool {
	return r.MaxAttempts == dsl.Unbounded || int(t.Attempt) < r.MaxAttempts
}

// coolDown plans a new round of attempts after a long pause, and returns true. It returns
// false if no further round is allowed or no time is left. During the pause the node uses no
// slot (S41).
func (d forward) coolDown(i int) bool {
	n := d.edit(i)
	settings, err := d.settings(n)
	if err != nil {
		return false
	}
	r := settings.Retry
	if r.OnExhausted != dsl.ExhaustedCoolDown || int(n.Fwd.Rounds) >= r.CoolDowns {
		return false
	}
	until := max(d.at.Add(max(r.CoolDown, time.Millisecond)), n.Fwd.Rest)
	if by := d.forwardBound(i); by != 0 && until >= by {
		return false
	}
	n.Fwd.Rounds++
	n.Fwd.Attempt = 0
	n.Fwd.Kind = model.CallDo
	d.caller().pause(i, until)
	return true
}

// forwardBound returns the time by which the forward work of node i must end; 0 if there is none.
// This time is the deadline of the step or the deadline of the run, whichever is earlier. The
// deadline of the run does not count if the pivot has succeeded, or if it has passed and the run
// did not turn back (Overdue).
func (d forward) forwardBound(i int) model.Instant {
	n := d.get(i)
	by := n.Fwd.Deadline
	if n.Item {
		by = d.get(n.Of()).Fwd.Deadline
	}
	if !d.run.Passed && !d.run.Overdue {
		by = model.Earliest(by, d.run.Deadline)
	}
	return by
}

// nextAttempt returns the time at which the next attempt starts. It is the later one of two times:
// the end of the backoff, and the time before which the agent wants no further call (Track.Rest).
func (d forward) nextAttempt(r dsl.Retry, n *model.Node, t *model.Track) model.Instant {
	pause := growth(r, max(1, int(t.Attempt)))
	if r.Jitter {
		pause = time.Duration(float64(pause) * d.chance(n, t))
	}
	return max(d.at.Add(max(pause, time.Millisecond)), t.Rest)
}

// growth returns the backoff after the given number of attempts, without jitter.
func growth(r dsl.Retry, attempts int) time.Duration {
	pause := float64(r.InitialInterval)
	switch r.Strategy {
	case dsl.Linear:
		pause *= float64(attempts)
	case dsl.Constant:
	default:
		pause *= math.Pow(max(1, r.Multiplier), float64(attempts-1))
	}
	most := float64(365 * 24 * time.Hour)
	if r.MaxInterval > 0 {
		most = float64(r.MaxInterval)
	}
	return time.Duration(min(pause, most))
}

// lookupPause returns the pause before the next lookup: one second for each earlier lookup,
// but at least one second.
func (d forward) lookupPause(n *model.Node) time.Duration {
	return time.Duration(max(1, n.Fwd.Lookups+n.Und.Lookups)) * time.Second
}

// chance returns a number from 0 to less than 1 for jitter. The number depends only on the
// run, the node and the attempt. So every replay gets the same number.
func (d forward) chance(n *model.Node, t *model.Track) float64 {
	h := uint64(14695981039346656037)
	mix := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	tries := t.Total
	if t.Kind == model.CallLearn { // Total does not count calls of this kind
		tries = t.Attempt
	}
	for _, x := range []uint64{uint64(d.run.ID), uint64(n.Step), uint64(tries), uint64(t.Kind)} {
		for k := range 8 {
			mix(byte(x >> (8 * k)))
		}
	}
	for k := range len(n.Key) {
		mix(n.Key[k])
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}
