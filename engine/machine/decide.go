package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// Decide returns the record of an event: which steps end and start, and which calls and alerts
// follow. First it expires all deadlines and attempts that are due by in.At. Then it handles
// the event. Only the events AttemptDeferred and EngineLost are handled before anything expires.
// For the same input, Decide returns the same record. Decide does not change the run: the caller
// commits the record and then applies it.
//
// Decide may be called with any event. An event that does not fit the state changes nothing: for
// example, the first event of a run must be Started. The caller need not commit a record that is
// Empty.
//
// If an answer had to wait in an engine before the decision, in.At may be the time at which the
// answer arrived. But in.At must never be earlier than State.Last.
func Decide(wf *dsl.Workflow, s *State, in Input) Record {
	d := in.Scratch.decider()
	d.open(wf, s, in)
	ev, isStart := in.Event.(Started)
	switch {
	case s.run.ID == 0 && isStart && ev.RunID > 0 && ev.From.Run != 0 && !(heir{d}).can(ev.From):
		return d.nothing()
	case s.run.ID == 0 && isStart && ev.RunID > 0:
		d.forward().accept(ev)
	case s.run.ID == 0 || isStart || in.Event == nil:
		return d.nothing()
	case s.run.State.Final() && !reopens(&s.run, in.Event):
		return d.afterEnd()
	default:
		if ev, lost := in.Event.(EngineLost); lost {
			// Handle EngineLost before any deadline expires: if a deadline has passed, the work
			// that follows may be the reason why the engines died.
			return d.verbs().engineLost(ev)
		}
		d.live()
	}
	d.advance()
	d.caller().leadChildren()
	return d.record()
}

// live handles the event of the decision if the run has not ended.
func (d *decider) live() {
	if ev, ok := d.in.Event.(AttemptDeferred); ok {
		// Handle AttemptDeferred before any complete-by is checked. Otherwise the outcome
		// of a call that was not sent could become unknown.
		d.answers().deferral(ev)
	}
	d.clocks().pass()
	switch ev := d.in.Event.(type) {
	case AttemptOK:
		d.answers().answered(ev.Attempt, func(a *model.Attempt) { d.answers().gotResult(ev, a) })
	case AttemptFailed:
		d.answers().answered(ev.Attempt, func(a *model.Attempt) { d.answers().gotFailure(ev, a) })
	case AttemptUnknown:
		d.answers().answered(ev.Attempt, func(a *model.Attempt) { d.answers().gotUnknown(ev, a) })
	case AttemptNotDone:
		d.answers().answered(ev.Attempt, func(a *model.Attempt) { d.answers().gotNotDone(ev, a) })
	case AttemptDeferred, TimePassed, Started:
	case SlotsFreed:
		if ev.Admitted {
			d.forward().admitted()
		}
	case AttemptProgress:
		d.answers().progress(ev)
	case TakenOver:
		d.verbs().takenOver(ev)
	case CancelRequested:
		d.verbs().cancelRequested(ev)
	case PauseRequested:
		d.verbs().pauseRequested(ev)
	case ResumeRequested:
		d.verbs().resumeRequested(ev)
	case RetryRequested:
		d.verbs().retryRequested(ev)
	case ParentWaits:
		bounds{d}.parentWaits(ev)
	case CompensateRequested:
		d.verbs().compensateRequested(ev)
	case SettleRequested:
		d.verbs().settleRequested(ev)
	case SignalReceived:
		d.waits().signalReceived(ev)
	case Migrated:
		mover{d}.migrated(ev)
	case Refused:
	}
}

// afterEnd handles an event of a run that has ended. It returns a record that changes nothing.
// If the event is a verb, the record refuses the verb.
func (d *decider) afterEnd() Record {
	r := d.nothing()
	switch ev := d.in.Event.(type) {
	case AttemptOK, AttemptFailed, AttemptUnknown, AttemptNotDone, AttemptDeferred:
		r.late = true
	case CancelRequested:
		r.event = d.verbs().refusal("cancel", "the run has ended: "+d.run.State.String(), ev.By)
	case PauseRequested:
		r.event = d.verbs().refusal("pause", "the run has ended: "+d.run.State.String(), ev.By)
	case ResumeRequested:
		r.event = d.verbs().refusal("resume", "the run has ended: "+d.run.State.String(), ev.By)
	case ParentWaits:
		r.event = d.verbs().refusal(verbExtend, "the run has ended: "+d.run.State.String(), ev.By)
	case RetryRequested:
		r.event = d.verbs().refusal("retry", "the run has ended: "+d.run.State.String(), ev.By)
	case CompensateRequested:
		r.event = d.verbs().refusal("compensate", ended(&d.run, ev), ev.By)
	case SettleRequested:
		r.event = d.verbs().refusal("settle", "the run has ended: "+d.run.State.String(), ev.By)
	case SignalReceived:
		r.event = d.verbs().refusal("signal", "the run has ended: "+d.run.State.String(), ev.By)
	case Migrated:
		r.event = d.verbs().refusal("migrate", "the run has ended: "+d.run.State.String(), ev.By)
	}
	r.final = true
	return r
}

