package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// considerUndo starts the undo of node i if that is possible now. The undo of every step that
// depended on the node must have ended, and no attempt of the node may still be running.
func (d undoing) considerUndo(i int) {
	n := d.get(i)
	if n.Clearing {
		d.reconsider(i)
		return
	}
	if d.run.Phase != model.PhaseUndo || n.Undo != model.UndoPending || !d.orderAllows(n) {
		return
	}
	if n.Expanded {
		d.edit(i).Undo = model.UndoActive
		for k := n.First + n.Count - 1; k >= n.First; k-- {
			d.undo.push(k)
		}
		if n.Count == 0 {
			d.endUndo(i, model.UndoNothing)
		}
		return
	}
	if n.Open() || !n.Ended() {
		return // the end of the open attempt calls considerUndo again
	}
	step := d.step(n)
	switch {
	case n.OwnEffect() == status.EffectNone:
		// The effects that a child run kept at its end cannot be undone.
		d.endUndo(i, model.UndoAfter(n.Kept, model.UndoNothing))
	case step.Undo == nil || step.NoUndo:
		d.endUndo(i, model.UndoDeclared)
	case d.run.NoUndo:
		d.endUndo(i, model.UndoLeft)
	case d.run.UndoExpired:
		d.undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the compensation's deadline has passed"})
	case n.MayWorkUntil > d.at:
		d.edit(i).Und.Kind = model.CallUndo
		d.caller().pause(i, n.MayWorkUntil)
	default:
		d.nextUndoCall(i)
	}
}

// orderAllows reports whether the order of the undos allows the undo of this node now. The
// undo of every step that depended on the node must have ended. For an instance, the undo of
// its for_each step must also have begun.
func (d undoing) orderAllows(n *model.Node) bool {
	if a := d.get(n.Of()); a.Expanded && !n.Expanded && a.Undo == model.UndoPending {
		return false
	}
	return int(d.get(n.Of()).Back) == len(d.wf.Steps[n.Step].Before)
}

