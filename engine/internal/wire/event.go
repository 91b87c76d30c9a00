package wire

import (
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Kinds of persisted events. A number is never reused.
const (
	kindStarted = iota + 1
	kindAttemptOK
	kindAttemptFailed
	kindAttemptUnknown
	kindAttemptNotDone
	kindAttemptDeferred
	kindAttemptProgress
	kindTimePassed
	kindSlotsFreed
	kindTakenOver
	kindCancelRequested
	kindPauseRequested
	kindResumeRequested
	kindRetryRequested
	kindCompensateRequested
	kindSettleRequested
	kindRefused
	kindEngineLost
	kindSignalReceived
	kindAttemptRefused
	kindChildStarted
	kindUndoRequested
	kindStartedInLine      // a Started with a priority or a limit, or with the field Waits
	kindAdmitted           // a SlotsFreed that admits the run
	kindChildStartedInLine // a Started of a child run with a priority or a limit
	kindMigrated
	kindStartedBy       // a Started with a time StartBy; it also has a parent, a priority and a limit
	kindRestarted       // a Started of a run that takes over results of another run
	kindStartedReplying // a Started whose run has replies; it also has a priority, a limit and a time StartBy
	kindCancelWithCode  // a CancelRequested with a code
	kindSignalForgets   // a SignalReceived with which the run forgets its oldest id
	kindGroupStarted    // a Started of a group's run with early signals; it also has a priority and a limit
	kindChildEnded      // the field Kept of an AttemptOK or AttemptFailed; after it, the event is written in its ordinary form
	kindParentWaits     // a new time until which the parent of a child run waits
	kindGroupStartedIDs // a GroupStarted whose signals have ids
)

// started encodes the start of a run. Most runs have no parent, no priority and no limit. The kind
// of the event says which of these fields follow, so that a missing field takes no bytes.
func (e *encoder) started(ev machine.Started) {
	child, inLine, by, replies := ev.Parent != 0, ev.Waits || ev.Line != line.Line{}, !ev.StartBy.IsZero(), ev.ReplyTo != ""
	switch {
	case len(ev.Signals) > 0: // such a run is the run of a group: it has no StartBy, no From and no replies
		inLine = true
		if haveIDs(ev.Signals) {
			e.uint(kindGroupStartedIDs)
		} else {
			e.uint(kindGroupStarted)
		}
	case replies: // such a run is never a child run, so no parent is written
		e.uint(kindStartedReplying)
	case by:
		child, inLine = true, true
		e.uint(kindStartedBy)
	case ev.From.Run != 0: // such a run has no parent and no StartBy, so neither is written
		e.uint(kindRestarted)
		inLine = true
	case child && inLine:
		e.uint(kindChildStartedInLine)
	case child:
		e.uint(kindChildStarted)
	case inLine:
		e.uint(kindStartedInLine)
	default:
		e.uint(kindStarted)
	}
	e.uint(uint64(ev.RunID))
	e.string(ev.Name)
	e.string(ev.Key)
	e.value(ev.Vars)
	e.string(ev.Trigger)
	e.string(ev.StartedBy)
	if replies {
		putReply(e, &model.ReplyTo{Sink: ev.ReplyTo, Correlation: ev.Correlation})
		e.line(ev.Line)
		e.bool(ev.Waits)
		e.time(ev.StartBy)
		return
	}
	if child {
		e.parent(model.Parent{Run: ev.Parent, Name: ev.ParentName, Step: ev.ParentStep})
		e.time(ev.Until)
		e.bool(ev.Void)
	}
	if inLine {
		e.line(ev.Line)
		e.bool(ev.Waits)
	}
	if by {
		e.time(ev.StartBy)
	}
	if len(ev.Signals) > 0 {
		putSignals(e, ev.Signals, haveIDs(ev.Signals))
	}
	if ev.From.Run != 0 {
		putFrom(e, &ev)
	}
}

func (e *encoder) event(event machine.Event) error {
	putKept(e, event)
	switch ev := event.(type) {
	case machine.Started:
		e.started(ev)
	case machine.AttemptOK:
		e.uint(kindAttemptOK)
		e.attemptID(ev.Attempt)
		e.value(ev.Output)
	case machine.AttemptFailed:
		refused := !ev.Data.IsNull()
		if refused { // an AttemptFailed with data has its own kind in the journal
			e.uint(kindAttemptRefused)
		} else {
			e.uint(kindAttemptFailed)
		}
		e.attemptID(ev.Attempt)
		e.string(ev.Code)
		e.string(ev.Message)
		e.bool(ev.Permanent)
		e.duration(ev.RetryAfter)
		if refused {
			e.value(ev.Data)
		}
	case machine.AttemptUnknown:
		e.uint(kindAttemptUnknown)
		e.attemptID(ev.Attempt)
		e.string(ev.Code)
		e.string(ev.Message)
		e.duration(ev.RetryAfter)
	case machine.AttemptNotDone:
		e.uint(kindAttemptNotDone)
		e.attemptID(ev.Attempt)
	case machine.AttemptDeferred:
		e.uint(kindAttemptDeferred)
		e.attemptID(ev.Attempt)
		e.time(ev.Until)
		e.string(ev.Why)
	case machine.AttemptProgress:
		e.uint(kindAttemptProgress)
		e.attemptID(ev.Attempt)
		e.int(int64(ev.Number))
		e.string(ev.Note)
		e.optional(ev.Blob)
	case machine.TimePassed:
		e.uint(kindTimePassed)
	case machine.SlotsFreed:
		if ev.Admitted {
			e.uint(kindAdmitted)
		} else {
			e.uint(kindSlotsFreed)
		}
	case machine.TakenOver:
		e.uint(kindTakenOver)
		e.int(int64(ev.By))
		e.int(int64(ev.From))
	case machine.EngineLost:
		e.uint(kindEngineLost)
		e.int(int64(ev.Deaths))
		e.string(ev.Why)
	default:
		return e.verb(event)
	}
	return nil
}

func (e *encoder) verb(event machine.Event) error {
	switch ev := event.(type) {
	case machine.CancelRequested:
		if ev.Code != "" {
			e.uint(kindCancelWithCode)
			e.string(ev.Code)
		} else {
			e.uint(kindCancelRequested)
		}
		e.bool(ev.NoCompensate)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.PauseRequested:
		e.uint(kindPauseRequested)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.ResumeRequested:
		e.uint(kindResumeRequested)
		e.duration(ev.Extend)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.ParentWaits:
		e.uint(kindParentWaits)
		e.time(ev.Until)
		e.who(ev.By, "", ev.Ask)
	case machine.RetryRequested:
		e.uint(kindRetryRequested)
		e.string(ev.Step)
		e.bool(ev.NewKey)
		e.duration(ev.Extend)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.CompensateRequested:
		if ev.Parent { // Parent = the verb was sent because the parent run is being undone; such a verb has its own kind
			e.uint(kindUndoRequested)
			e.who(ev.By, ev.Reason, ev.Ask)
			return nil
		}
		e.uint(kindCompensateRequested)
		e.string(ev.Step)
		e.bool(ev.Retry)
		e.bool(ev.Skip)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.SettleRequested:
		e.uint(kindSettleRequested)
		e.string(ev.Step)
		e.uint(uint64(ev.As))
		e.value(ev.Output)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.SignalReceived:
		if ev.Forgets {
			e.uint(kindSignalForgets)
		} else {
			e.uint(kindSignalReceived)
		}
		e.string(ev.Name)
		e.string(ev.ID)
		e.value(ev.Payload)
		e.string(ev.Fail)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.Migrated:
		e.uint(kindMigrated)
		e.int(int64(ev.Workflow))
		e.string(ev.Digest)
		e.who(ev.By, ev.Reason, ev.Ask)
	case machine.Refused:
		e.uint(kindRefused)
		e.string(ev.Verb)
		e.who(ev.By, ev.Reason, ev.Ask)
	default:
		return fmt.Errorf("encode record: unknown event %T", event)
	}
	return nil
}

func (d *decoder) event() machine.Event {
	switch kind := d.uint(); kind {
	case kindStarted:
		return machine.Started{RunID: status.RunID(d.uint()), Name: d.string(), Key: d.string(), Vars: d.value(), Trigger: d.string(), StartedBy: d.string()}
	case kindStartedInLine, kindChildStarted, kindChildStartedInLine, kindStartedBy, kindGroupStarted, kindGroupStartedIDs:
		ev := machine.Started{RunID: status.RunID(d.uint()), Name: d.string(), Key: d.string(), Vars: d.value(), Trigger: d.string(), StartedBy: d.string()}
		if kind != kindStartedInLine {
			p := d.parent()
			ev.Parent, ev.ParentName, ev.ParentStep, ev.Until, ev.Void = p.Run, p.Name, p.Step, d.time(), d.bool()
		}
		if kind != kindChildStarted {
			ev.Line, ev.Waits = d.line(), d.bool()
		}
		if kind == kindStartedBy {
			ev.StartBy = d.time()
		}
		if kind == kindGroupStarted || kind == kindGroupStartedIDs {
			ev.Signals = getSignals(d, kind == kindGroupStartedIDs)
		}
		return ev
	case kindRestarted:
		ev := machine.Started{RunID: status.RunID(d.uint()), Name: d.string(), Key: d.string(), Vars: d.value(), Trigger: d.string(), StartedBy: d.string()}
		ev.Line, ev.Waits = d.line(), d.bool()
		getFrom(d, &ev)
		return ev
	case kindStartedReplying:
		ev := machine.Started{RunID: status.RunID(d.uint()), Name: d.string(), Key: d.string(), Vars: d.value(), Trigger: d.string(), StartedBy: d.string()}
		to := getReply(d)
		ev.ReplyTo, ev.Correlation, ev.Line, ev.Waits, ev.StartBy = to.Sink, to.Correlation, d.line(), d.bool(), d.time()
		return ev
	case kindAdmitted:
		return machine.SlotsFreed{Admitted: true}
	case kindAttemptOK:
		return attemptOK(d)
	case kindAttemptFailed, kindAttemptRefused:
		return attemptFailed(d, kind)
	case kindAttemptUnknown:
		ev := machine.AttemptUnknown{Attempt: d.attemptID(), Code: d.string(), Message: d.string()}
		if d.format >= 2 {
			ev.RetryAfter = d.duration()
		}
		return ev
	case kindAttemptNotDone:
		return machine.AttemptNotDone{Attempt: d.attemptID()}
	case kindAttemptDeferred:
		return machine.AttemptDeferred{Attempt: d.attemptID(), Until: d.time(), Why: d.string()}
	case kindAttemptProgress:
		ev := machine.AttemptProgress{Attempt: d.attemptID(), Number: int(d.int()), Note: d.string()}
		if d.format >= 2 {
			ev.Blob = d.optional()
		} else {
			ev.Blob = d.bytes()
		}
		return ev
	case kindChildEnded:
		return childEnded(d)
	case kindTimePassed:
		return machine.TimePassed{}
	case kindSlotsFreed:
		return machine.SlotsFreed{}
	case kindTakenOver:
		return machine.TakenOver{By: int32(d.int()), From: int32(d.int())}
	case kindEngineLost:
		return machine.EngineLost{Deaths: int(d.int()), Why: d.string()}
	default:
		return d.verb(kind)
	}
}

func (d *decoder) verb(kind uint64) machine.Event {
	switch kind {
	case kindCancelRequested, kindCancelWithCode:
		ev := machine.CancelRequested{}
		if kind == kindCancelWithCode {
			ev.Code = d.string()
		}
		ev.NoCompensate = d.bool()
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindPauseRequested:
		ev := machine.PauseRequested{}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindResumeRequested:
		ev := machine.ResumeRequested{Extend: d.duration()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindParentWaits:
		ev := machine.ParentWaits{Until: d.time()}
		ev.By, _, ev.Ask = d.who()
		return ev
	case kindRetryRequested:
		ev := machine.RetryRequested{Step: d.string(), NewKey: d.bool(), Extend: d.duration()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindCompensateRequested:
		ev := machine.CompensateRequested{Step: d.string(), Retry: d.bool(), Skip: d.bool()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindSettleRequested:
		ev := machine.SettleRequested{Step: d.string(), As: machine.Settlement(d.uint()), Output: d.value()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindSignalReceived, kindSignalForgets:
		ev := machine.SignalReceived{Name: d.string(), ID: d.string(), Payload: d.value(), Fail: d.string(), Forgets: kind == kindSignalForgets}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindUndoRequested:
		ev := machine.CompensateRequested{Parent: true}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindMigrated:
		ev := machine.Migrated{Workflow: getInt32(d), Digest: d.string()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	case kindRefused:
		ev := machine.Refused{Verb: d.string()}
		ev.By, ev.Reason, ev.Ask = d.who()
		return ev
	}
	d.fail()
	return machine.TimePassed{}
}

func (e *encoder) attemptID(id machine.AttemptID) {
	e.int(int64(id.Node))
	e.int(int64(id.Call))
}

func (d *decoder) attemptID() machine.AttemptID {
	return machine.AttemptID{Node: int(d.int()), Call: int(d.int())}
}

// optional writes b so that a reader can distinguish nil from an empty slice.
func (e *encoder) optional(b []byte) {
	if b == nil {
		e.uint(0)
		return
	}
	e.uint(uint64(len(b)) + 1)
	e.b = append(e.b, b...)
}

func (d *decoder) optional() []byte {
	n := d.uint()
	if n == 0 {
		return nil
	}
	return d.take(n - 1)
}

func (e *encoder) parent(p model.Parent) {
	e.uint(uint64(p.Run))
	e.string(p.Name)
	e.string(p.Step)
}

func (d *decoder) parent() model.Parent {
	return model.Parent{Run: status.RunID(d.uint()), Name: d.string(), Step: d.string()}
}

func (e *encoder) duration(v time.Duration) { e.int(int64(v)) }

func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

func (e *encoder) who(by, reason string, ask int64) {
	e.string(by)
	e.string(reason)
	e.int(ask)
}

func (d *decoder) who() (by, reason string, ask int64) {
	by, reason = d.string(), d.string()
	if d.format >= 2 {
		ask = d.int()
	}
	return by, reason, ask
}

func (e *encoder) failure(f dsl.Failure) {
	e.string(f.Step)
	e.string(f.Code)
	e.string(f.Message)
}

func (d *decoder) failure() dsl.Failure {
	return dsl.Failure{Step: d.string(), Code: d.string(), Message: d.string()}
}

func (e *encoder) holds(holds []model.Hold) {
	e.uint(uint64(len(holds)))
	for _, h := range holds {
		e.string(h.Agent)
		e.instant(h.Until)
		e.string(h.Why)
	}
}

func (d *decoder) holds() []model.Hold {
	var holds []model.Hold
	for range d.count() {
		holds = append(holds, model.Hold{Agent: d.string(), Until: d.instant(), Why: d.string()})
	}
	return holds
}

func (e *encoder) instants(list []model.Instant) {
	e.uint(uint64(len(list)))
	for _, at := range list {
		e.instant(at)
	}
}

func (d *decoder) instants() []model.Instant {
	var list []model.Instant
	for range d.count() {
		list = append(list, d.instant())
	}
	return list
}

func (e *encoder) outputs(outputs []model.Output) {
	e.uint(uint64(len(outputs)))
	for _, o := range outputs {
		e.string(o.Name)
		e.stored(o.Value)
		e.bool(o.Sensitive)
		e.string(o.Problem)
	}
}

func (d *decoder) outputs() []model.Output {
	var outputs []model.Output
	for range d.count() {
		outputs = append(outputs, model.Output{Name: d.string(), Value: d.stored(), Sensitive: d.bool(), Problem: d.string()})
	}
	return outputs
}

// line writes the priority and the limit of a run.
func (e *encoder) line(l line.Line) {
	e.int(int64(l.Lift))
	e.int(int64(l.Limit))
	e.string(l.Key)
}

// line reads the priority and the limit of a run.
func (d *decoder) line() line.Line {
	lift, limit := d.int(), d.int()
	l := line.Line{Lift: int32(lift), Limit: int32(limit), Key: d.string()}
	if int64(l.Lift) != lift || int64(l.Limit) != limit {
		d.fail()
	}
	return l
}
