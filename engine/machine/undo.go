package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
)

// considerUndo starts the undo of a node if its time has come: everything that
// depended on it is undone, and none of its own attempts can be at work.
func (d *decider) considerUndo(i int) {
	n := d.get(i)
	if n.clearing {
		d.reconsider(i)
		return
	}
	if d.run.phase != phaseUndo || n.undo != undoPending || !d.orderAllows(n) {
		return
	}
	if n.expanded {
		d.edit(i).undo = undoActive
		for k := n.first + n.count - 1; k >= n.first; k-- {
			d.undo.push(k)
		}
		if n.count == 0 {
			d.endUndo(i, undoNothing)
		}
		return
	}
	if n.open() || !n.ended() {
		return // its end brings us back here
	}
	step := d.step(n)
	switch {
	case n.effect() == EffectNone:
		d.endUndo(i, undoNothing)
	case step.Undo == nil || step.NoUndo:
		d.endUndo(i, undoDeclared)
	case d.run.noUndo:
		d.endUndo(i, undoLeft)
	case d.run.undoExpired:
		d.undoFails(i, miss{missDeadline, CodeDeadlineExceeded, "the compensation's deadline has passed"})
	case n.quiet > d.at:
		d.edit(i).und.kind = callUndo
		d.pause(i, n.quiet)
	default:
		d.climb(i)
	}
}

// orderAllows reports whether the undo of everything that depended on the step
// has finished. Instances follow their step.
func (d *decider) orderAllows(n *node) bool {
	if a := d.get(n.of()); a.expanded && !n.expanded && a.undo == undoPending {
		return false
	}
	return int(d.get(n.of()).back) == len(d.wf.Steps[n.step].Before)
}

// climb takes the next rung of the ladder for a node that has something to
// undo: ask, undo by key, learn the output, or admit defeat.
func (d *decider) climb(i int) {
	n := d.edit(i)
	step := d.step(n)
	n.und.act = idle
	if n.und.ready == 0 {
		n.und.ready = d.at
		n.und.deadline = d.run.undoDeadline
		if n.clearing {
			n.und.deadline = d.at.add(DefaultCompensation)
		}
		if at, ok := d.undoSettings(n).Deadline.From(d.at.time()); ok {
			n.und.deadline = earliest(toInstant(at), n.und.deadline)
		}
		if n.und.deadline != 0 && n.und.deadline <= d.at {
			d.undoFails(i, miss{missDeadline, CodeDeadlineExceeded, "the undo's deadline has passed"})
			return
		}
	}
	n.undo = undoActive
	maybe := n.effect() == EffectMaybe
	undo := step.Undo.Do
	twice := n.undoDoubt > 0 && !undo.Idempotent // an undo before another attempt was cut short
	switch {
	case !n.known && maybe && step.Do.Lookup && n.fwd.lookups < maxLookups && n.undoDoubt == 0: // else it may have been undone since
		n.und.kind = callLookup
	case (n.known || undo.ByKey || !step.Undo.UsesSelf) && twice && undo.Lookup && n.und.lookups < maxLookups:
		n.und.kind = callUndoLookup
	case twice:
		d.undoFails(i, miss{missUnknown, CodeOutcomeUnknown, "nobody knows whether the undo took effect, and it is not idempotent"})
		return
	case n.known || undo.ByKey || !step.Undo.UsesSelf:
		n.und.kind = callUndo
	case step.Do.Idempotent && !n.clearing:
		n.und.kind = callLearn
	default:
		d.undoFails(i, miss{missUnknown, CodeOutcomeUnknown,
			"nobody knows whether the step took effect, and its undo needs the output"})
		return
	}
	d.launch.push(i)
}

// resumeUndo goes on with an undo after what was in its way has been resolved.
func (d *decider) resumeUndo(i int) {
	n := d.edit(i)
	n.undo = undoPending
	n.und.act = idle
	n.queue, n.hold = 0, 0
	d.undo.push(i)
}

// prepareUndo evaluates compensate.input. If that is impossible the undo has
// failed.
func (d *decider) prepareUndo(i int) bool {
	n := d.get(i)
	if n.undoReady {
		return true
	}
	input, err := d.step(n).Undo.Input(d.undoScope(n))
	if err != nil {
		d.undoFails(i, expressionMiss("compensate", err))
		return false
	}
	n = d.edit(i)
	n.undoReady, n.undoInput = true, d.s.keep(input)
	return true
}

