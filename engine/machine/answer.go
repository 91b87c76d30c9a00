package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// gotResult handles a valid result of a call (S16). The parameter `a` is the attempt that the
// result answers.
func (d answers) gotResult(ev AttemptOK, a *model.Attempt) {
	i := ev.Attempt.Node
	kind := a.Kind
	d.remember(i, ev.Kept)
	if m, refused := d.refusal(i, ev.Output, kind); refused {
		d.gotRefusal(ev, a, m)
		return
	}
	d.caller().close(a, model.AttemptOK, "", "")
	switch kind {
	case model.CallDo:
		d.result(i, ev.Output, true)
	case model.CallLookup:
		d.result(i, ev.Output, !ev.Output.IsNull())
	case model.CallLearn:
		d.caller().needless(i, model.CallLearn)
		n := d.edit(i)
		n.Done, n.Known, n.Output = true, true, d.s.keep(ev.Output)
		n.Und.Attempt = 0
		d.undoing().resumeUndo(i)
	case model.CallUndo, model.CallUndoLookup:
		d.caller().needless(i, model.CallUndo)
		d.undoing().endUndo(i, model.UndoAfter(ev.Kept, model.UndoDone))
	}
}

// result records that the action of node i has succeeded. The parameter `known` is true if the
// parameter `output` is the real output of the action. The first result of any attempt decides the
// outcome of the step, even if a former owner of the run started that attempt.
func (d answers) result(i int, output dsl.Value, known bool) {
	d.caller().needless(i, model.CallDo)
	// An undo before another attempt is not needed: this attempt has succeeded.
	d.undoing().abandon(i)
	n := d.edit(i)
	if !d.step(n).Do.ReadOnly {
		n.Done = true
	}
	n.Known, n.Output = known, d.s.keep(output)
	d.grown += int64(len(output.JSON()))
	n.TimedOut = false
	d.caller().rest(i)
	if n.Undo != model.UndoNone { // the run has turned back: only the effect matters now
		if !n.Ended() {
			d.forward().endForward(i, status.StepSucceeded)
		}
		d.undoing().resumeUndo(i)
		return
	}
	if m, ok := d.postconditions(i); !ok {
		d.forward().missed(i, m)
		return
	}
	loops(d).succeed(i)
}

// postconditions checks the postconditions of a step after the step got a result. It returns
// true if all hold. Otherwise it returns the failure and false. A postcondition or fail_when
// that cannot be evaluated counts as a failed postcondition.
func (d answers) postconditions(i int) (model.Miss, bool) {
	n := d.get(i)
	for _, r := range d.step(n).FailWhen {
		if _, err := r.Check(d.selfScope(n)); err != nil { // the condition cannot be evaluated
			return model.Miss{Kind: model.MissCondition, Code: "postcondition_failed", Message: "fail_when: " + err.Error()}, false
		}
	}
	for _, c := range d.step(n).Post {
		if m, ok := checkCondition(c, d.selfScope(n), "postcondition"); !ok {
			if m.Kind == model.MissExpression {
				m.Kind, m.Code = model.MissCondition, "postcondition_failed"
			}
			return m, false
		}
	}
	return model.Miss{}, true
}

// refusal reports whether the condition of a fail_when block is true for a result. If the condition
// is true, the result counts as a definite failure, and refusal returns this failure and true. The
// method checks only results of forward calls (CallDo), and outputs that a lookup found.
func (d answers) refusal(i int, out dsl.Value, kind model.CallKind) (model.Miss, bool) {
	n := d.get(i)
	list := d.step(n).FailWhen
	if len(list) == 0 || kind != model.CallDo && (kind != model.CallLookup || out.IsNull()) {
		return model.Miss{}, false
	}
	sc := d.selfScope(n)
	sc.Self.Output, sc.Self.OutputKnown = out, true
	for _, r := range list {
		holds, err := r.Check(sc)
		if err != nil || !holds {
			continue // the method `postconditions` reports the error, if there is one
		}
		m := describe(r.Condition, sc, model.Miss{Kind: model.MissFailed, Code: "refused"})
		if r.Permanent {
			m.Kind = model.MissPermanent
		}
		return m, true
	}
	return model.Miss{}, false
}

