package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/sdk"
)

// grace is how long past its complete-by an attempt that nobody heard of may
// still be at work. No undo and no lookup starts before.
const grace = 2 * time.Second

// maxLookups is how often a lookup is tried before the ladder goes on without
// its answer.
const maxLookups = 3

// close ends an attempt.
func (d *decider) close(a *model.Attempt, status model.AttemptStatus, code, message string) {
	a.Status, a.Ended, a.Said = status, d.at, model.Said(code, message)
}

// gotResult handles a valid reply (S16).
func (d *decider) gotResult(ev AttemptOK, a *model.Attempt) {
	i := ev.Attempt.Node
	kind := a.Kind
	d.close(a, model.AttemptOK, "", "")
	switch kind {
	case model.CallDo:
		d.result(i, ev.Output, true)
	case model.CallLookup:
		d.result(i, ev.Output, !ev.Output.IsNull())
	case model.CallLearn:
		d.needless(i, model.CallLearn)
		n := d.edit(i)
		n.Done, n.Known, n.Output = true, true, d.s.keep(ev.Output)
		n.Und.Attempt = 0
		d.resumeUndo(i)
	case model.CallUndo, model.CallUndoLookup:
		d.needless(i, model.CallUndo)
		d.endUndo(i, model.UndoDone)
	}
}

// result records that the action of a node has taken effect. The first result
// of any attempt settles the step, even if another engine owns the run by now.
func (d *decider) result(i int, output dsl.Value, known bool) {
	d.needless(i, model.CallDo)
	d.abandon(i) // it has been done all along
	n := d.edit(i)
	if !d.step(n).Do.ReadOnly {
		n.Done = true
	}
	n.Known, n.Output = known, d.s.keep(output)
	d.grown += int64(len(output.JSON()))
	n.TimedOut = false
	d.rest(i)
	if n.Undo != model.UndoNone { // the run has turned: only the effect matters
		if !n.Ended() {
			d.endForward(i, StepSucceeded)
		}
		d.resumeUndo(i)
		return
	}
	if m, ok := d.postconditions(i); !ok {
		d.missed(i, m)
		return
	}
	n.Fwd.Blame(model.Miss{})
	d.endForward(i, StepSucceeded)
}

// needless closes what is still open of a settled node. It may be at work
// until its complete-by.
func (d *decider) needless(i int, kind model.CallKind) {
	n := d.edit(i)
	for k := range n.Attempts {
		if a := &n.Attempts[k]; a.Status == model.AttemptOpen && a.Kind == kind {
			d.close(a, model.AttemptNeedless, "", "")
			n.Quiet = max(n.Quiet, a.CompleteBy.Add(grace))
		}
	}
}

// gotFailure handles a definite failure: the agent vouches that nothing was
// done (S31).
func (d *decider) gotFailure(ev AttemptFailed, a *model.Attempt) {
	d.close(a, model.AttemptFailed, ev.Code, ev.Message)
	n := d.edit(ev.Attempt.Node)
	n.Tally(a.Kind)
	if (a.Kind == model.CallDo || a.Kind == model.CallLearn) && !n.Marked() {
		n.Doubt = max(0, n.Doubt-1) // what it vouches for began after the last checkpoint
	}
	d.wish(n, a.Kind, ev.RetryAfter)
	m := model.Miss{Kind: model.MissFailed, Code: ev.Code, Message: ev.Message}
	if ev.Permanent {
		m.Kind = model.MissPermanent
	}
	d.ended(ev.Attempt.Node, int(a.Call), a.Kind, m)
}

// wish notes how long the agent wants to be left alone.
func (d *decider) wish(n *model.Node, kind model.CallKind, after time.Duration) {
	if after <= 0 {
		return
	}
	t := &n.Fwd
	if n.Undo != model.UndoNone && kind != model.CallDo {
		t = &n.Und
	}
	t.Rest = max(t.Rest, d.at.Add(after))
}

// gotUnknown handles an answer that leaves the outcome open.
func (d *decider) gotUnknown(ev AttemptUnknown, a *model.Attempt) {
	d.close(a, model.AttemptUnknown, ev.Code, ev.Message)
	n := d.edit(ev.Attempt.Node)
	n.Tally(a.Kind)
	d.wish(n, a.Kind, ev.RetryAfter)
	if a.Kind == model.CallUndo {
		n.UndoDoubt++
	}
	d.ended(ev.Attempt.Node, int(a.Call), a.Kind, model.Miss{Kind: model.MissUnknown, Code: ev.Code, Message: ev.Message})
}

