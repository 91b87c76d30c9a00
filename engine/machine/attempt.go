package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// grace is how long past its complete-by an attempt that nobody heard of may
// still be at work. No undo and no lookup starts before.
const grace = 2 * time.Second

// maxLookups is how often a lookup is tried before the ladder goes on without
// its answer.
const maxLookups = 3

// A missKind says how an attempt ended without result, or why none was made.
type missKind uint8

const (
	missNone       missKind = 0
	missFailed     missKind = 1 // definite failure
	missPermanent  missKind = 2 // definite failure that must not be repeated
	missUnknown    missKind = 3
	missCondition  missKind = 4 // precondition or postcondition
	missExpression missKind = 5
	missDeadline   missKind = 6
)

// A miss is a failure of a step or undo, as far as it decides anything.
type miss struct {
	kind          missKind
	code, message string
}

func (t *track) blame(m miss) {
	if t.miss == m.kind && t.code() == m.code && t.message() == m.message {
		return
	}
	t.miss, t.said = m.kind, said(m.code, m.message)
}

// blamed returns the last failure.
func (t *track) blamed() miss { return miss{t.miss, t.code(), t.message()} }

// close ends an attempt.
func (d *decider) close(a *attempt, status attemptStatus, code, message string) {
	a.status, a.ended, a.said = status, d.at, said(code, message)
}

// gotResult handles a valid reply (S16).
func (d *decider) gotResult(ev AttemptOK, a *attempt) {
	i := ev.Attempt.Node
	kind := a.kind
	d.close(a, attemptOK, "", "")
	switch kind {
	case callDo:
		d.result(i, ev.Output, true)
	case callLookup:
		d.result(i, ev.Output, !ev.Output.IsNull())
	case callLearn:
		d.needless(i, callLearn)
		n := d.edit(i)
		n.done, n.known, n.output = true, true, d.s.keep(ev.Output)
		n.und.attempt = 0
		d.resumeUndo(i)
	case callUndo, callUndoLookup:
		d.needless(i, callUndo)
		d.endUndo(i, undoDone)
	}
}

// result records that the action of a node has taken effect. The first result
// of any attempt settles the step, even if another engine owns the run by now.
func (d *decider) result(i int, output dsl.Value, known bool) {
	d.needless(i, callDo)
	d.abandon(i) // it has been done all along
	n := d.edit(i)
	if !d.step(n).Do.ReadOnly {
		n.done = true
	}
	n.known, n.output = known, d.s.keep(output)
	d.grown += int64(len(output.JSON()))
	n.timedOut = false
	d.rest(i)
	if n.undo != undoNone { // the run has turned: only the effect matters
		if !n.ended() {
			d.endForward(i, StepSucceeded)
		}
		d.resumeUndo(i)
		return
	}
	if m, ok := d.postconditions(i); !ok {
		d.missed(i, m)
		return
	}
	n.fwd.blame(miss{})
	d.endForward(i, StepSucceeded)
}

// needless closes what is still open of a settled node. It may be at work
// until its complete-by.
func (d *decider) needless(i int, kind callKind) {
	n := d.edit(i)
	for k := range n.attempts {
		if a := &n.attempts[k]; a.status == attemptOpen && a.kind == kind {
			d.close(a, attemptNeedless, "", "")
			n.quiet = max(n.quiet, a.completeBy.add(grace))
		}
	}
}

// gotFailure handles a definite failure: the agent vouches that nothing was
// done (S31).
func (d *decider) gotFailure(ev AttemptFailed, a *attempt) {
	d.close(a, attemptFailed, ev.Code, ev.Message)
	n := d.edit(ev.Attempt.Node)
	n.tally(a.kind)
	if (a.kind == callDo || a.kind == callLearn) && !n.marked() {
		n.doubt = max(0, n.doubt-1) // what it vouches for began after the last checkpoint
	}
	d.wish(n, a.kind, ev.RetryAfter)
	m := miss{missFailed, ev.Code, ev.Message}
	if ev.Permanent {
		m.kind = missPermanent
	}
	d.ended(ev.Attempt.Node, int(a.call), a.kind, m)
}

// wish notes how long the agent wants to be left alone.
func (d *decider) wish(n *node, kind callKind, after time.Duration) {
	if after <= 0 {
		return
	}
	t := &n.fwd
	if n.undo != undoNone && kind != callDo {
		t = &n.und
	}
	t.rest = max(t.rest, d.at.add(after))
}

// gotUnknown handles an answer that leaves the outcome open.
func (d *decider) gotUnknown(ev AttemptUnknown, a *attempt) {
	d.close(a, attemptUnknown, ev.Code, ev.Message)
	n := d.edit(ev.Attempt.Node)
	n.tally(a.kind)
	d.wish(n, a.kind, ev.RetryAfter)
	if a.kind == callUndo {
		n.undoDoubt++
	}
	d.ended(ev.Attempt.Node, int(a.call), a.kind, miss{missUnknown, ev.Code, ev.Message})
}