// nextUndoCall chooses the next call that is needed to undo the effect of node i. The call is a
// lookup of the outcome, the undo itself, or a repeated forward call that gives the output for
// the undo. If no call can help, the undo fails, and a person must act.
func (d undoing) nextUndoCall(i int) {
	n := d.edit(i)
	step := d.step(n)
	n.Und.Act = model.Idle
	if n.Und.Ready == 0 {
		n.Und.Ready = d.at
		n.Und.Deadline = d.run.UndoDeadline
		if n.Clearing {
			n.Und.Deadline = d.at.Add(DefaultCompensation)
		}
		if at, ok := d.undoSettings(n).Deadline.From(d.at.Time()); ok {
			n.Und.Deadline = model.Earliest(model.ToInstant(at), n.Und.Deadline)
		}
		if n.Und.Deadline != 0 && n.Und.Deadline <= d.at {
			d.undoFails(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the undo's deadline has passed"})
			return
		}
	}
	n.Undo = model.UndoActive
	maybe := n.Present() == status.EffectMaybe
	// In a loop, the present iteration may have no effect. Then the undo uses the output of the
	// last iteration that succeeded, and this output is known.
	known := n.Known || n.Present() == status.EffectNone
	undo := step.Undo.Do
	// True if an earlier undo of unknown outcome may have taken effect, and a second one could do
	// harm.
	twice := n.UndoDoubt > 0 && !undo.Idempotent
	switch {
	// Look up the forward call, but not after an undo of unknown outcome. After such an undo the
	// effect may be gone already, and the lookup would prove nothing.
	case !n.Known && maybe && step.Do.Lookup && n.Fwd.Lookups < maxLookups && n.UndoDoubt == 0:
		n.Und.Kind = model.CallLookup
	case (known || undo.ByKey || !step.Undo.UsesSelf) && twice && undo.Lookup && n.Und.Lookups < maxLookups:
		n.Und.Kind = model.CallUndoLookup
	case twice:
		d.undoFails(i, model.Miss{Kind: model.MissUnknown, Code: CodeOutcomeUnknown, Message: "nobody knows whether the undo took effect, and it is not idempotent"})
		return
	case known || undo.ByKey || !step.Undo.UsesSelf:
		n.Und.Kind = model.CallUndo
	case step.Do.Idempotent && !n.Clearing:
		n.Und.Kind = model.CallLearn
	default:
		d.undoFails(i, model.Miss{Kind: model.MissUnknown, Code: CodeOutcomeUnknown, Message: "nobody knows whether the step took effect, and its undo needs the output"})
		return
	}
	d.launch.push(i)
}

// prepareUndo evaluates compensate.input, if that was not done before, and returns true. If
// the expression cannot be evaluated, it ends the undo as failed and returns false.
func (d undoing) prepareUndo(i int) bool {
	n := d.get(i)
	if n.UndoReady {
		return true
	}
	loops(d).gatherLast(i)
	n = d.get(i)
	input, err := d.step(n).Undo.Input(d.undoScope(n))
	if err != nil {
		d.undoFails(i, expressionMiss("compensate", err))
		return false
	}
	n = d.edit(i)
	n.UndoReady, n.UndoInput = true, d.s.keep(input)
	return true
}

// undoMissed handles an attempt of an undo that failed or whose outcome is unknown.
func (d undoing) undoMissed(i int, kind model.CallKind, m model.Miss) {
	n := d.edit(i)
	// This undo was called before the next attempt of the node (clearing). In the meantime the run
	// has turned back, so now the compensation undoes the node.
	if n.Undo == model.UndoPending && !n.Open() {
		d.undo.push(i)
		return
	}
	if n.Undo != model.UndoActive || n.Und.Act != model.Running {
		return // another attempt is planned, or the undo has ended
	}
	if kind != model.CallUndoLookup {
		n.Und.Blame(m)
	}
	if n.Open() {
		return // another open attempt may still succeed
	}
	switch kind {
	case model.CallUndoLookup:
		if n.Und.Lookups++; n.Und.Lookups < maxLookups {
			d.pauseUndo(i, d.forward().lookupPause(n))
			return
		}
		d.undoFails(i, n.Und.Blamed())
	case model.CallLearn:
		step := d.step(n)
		d.repeatUndo(i, m, MayRepeat(m, d.undoSettings(n).Retry, true, step.Retryable))
	default:
		undo := d.step(n).Undo
		if m.Kind == model.MissUnknown && !undo.Do.Idempotent && undo.Do.Lookup {
			n.Und.Lookups = 0
			n.Und.Kind = model.CallUndoLookup
			n.Und.Act = model.Idle
			if n.MayWorkUntil > d.at {
				d.caller().pause(i, n.MayWorkUntil)
			} else {
				d.launch.push(i)
			}
			return
		}
		d.repeatUndo(i, m, MayRepeat(m, d.undoSettings(n).Retry, undo.Do.Idempotent, undo.Retryable))
	}
}

// undoLookupMissed handles a lookup of the forward call that did not find out the outcome, while
// the node is being undone. If fewer than maxLookups lookups were tried, it plans another one.
// Otherwise the method `nextUndoCall` chooses another call.
func (d undoing) undoLookupMissed(i int) {
	n := d.edit(i)
	if n.Undo == model.UndoActive && n.Fwd.Lookups < maxLookups {
		d.pauseUndo(i, d.forward().lookupPause(n))
		return
	}
	d.resumeUndo(i)
}

// pauseUndo delays the planned call of an undo by the duration `wait`. The pause is longer if an
// earlier attempt may still be running, or if the agent asked for a later call.
func (d undoing) pauseUndo(i int, wait time.Duration) {
	n := d.get(i)
	d.caller().pause(i, max(d.at.Add(max(wait, time.Microsecond)), n.MayWorkUntil, n.Und.Rest))
}

// repeatUndo plans the next attempt of an undo after the failure m. If the parameter `again` is
// false, or no attempts or no time are left, it ends the undo as failed. For an undo before the
// next attempt of the node, the deadlines of the step and of the run count, too (outOfTime).
func (d undoing) repeatUndo(i int, m model.Miss, again bool) {
	n := d.edit(i)
	r := d.undoSettings(n).Retry
	until := d.forward().nextAttempt(r, n, &n.Und)
	bound := model.Earliest(n.Und.Deadline, d.run.UndoDeadline)
	if by := d.forward().forwardBound(i); n.Clearing && again && by != 0 && until >= by {
		d.outOfTime(i)
		return
	}
	if !again || !attemptsLeft(&n.Und, r) || bound != 0 && until >= bound {
		d.undoFails(i, m)
		return
	}
	d.caller().pause(i, until)
}

// passOn is called when the undo of step i has ended or was not needed. It counts this in the field
// Back of every step on which step i depends. When all dependents of such a step are counted, the
// undo of this step can start.
func (d undoing) passOn(i int) {
	d.run.UndonePast++
	for _, j := range d.wf.Steps[i].After {
		b := d.edit(j)
		if b.Back++; int(b.Back) == len(d.wf.Steps[j].Before) {
			d.undo.push(j)
		}
	}
}

// clear begins to undo node i before its next attempt. If an attempt of the node is open,
// clear only waits for the answer. If a closed attempt may still be running, it plans a pause
// until the attempt must have ended.
func (d undoing) clear(i int) {
	n := d.edit(i)
	switch {
	case n.Open(): // the answer may show that the undo is not necessary
		n.Fwd.Act, n.State = model.Running, status.StepRunning
	case n.MayWorkUntil > d.at:
		d.caller().pause(i, n.MayWorkUntil)
	default:
		n.Clearing = true
		n.State, n.Fwd.Act = status.StepBackoff, model.Idle
		n.Queue, n.Hold = 0, 0
		n.Und = model.Track{Failures: n.Und.Failures, Total: n.Und.Total}
		d.nextUndoCall(i)
	}
}

// reconsider continues to clear node i: to undo its possible effect, so that its next attempt can
// start. It is called after a pause, or after the answer to a lookup.
func (d undoing) reconsider(i int) {
	n := d.get(i)
	switch {
	case n.Open():
	case n.MayWorkUntil > d.at:
		d.caller().pause(i, n.MayWorkUntil)
	default:
		d.nextUndoCall(i)
	}
}

// outOfTime is called if the undo before the next attempt must be repeated, but the deadline
// of the step or of the run comes first. The step gets no other attempt: it ends as caught or
// as failed.
func (d undoing) outOfTime(i int) {
	d.abandon(i)
	m := d.forward().noTimeLeft(i, d.get(i).Fwd.Blamed())
	if !d.forward().catches(i, m) {
		d.forward().giveUp(i, m, true)
	}
}

// An earlier attempt of a step with on_rerun = "undo_first" may have had an effect. The undo of
// such a step is called before its next attempt, while the run still goes forward. The code calls
// this clearing (Node.Clearing). The rules of all other undos also apply to clearing. After
// clearing, the step starts again with a new idempotency key. With the old key, the agent would not
// cause the effect again.
//
// The functions below decide whether a node must be cleared. They also end clearing that succeeds
// or is not needed any more. The method `clear` begins clearing, and the method `reconsider`
// continues it. The file nodeend.go handles clearing that fails.

// mustClear reports whether the engine must call the undo of the node before the next attempt.
func (d undoing) mustClear(n *model.Node) bool {
	step := d.step(n)
	return step.OnRerun == dsl.RerunUndoFirst && step.Undo != nil && n.OwnEffect() != status.EffectNone
}

// clearable reports whether the possible effect of a node can be undone before another attempt.
// After such an undo, that attempt cannot cause the effect twice, even if the action is not
// idempotent.
func (d undoing) clearable(n *model.Node) bool {
	step := d.step(n)
	if step.OnRerun != dsl.RerunUndoFirst || step.Undo == nil {
		return false
	}
	return n.Known || step.Undo.Do.ByKey || !step.Undo.UsesSelf
}

// abandon stops the undo before the next attempt of node i, and resets the data of this undo.
// It does nothing if the node has no such undo.
func (d undoing) abandon(i int) {
	if !d.get(i).Clearing {
		return
	}
	n := d.edit(i)
	n.Clearing, n.Undo = false, model.UndoNone
	n.Und.Act, n.Und.Attempt, n.Und.Lookups = model.Idle, 0, 0
	n.Und.Began, n.Und.Ready, n.Und.Deadline, n.Und.Rest = 0, 0, 0, 0
	n.Queue, n.Hold = 0, 0
}

// cleared is called when the undo before the next attempt of node i has succeeded. It starts
// the next attempt, with a new idempotency key.
func (d undoing) cleared(i int) {
	d.edit(i).Wipe(true)
	d.rerun(i)
}

// rerun starts the next attempt of a node that has no effect now.
func (d undoing) rerun(i int) {
	d.abandon(i)
	d.edit(i).Fwd.Kind = model.CallDo
	d.launch.push(i)
}