// undoMissed handles an attempt of the undo track without result.
func (d *decider) undoMissed(i int, kind callKind, m miss) {
	n := d.edit(i)
	if n.undo == undoPending && !n.open() { // the run turned while it was called before another attempt
		d.undo.push(i)
		return
	}
	if n.undo != undoActive || n.und.act != running {
		return // another attempt is planned, or all is over
	}
	if kind != callUndoLookup {
		n.und.blame(m)
	}
	if n.open() {
		return // another one may still bring a result
	}
	switch kind {
	case callUndoLookup:
		if n.und.lookups++; n.und.lookups < maxLookups {
			d.pauseUndo(i, d.lookupPause(n))
			return
		}
		d.undoFails(i, n.und.blamed())
	case callLearn:
		step := d.step(n)
		d.repeatUndo(i, m, mayRepeat(m, d.undoSettings(n).Retry, true, step.Retryable))
	default:
		undo := d.step(n).Undo
		if m.kind == missUnknown && !undo.Do.Idempotent && undo.Do.Lookup {
			n.und.lookups = 0
			n.und.kind = callUndoLookup
			n.und.act = idle
			if n.quiet > d.at {
				d.pause(i, n.quiet)
			} else {
				d.launch.push(i)
			}
			return
		}
		d.repeatUndo(i, m, mayRepeat(m, d.undoSettings(n).Retry, undo.Do.Idempotent, undo.Retryable))
	}
}

// undoLookupMissed handles a lookup of the forward key that brought no answer:
// it is asked again a few times, then the ladder goes on without.
func (d *decider) undoLookupMissed(i int) {
	n := d.edit(i)
	if n.undo == undoActive && n.fwd.lookups < maxLookups {
		d.pauseUndo(i, d.lookupPause(n))
		return
	}
	d.resumeUndo(i)
}

// pauseUndo waits before the planned call of the undo track, at least until no
// earlier attempt can be at work.
func (d *decider) pauseUndo(i int, wait time.Duration) {
	n := d.get(i)
	d.pause(i, max(d.at.add(max(wait, time.Microsecond)), n.quiet, n.und.rest))
}

// repeatUndo plans the next attempt of an undo, or ends it.
func (d *decider) repeatUndo(i int, m miss, again bool) {
	n := d.edit(i)
	r := d.undoSettings(n).Retry
	until := d.interval(r, n, &n.und)
	bound := earliest(n.und.deadline, d.run.undoDeadline)
	if by := d.forwardBound(i); n.clearing && again && by != 0 && until >= by {
		d.outOfTime(i)
		return
	}
	if !again || !attemptsLeft(&n.und, r) || bound != 0 && until >= bound {
		d.undoFails(i, m)
		return
	}
	d.pause(i, until)
}

// undoFails ends an undo without success. It blocks the undo of its own
// ancestors only.
func (d *decider) undoFails(i int, m miss) {
	n := d.edit(i)
	if n.clearing {
		d.clearingFails(i, m)
		return
	}
	n.undo = undoFailed
	n.und.blame(m)
	n.und.act, n.und.ended = idle, d.at
	n.queue, n.hold = 0, 0
	if n.item {
		d.edit(n.of()).undo = undoFailed
	}
}

// endUndo ends the undo of a node so that its ancestors may be undone.
func (d *decider) endUndo(i int, how undoState) {
	n := d.edit(i)
	if n.clearing {
		d.cleared(i)
		return
	}
	n.undo = how
	n.und.act, n.und.ended = idle, d.at
	n.queue, n.hold = 0, 0
	switch {
	case n.expanded:
	case how == undoDone:
		d.run.undone++
	case how == undoLeft:
		d.run.left++
	case how == undoDeclared:
		d.run.undeclared++
	}
	if !n.item {
		d.passed.push(i)
		return
	}
	a := d.edit(n.of())
	if a.past++; a.past == a.count {
		d.endUndo(n.of(), d.strongest(a))
	}
}

// strongest sums up how the instances of a for_each step were undone.
func (d *decider) strongest(a *node) undoState {
	sum := undoNothing
	for k := a.first; k < a.first+a.count; k++ {
		sum = min(sum, d.get(k).undo)
	}
	return sum
}

// passOn tells the ancestors of a step that its undo has finished or was not
// needed.
func (d *decider) passOn(i int) {
	d.run.undonePast++
	for _, j := range d.wf.Steps[i].After {
		b := d.edit(j)
		if b.back++; int(b.back) == len(d.wf.Steps[j].Before) {
			d.undo.push(j)
		}
	}
}

// undoSettings are the limits of a step's undo, with defaults where none are
// given: transient failures are repeated, 1s to 5m apart, until the deadline.
func (d *decider) undoSettings(n *node) *dsl.Settings {
	undo := d.step(n).Undo
	if undo == nil || undo.Settings == nil {
		return &undoDefaults
	}
	told := undoTold{n: n, output: n.output, known: n.known, timedOut: n.timedOut, said: n.fwd.said, failure: d.run.failure}
	if d.seen.undoSettings == nil || d.seen.undo != told {
		s, err := undo.Settings(d.undoScope(n))
		if err != nil {
			return &undoDefaults
		}
		d.seen.undo, d.seen.undoSettings = told, s
	}
	return d.seen.undoSettings
}

// undoDefaults are the limits of an undo for which none are stated. Nobody
// changes them.
var undoDefaults = dsl.Settings{
	Timeout: defaultTimeout,
	Retry: dsl.Retry{
		MaxAttempts: dsl.Unbounded, Strategy: dsl.Exponential,
		InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Minute, Jitter: true,
	},
}