// gotFailure handles a definite failure of the attempt `a`: the agent guarantees that nothing
// was done (S31).
func (d answers) gotFailure(ev AttemptFailed, a *model.Attempt) {
	d.caller().close(a, model.AttemptFailed, ev.Code, ev.Message)
	d.remember(ev.Attempt.Node, ev.Kept)
	n := d.edit(ev.Attempt.Node)
	n.Tally(a.Kind)
	if (a.Kind == model.CallDo || a.Kind == model.CallLearn) && !n.Marked() {
		// Doubt counts attempts that may have had an effect. This attempt had no effect: its
		// failure is definite, and the node has no checkpoint.
		n.Doubt = max(0, n.Doubt-1)
	}
	if a.Kind == model.CallDo && n.Data != (model.StoredValue{V: ev.Data}) {
		n.Data = d.s.keep(ev.Data)
		d.grown += int64(len(ev.Data.JSON()))
	}
	if a.Kind == model.CallDo {
		handover(d).failed(ev)
	}
	d.noteRetryAfter(n, a.Kind, ev.RetryAfter)
	m := model.Miss{Kind: model.MissFailed, Code: ev.Code, Message: ev.Message}
	if ev.Permanent {
		m.Kind = model.MissPermanent
	}
	if a.Kind == model.CallDo && d.caller().overstayed(n) {
		m = model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the deadline had passed before the child run ended"}
	}
	d.ended(ev.Attempt.Node, int(a.Call), a.Kind, m)
}

// gotRefusal handles a result for which a fail_when block is true. The parameter `m` is the
// failure. If the result is the answer to a lookup, it means that the earlier call had no effect.
func (d answers) gotRefusal(ev AttemptOK, a *model.Attempt, m model.Miss) {
	if a.Kind == model.CallLookup {
		d.edit(ev.Attempt.Node).Fwd.Blame(m)
		d.gotNotDone(AttemptNotDone{Attempt: ev.Attempt}, a)
		return
	}
	d.gotFailure(AttemptFailed{
		Attempt: ev.Attempt, Code: m.Code, Message: m.Message, Permanent: m.Kind == model.MissPermanent, Data: ev.Output,
	}, a)
}

// noteRetryAfter records the pause that the agent wants before the next call (retry_after). The
// parameter `after` is this pause; if it is 0, noteRetryAfter does nothing.
func (d answers) noteRetryAfter(n *model.Node, kind model.CallKind, after time.Duration) {
	if after <= 0 {
		return
	}
	t := &n.Fwd
	if n.Undo != model.UndoNone && kind != model.CallDo {
		t = &n.Und
	}
	t.Rest = max(t.Rest, d.at.Add(after))
}

// gotUnknown handles the end of the attempt `a` if the outcome of its call is unknown.
func (d answers) gotUnknown(ev AttemptUnknown, a *model.Attempt) {
	d.caller().close(a, model.AttemptUnknown, ev.Code, ev.Message)
	n := d.edit(ev.Attempt.Node)
	n.Tally(a.Kind)
	d.noteRetryAfter(n, a.Kind, ev.RetryAfter)
	if a.Kind == model.CallUndo {
		n.UndoDoubt++
	}
	if a.Kind == model.CallDo {
		n.Data = model.StoredValue{}
	}
	d.ended(ev.Attempt.Node, int(a.Call), a.Kind, model.Miss{Kind: model.MissUnknown, Code: ev.Code, Message: ev.Message})
}