// advance starts and ends nodes until no node can start or end now.
func (d *decider) advance() {
	d.slots().drain()
	d.forward().wakeUp()
	for {
		switch {
		case d.ready.len() > 0:
			d.forward().begin(d.ready.next())
		case d.launch.len() > 0 && !d.slots().fanFirst():
			d.caller().call(d.launch.next())
		case d.fan.len() > 0:
			d.forward().fanOut(d.fan.next())
		case d.passed.len() > 0:
			d.undoing().passOn(d.passed.next())
		case d.undo.len() > 0:
			d.undoing().considerUndo(d.undo.next())
		default:
			d.ending().conclude()
			return
		}
	}
}

// record returns the record with all changes that are in the draft.
func (d *decider) record() Record {
	d.run.Live, d.run.Waits = d.liveNodes(), d.waits().count()
	d.run.State = d.runState()
	d.commands = d.lastAlerts()
	r := Record{
		at: d.at, event: d.event, late: d.late, secret: d.secret, names: d.names, cache: d.s.cache,
		base: d.s, records: d.s.run.Records,
	}
	mask := model.DiffRun(&d.s.run, &d.run)
	if mask == 0 && len(d.draft.list) == 0 && len(d.commands) == 0 {
		return r
	}
	paper := new(sheet)
	r.nodes = d.draft.patches(paper)
	r.commands = append(paper.commands[:0], d.commands...)
	if mask != 0 {
		paper.run = model.RunPatch{Mask: mask, To: d.run}
		r.run = &paper.run
		r.run.To.Head, r.run.To.Rare = d.s.run.Head, d.s.run.Rare
		if mask&model.HeadBits != 0 {
			own := d.head
			r.run.To.Head = &own
		}
		if mask&model.RareBits != 0 {
			own := d.rare
			r.run.To.Rare = &own
		}
	}
	if stray := d.late || d.stray; stray && (r.run != nil || len(r.nodes) > 0) {
		r.event = TimePassed{} // the event itself had no effect; only time has passed
	}
	if r.Empty() {
		r.commands = nil
	}
	return r
}

// lastAlerts returns the commands of the decision without needless alerts. If there are several
// alerts of one kind, lastAlerts keeps only the last of them. It removes the alert `parked` if the
// run is not parked at the end of the decision, or was already parked before the decision. In the
// same way, it removes the alert `compensation_failed`. If the event is a verb, the person who sent
// it learns from the answer that the run still needs a person (I9).
func (d *decider) lastAlerts() []Command {
	if !slices.ContainsFunc(d.commands, func(c Command) bool { _, ok := c.(Alert); return ok }) {
		return d.commands
	}
	last := map[string]int{}
	for k, c := range d.commands {
		if a, ok := c.(Alert); ok {
			last[a.Kind] = k
		}
	}
	var kept []Command
	for k, c := range d.commands {
		a, ok := c.(Alert)
		switch {
		case ok && last[a.Kind] != k:
		case ok && a.Kind == "parked" && (!d.run.Parked || d.s.run.Parked || d.s.run.Lost()):
		case ok && a.Kind == "compensation_failed" && (!d.run.Stuck || d.s.run.Stuck):
		default:
			kept = append(kept, c)
		}
	}
	return kept
}

// normal returns the event with its times rounded to microseconds, as the journal stores them.
// For nil it returns TimePassed.
func normal(e Event) Event {
	switch ev := e.(type) {
	case Started:
		ev.Until, ev.StartBy = model.ToInstant(ev.Until).Time(), model.ToInstant(ev.StartBy).Time()
		return ev
	case AttemptDeferred:
		ev.Until = model.ToInstant(ev.Until).Time()
		return ev
	case ParentWaits:
		ev.Until = model.ToInstant(ev.Until).Time()
		return ev
	case AttemptFailed:
		ev.RetryAfter = max(0, ev.RetryAfter.Truncate(time.Microsecond))
		return ev
	case AttemptUnknown:
		ev.RetryAfter = max(0, ev.RetryAfter.Truncate(time.Microsecond))
		return ev
	case nil:
		return TimePassed{}
	}
	return e
}