// gotNotDone handles a lookup's answer that the key never had an effect. Other
// purposes cannot be answered so.
func (d *decider) gotNotDone(ev AttemptNotDone, a *model.Attempt) {
	i := ev.Attempt.Node
	n := d.edit(i)
	switch a.Kind {
	case model.CallLookup:
		d.close(a, model.AttemptNotDone, "", "")
		n.Doubt = 0
		n.Fwd.Lookups = 0
		n.Point, n.Blob = 0, nil
		d.rest(i)
		if n.Clearing {
			n.Wipe(n.Und.Total > 0)
			d.rerun(i)
			return
		}
		if n.Undo == model.UndoNone {
			m := n.Fwd.Blamed()
			m.Kind = model.MissFailed // now it is known that nothing was done
			n.Fwd.Blame(m)
			d.follow(i, m)
			return
		}
		if !n.Ended() {
			d.endForward(i, StepFailed)
		}
		d.resumeUndo(i)
	case model.CallUndoLookup:
		d.close(a, model.AttemptNotDone, "", "")
		n.UndoDoubt = 0
		n.Und.Lookups = 0
		n.Und.Kind = model.CallUndo
		d.repeatUndo(i, n.Und.Blamed(), true)
	default:
		d.gotUnknown(AttemptUnknown{Attempt: ev.Attempt, Code: sdk.CodeBadReply, Message: "not_done is no answer to this call"}, a)
	}
}

// ended handles a closed attempt without result.
func (d *decider) ended(i, call int, kind model.CallKind, m model.Miss) {
	n := d.edit(i)
	switch kind {
	case model.CallDo:
		d.endedDo(i, call, m)
	case model.CallLookup:
		if n.Undo == model.UndoNone {
			d.rest(i)
			d.lookupMissed(i)
			return
		}
		n.Fwd.Lookups++
		if !n.Ended() && !n.Clearing {
			d.rest(i)
			d.endForward(i, StepFailed)
		}
		d.undoLookupMissed(i)
	default:
		d.undoMissed(i, kind, m)
	}
}

func (d *decider) endedDo(i, call int, m model.Miss) {
	n := d.edit(i)
	if m.Kind == model.MissUnknown && d.step(n).Do.ReadOnly {
		m.Kind = model.MissFailed // nothing can have happened
	}
	if n.Undo != model.UndoNone { // the run has turned; wait for the last of them
		if !n.Open() {
			d.rest(i)
			n.Fwd.Blame(m)
			if !n.Ended() {
				d.endForward(i, StepFailed)
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
			return // another one decides
		}
		if n.Fwd.Miss != model.MissNone {
			m = n.Fwd.Blamed() // the newest has failed already and waited for this one
		}
	}
	d.rest(i)
	d.missed(i, m)
}

// rest ends what the working track was doing, without deciding what follows.
func (d *decider) rest(i int) {
	n := d.edit(i)
	n.Queue, n.Hold = 0, 0
	n.Track().Act = model.Idle
	if n.Undo != model.UndoNone {
		n.Fwd.Act = model.Idle
	}
}

// deferral handles a call that was not sent: a definite outcome that spends no
// attempt and leaves the effect as it was.
func (d *decider) deferral(ev AttemptDeferred) {
	if !d.isOpen(ev.Attempt) {
		d.late = true
		return
	}
	i := ev.Attempt.Node
	n := d.edit(i)
	a := n.Find(ev.Attempt.Call)
	d.close(a, model.AttemptNotSent, "", ev.Why)
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
		if !n.Open() { // the run has turned and this was awaited
			d.rest(i)
			if !n.Ended() {
				d.endForward(i, StepCancelled)
			}
			d.undo.push(i)
		}
		return
	}
	if d.run.Turning && a.Kind == model.CallDo {
		d.rest(i)
		d.resolvePivot(i)
		return
	}
	agent := d.agentOf(n, n.Track().Kind)
	d.deferred = append(d.deferred, agent)
	k := d.wait(i, agent, model.ToInstant(ev.Until), ev.Why)
	d.refuseUntil(k, d.run.Holds[k].Until)
}

// progress keeps a checkpoint of a running call (S82). A heartbeat only says
// that the call goes on, which matters where heartbeat_timeout asks for it.
func (d *decider) progress(ev AttemptProgress) {
	if !d.isOpen(ev.Attempt) {
		d.stray = true
		return
	}
	n := d.edit(ev.Attempt.Node)
	a := n.Find(ev.Attempt.Call)
	d.hear(n, a)
	if ev.Blob == nil {
		return
	}
	if d.passesOver(n, a.Kind) {
		ev.Blob = nil
		d.event = ev
		return
	}
	d.secret = len(ev.Blob) > 0 && (model.Confidential(n.Input.V) || model.Confidential(n.UndoInput.V))
	switch a.Kind {
	case model.CallDo, model.CallLearn:
		if !n.Marked() || ev.Number >= n.Point { // else an older attempt lags behind
			n.Point, n.Blob = ev.Number, ev.Blob
		}
	case model.CallUndo:
		if ev.Number >= n.UndoPoint {
			n.UndoPoint, n.UndoBlob = ev.Number, ev.Blob
		}
	}
}

// hear notes that an attempt is alive: the time for which it may be silent
// starts anew.
func (d *decider) hear(n *model.Node, a *model.Attempt) {
	if a.Kind != model.CallDo && a.Kind != model.CallLearn {
		return
	}
	settings, err := d.settings(n)
	if err != nil || settings.HeartbeatTimeout <= 0 {
		return
	}
	a.Silent = d.at.Add(settings.HeartbeatTimeout)
	if a.Silent >= a.CompleteBy {
		a.Silent = 0
	}
}