// gotNotDone handles the answer that no call with the idempotency key had an effect. Only a lookup
// can have this answer. If a call of another kind gets this answer, the answer is a bad reply, and
// the outcome of the call is unknown.
func (d answers) gotNotDone(ev AttemptNotDone, a *model.Attempt) {
	i := ev.Attempt.Node
	n := d.edit(i)
	switch a.Kind {
	case model.CallLookup:
		d.caller().close(a, model.AttemptNotDone, "", "")
		n.Doubt = 0
		n.Fwd.Lookups = 0
		n.Point, n.Blob = 0, nil
		d.caller().rest(i)
		if n.Clearing {
			n.Wipe(n.Und.Total > 0)
			d.undoing().rerun(i)
			return
		}
		if n.Undo == model.UndoNone {
			m := n.Fwd.Blamed()
			m.Kind = model.MissFailed // the lookup has shown that nothing was done
			n.Fwd.Blame(m)
			d.forward().follow(i, m)
			return
		}
		if !n.Ended() {
			d.forward().endForward(i, status.StepFailed)
		}
		d.undoing().resumeUndo(i)
	case model.CallUndoLookup:
		d.caller().close(a, model.AttemptNotDone, "", "")
		n.UndoDoubt = 0
		n.Und.Lookups = 0
		n.Und.Kind = model.CallUndo
		d.undoing().repeatUndo(i, n.Und.Blamed(), true)
	default:
		d.gotUnknown(AttemptUnknown{Attempt: ev.Attempt, Code: sdk.CodeBadReply, Message: "not_done is no answer to this call"}, a)
	}
}

// ended decides what happens next when an attempt of node i was closed without a result. The
// parameters `call`, `kind` and `m` are the call number, the kind and the failure of that attempt.
func (d answers) ended(i, call int, kind model.CallKind, m model.Miss) {
	n := d.edit(i)
	switch kind {
	case model.CallDo:
		d.endedDo(i, call, m)
	case model.CallLookup:
		if n.Undo == model.UndoNone {
			d.caller().rest(i)
			d.forward().lookupMissed(i)
			return
		}
		n.Fwd.Lookups++
		if !n.Ended() && !n.Clearing {
			d.caller().rest(i)
			d.forward().endForward(i, status.StepFailed)
		}
		d.undoing().undoLookupMissed(i)
	default:
		d.undoing().undoMissed(i, kind, m)
	}
}

func (d answers) endedDo(i, call int, m model.Miss) {
	n := d.edit(i)
	if m.Kind == model.MissUnknown && d.step(n).Do.ReadOnly {
		m.Kind = model.MissFailed // a read-only action has no effect that could be unknown
	}
	// The run has turned back; wait until no attempt of the node is open.
	if n.Undo != model.UndoNone {
		if !n.Open() {
			d.caller().rest(i)
			n.Fwd.Blame(m)
			if !n.Ended() {
				d.forward().endForward(i, status.StepFailed)
			}
			d.undo.push(i)
		}
		return
	}
	if n.Fwd.Act != model.Running {
		return // a newer attempt is planned
	}
	if int(n.Newest(model.CallDo)) != call {
		if n.Open() {
			return // the attempt that is still open decides what follows
		}
		if n.Fwd.Miss != model.MissNone {
			// The newest attempt failed while this older attempt was still open. The failure of the
			// newest attempt counts now.
			m = n.Fwd.Blamed()
		}
	}
	d.caller().rest(i)
	d.forward().missed(i, m)
}