// gotNotDone handles a lookup's answer that the key never had an effect. Other
// purposes cannot be answered so.
func (d *decider) gotNotDone(ev AttemptNotDone, a *attempt) {
	i := ev.Attempt.Node
	n := d.edit(i)
	switch a.kind {
	case callLookup:
		d.close(a, attemptNotDone, "", "")
		n.doubt = 0
		n.fwd.lookups = 0
		n.point, n.blob = 0, nil
		d.rest(i)
		if n.clearing {
			n.wipe(n.und.total > 0)
			d.rerun(i)
			return
		}
		if n.undo == undoNone {
			m := n.fwd.blamed()
			m.kind = missFailed // now it is known that nothing was done
			n.fwd.blame(m)
			d.follow(i, m)
			return
		}
		if !n.ended() {
			d.endForward(i, StepFailed)
		}
		d.resumeUndo(i)
	case callUndoLookup:
		d.close(a, attemptNotDone, "", "")
		n.undoDoubt = 0
		n.und.lookups = 0
		n.und.kind = callUndo
		d.repeatUndo(i, n.und.blamed(), true)
	default:
		d.gotUnknown(AttemptUnknown{Attempt: ev.Attempt, Code: sdk.CodeBadReply, Message: "not_done is no answer to this call"}, a)
	}
}

// ended handles a closed attempt without result.
func (d *decider) ended(i, call int, kind callKind, m miss) {
	n := d.edit(i)
	switch kind {
	case callDo:
		d.endedDo(i, call, m)
	case callLookup:
		if n.undo == undoNone {
			d.rest(i)
			d.lookupMissed(i)
			return
		}
		n.fwd.lookups++
		if !n.ended() && !n.clearing {
			d.rest(i)
			d.endForward(i, StepFailed)
		}
		d.undoLookupMissed(i)
	default:
		d.undoMissed(i, kind, m)
	}
}

func (d *decider) endedDo(i, call int, m miss) {
	n := d.edit(i)
	if m.kind == missUnknown && d.step(n).Do.ReadOnly {
		m.kind = missFailed // nothing can have happened
	}
	if n.undo != undoNone { // the run has turned; wait for the last of them
		if !n.open() {
			d.rest(i)
			n.fwd.blame(m)
			if !n.ended() {
				d.endForward(i, StepFailed)
			}
			d.undo.push(i)
		}
		return
	}
	if n.fwd.act != running {
		return // a newer attempt is planned
	}
	if int(n.newest(callDo)) != call {
		if n.open() {
			return // another one decides
		}
		if n.fwd.miss != missNone {
			m = n.fwd.blamed() // the newest has failed already and waited for this one
		}
	}
	d.rest(i)
	d.missed(i, m)
}

// newest returns the number of the latest call of this kind; 0 = none.
func (n *node) newest(kind callKind) int32 {
	for k := len(n.attempts) - 1; k >= 0; k-- {
		if n.attempts[k].kind == kind {
			return n.attempts[k].call
		}
	}
	return 0
}

// rest ends what the working track was doing, without deciding what follows.
func (d *decider) rest(i int) {
	n := d.edit(i)
	n.queue, n.hold = 0, 0
	n.track().act = idle
	if n.undo != undoNone {
		n.fwd.act = idle
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
	a := n.find(ev.Attempt.Call)
	d.close(a, attemptNotSent, "", ev.Why)
	switch a.kind {
	case callDo:
		n.fwd.attempt, n.fwd.total = n.fwd.attempt-1, n.fwd.total-1
		n.doubt = max(0, n.doubt-1)
	case callLearn:
		n.und.attempt--
		n.doubt = max(0, n.doubt-1)
	case callUndo:
		n.und.attempt, n.und.total = n.und.attempt-1, n.und.total-1
	}
	if n.undo != undoNone && (a.kind == callDo || n.undo == undoPending) {
		if !n.open() { // the run has turned and this was awaited
			d.rest(i)
			if !n.ended() {
				d.endForward(i, StepCancelled)
			}
			d.undo.push(i)
		}
		return
	}
	if d.run.turning && a.kind == callDo {
		d.rest(i)
		d.resolvePivot(i)
		return
	}
	agent := d.agentOf(n, n.track().kind)
	d.deferred = append(d.deferred, agent)
	k := d.wait(i, agent, toInstant(ev.Until), ev.Why)
	d.refuseUntil(k, d.run.holds[k].until)
}

// progress keeps a checkpoint of a running call (S82). A heartbeat only says
// that the call goes on, which matters where heartbeat_timeout asks for it.
func (d *decider) progress(ev AttemptProgress) {
	if !d.isOpen(ev.Attempt) {
		d.stray = true
		return
	}
	n := d.edit(ev.Attempt.Node)
	a := n.find(ev.Attempt.Call)
	d.hear(n, a)
	if ev.Blob == nil {
		return
	}
	if d.passesOver(n, a.kind) {
		ev.Blob = nil
		d.event = ev
		return
	}
	d.secret = len(ev.Blob) > 0 && (confidential(n.input.v) || confidential(n.undoInput.v))
	switch a.kind {
	case callDo, callLearn:
		if !n.marked() || ev.Number >= n.point { // else an older attempt lags behind
			n.point, n.blob = ev.Number, ev.Blob
		}
	case callUndo:
		if ev.Number >= n.undoPoint {
			n.undoPoint, n.undoBlob = ev.Number, ev.Blob
		}
	}
}

// confidential reports whether what an agent makes of the value may have to be
// hidden.
func confidential(v dsl.Value) bool { return len(v.Sensitive())+len(v.Secrets()) > 0 }

// hear notes that an attempt is alive: the time for which it may be silent
// starts anew.
func (d *decider) hear(n *node, a *attempt) {
	if a.kind != callDo && a.kind != callLearn {
		return
	}
	settings, err := d.settings(n)
	if err != nil || settings.HeartbeatTimeout <= 0 {
		return
	}
	a.silent = d.at.add(settings.HeartbeatTimeout)
	if a.silent >= a.completeBy {
		a.silent = 0
	}
}