// deferral handles a call that the engine did not send. This outcome is definite: the attempt
// does not count, and the step has no new effect.
func (d answers) deferral(ev AttemptDeferred) {
	if !d.isOpen(ev.Attempt) {
		d.late = true
		return
	}
	i := ev.Attempt.Node
	n := d.edit(i)
	a := n.Find(ev.Attempt.Call)
	d.caller().close(a, model.AttemptNotSent, "", ev.Why)
	switch a.Kind {
	case model.CallDo:
		n.Fwd.Attempt, n.Fwd.Total = n.Fwd.Attempt-1, n.Fwd.Total-1
		n.Doubt = max(0, n.Doubt-1)
	case model.CallLearn:
		n.Und.Attempt--
		n.Doubt = max(0, n.Doubt-1)
	case model.CallUndo:
		n.Und.Attempt, n.Und.Total = n.Und.Attempt-1, n.Und.Total-1
	}
	if n.Undo != model.UndoNone && (a.Kind == model.CallDo || n.Undo == model.UndoPending) {
		if !n.Open() { // the run has turned back and waited for the end of this attempt
			d.caller().rest(i)
			if !n.Ended() {
				d.forward().endForward(i, status.StepCancelled)
			}
			d.undo.push(i)
		}
		return
	}
	if d.run.Turning && a.Kind == model.CallDo {
		d.caller().rest(i)
		d.undoing().resolvePivot(i)
		return
	}
	agent := d.caller().agentOf(n, n.Track().Kind)
	d.deferred = append(d.deferred, agent)
	k := d.slots().wait(i, agent, model.ToInstant(ev.Until), ev.Why)
	d.slots().refuseUntil(k, d.run.Holds[k].Until)
}

// progress records a checkpoint of a running call (S82). Every AttemptProgress of an open attempt
// makes the heartbeat_timeout start again. If the Blob is nil, the event is a heartbeat, and
// nothing is recorded as a checkpoint.
func (d answers) progress(ev AttemptProgress) {
	if !d.isOpen(ev.Attempt) {
		d.stray = true
		return
	}
	n := d.edit(ev.Attempt.Node)
	a := n.Find(ev.Attempt.Call)
	d.caller().restartSilence(n, a)
	if ev.Blob == nil {
		return
	}
	if d.dropsCheckpoint(n, a.Kind) {
		ev.Blob = nil
		d.event = ev
		return
	}
	d.secret = len(ev.Blob) > 0 && (model.Confidential(n.Input.V) || model.Confidential(n.UndoInput.V))
	switch a.Kind {
	case model.CallDo, model.CallLearn:
		// A checkpoint with a lower number is from an older, slower attempt: ignore it.
		if !n.Marked() || ev.Number >= n.Point {
			n.Point, n.Blob = ev.Number, ev.Blob
		}
	case model.CallUndo:
		if ev.Number >= n.UndoPoint {
			n.UndoPoint, n.UndoBlob = ev.Number, ev.Blob
		}
	}
}

// remember records in node i what remains of the effects of a child run of this node. The same
// child run may answer two calls: the call that started the child, and the call that undoes the
// child. So each element of `kept` counts only once.
func (d answers) remember(i int, kept status.Kept) {
	if fresh := kept.OfStep() &^ d.get(i).Kept; fresh != 0 {
		n := d.edit(i)
		n.Kept |= fresh
		d.run.CountKept(fresh)
	}
	if kept.Has(status.KeptPivot) && i == d.wf.Pivot && d.run.Phase == model.PhaseForward {
		d.undoing().pivotKept()
	}
}

// answered passes the attempt with this id to the function `f`, if the attempt is open. If the
// attempt is not open, the answer is late and changes nothing (S28, S35).
func (d answers) answered(id AttemptID, f func(*model.Attempt)) {
	if d.isOpen(id) {
		f(d.edit(id.Node).Find(id.Call))
		return
	}
	d.late = true
}

func (d answers) isOpen(id AttemptID) bool {
	if id.Node < 0 || id.Node >= d.count() {
		return false
	}
	a := d.get(id.Node).Find(id.Call)
	return a != nil && a.Status == model.AttemptOpen
}

// dropsCheckpoint reports whether a checkpoint must be dropped, because the run has reached a
// ceiling. Such a checkpoint counts only as a heartbeat. The first checkpoint of the action and the
// first checkpoint of the undo are always recorded, because they say that there is an effect.
func (d answers) dropsCheckpoint(n *model.Node, kind model.CallKind) bool {
	first := !n.Marked()
	if kind == model.CallUndo {
		first = n.UndoPoint == 0 && len(n.UndoBlob) == 0
	}
	if first {
		return false
	}
	_, over := d.exceeded()
	return over || d.s.checkpoints >= d.ceilings().Checkpoints
}
