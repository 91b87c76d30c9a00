package owner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// An Unstaffed is a run that this engine could take if it had the run's agents. It can
// still decide what needs no agent: the verbs of people, and that time has passed. Then the
// engine releases the run, so that an engine that has the agents can claim it.
type Unstaffed struct {
	store.Loaded
	Story    Story
	Specs    map[string]invoke.AgentSpec
	Messages []Message
	Why      map[string]string // for each agent that cannot be called here, the reason
	Err      *journal.RunError
}

// An UnstaffedDecision is a row for an unstaffed run that is being committed.
type UnstaffedDecision struct {
	Unstaffed
	Transition store.Transition
	Records    []machine.Record
	Facts      []story.Fact
	Told       bool // this row, or an earlier row of the run, holds the alert about the missing agents
	Landed     chan commit.Landing

	work *decision
}

// OverdueFrom returns the time since which the run should have continued. It returns
// store.Never if the run waits neither for a time nor for a slot.
func (x *Unstaffed) OverdueFrom() time.Time {
	state := x.Story.State
	if x.Head.Owner == 0 {
		return x.Head.NextCheck
	}
	if Moves(state.Status()) && slices.ContainsFunc(state.Held(), func(h machine.HeldAgent) bool { return h.Until.IsZero() }) {
		return state.Last() // a step waits for a slot of the former owner, which is gone
	}
	if due, timed := state.NextDue(); timed {
		return due
	}
	return store.Never
}

// Due returns the time at which this engine should decide that the run's time has passed;
// store.Never if the run waits for no time. For a run without an owner this is the due time of
// the run, because perhaps no engine has its agents. For a run of a dead owner it is later
// by grace, so that an engine with the agents can take the run over first.
func (x *Unstaffed) Due(grace time.Duration) time.Time {
	due, timed := x.Story.State.NextDue()
	switch {
	case !timed:
		return store.Never
	case x.Head.Owner != 0:
		return due.Add(grace)
	}
	return due
}

// Wake returns the next time after now at which an alert or a decision about the run is
// due.
func (x *Unstaffed) Wake(now time.Time, grace time.Duration) time.Time {
	due, overdue := x.Due(grace), x.OverdueFrom().Add(grace)
	if !due.After(now) || overdue.After(now) && overdue.Before(due) {
		return overdue
	}
	return due
}

// DecideUnstaffed decides the waiting messages of an unstaffed run and the times that have
// passed. spoken is true if a person has sent a verb. late holds the answers that came too
// late: the caller must keep them before it commits the row, because the row removes their
// messages.
func (s *Scheduler) DecideUnstaffed(a *UnstaffedDecision, spoken bool) (late []store.LateReply, err error) {
	r := &ownedRun{
		id: a.Head.Run, phase: phaseReady, wf: a.Story.Flow, state: a.Story.State, specs: a.Specs, owner: a.Head.Owner,
		seq: int32(len(a.Rows)), bound: a.Head.NextCheck, facts: a.Story.Facts, link: a.Story.Next(), stored: a.Story.Stored,
	}
	now := s.n.Clock.Now()
	a.work = newUnstaffedDecider(s.n, s.engine, a.Specs, a.Why).begin(r, unstaffedEvents(r, a, now, int32(s.engine), spoken))
	if err := guard.Do(a.work.all); err != nil {
		return nil, err
	}
	f := a.work.f
	for _, d := range f.late {
		late = append(late, lateReply(r.id, r.wf, r.state, d))
		a.work.consume(d)
	}
	a.Transition, a.Records, a.Facts = f.Transition, a.work.records, f.facts
	return late, nil
}

// Row completes the row. The row holds the decisions, and the alerts that the caller has
// added since. It releases the run, so that an engine that has the agents can claim it. Row
// returns a *RunError if the row is too large.
func (a *UnstaffedDecision) Row() error {
	a.work.f.Transition = a.Transition
	err := a.work.release(func(at time.Time) time.Time {
		state := a.Story.State
		due, timed := state.NextDue()
		switch {
		case Moves(state.Status()):
			return at // an engine that has the agents finds the run at once
		case timed && !state.Status().Final():
			return due
		}
		return store.Never
	})
	a.Transition = a.work.f.Transition
	var size *rowSizeError
	if errors.As(err, &size) {
		return &journal.RunError{Run: int64(a.Head.Run), Name: a.Head.Name, Err: err}
	}
	return err
}

// unstaffedEvents returns the events to decide, in this order: answers that arrived in
// time; the takeover from an owner that is gone; verbs of people; and, if there is no verb,
// that time has passed.
func unstaffedEvents(r *ownedRun, a *UnstaffedDecision, now time.Time, engine int32, spoken bool) (todo []*delivery) {
	var later []*delivery
	for _, l := range slices.SortedStableFunc(slices.Values(a.Messages), func(a, b Message) int { return a.At.Compare(b.At) }) {
		if l.Err != nil {
			continue // a newer version may be able to read it
		}
		d := l.delivery()
		if r.time(d); d.cameInTime(now) {
			todo = append(todo, d) // the answer counts, so it is decided before TimePassed
			continue
		}
		later = append(later, d)
	}
	if r.owner != 0 {
		todo = append(todo, &delivery{Answer: call.Answer{Event: machine.TakenOver{By: engine, From: int32(r.owner)}, Arrived: now}})
	}
	todo = append(todo, later...)
	if !spoken {
		todo = append(todo, &delivery{Answer: call.Answer{Event: machine.TimePassed{}, Arrived: now}})
	}
	return todo
}

// CommitUnstaffed starts to commit the row. The outcome is sent to a.Landed. If this engine
// works on the run for another reason, the outcome is ErrStale. Until the row is committed,
// everything else that concerns the run waits.
func (s *Scheduler) CommitUnstaffed(a *UnstaffedDecision) {
	sh := s.shard(a.Head.Run)
	sh.post(func(ctx context.Context) {
		r := &ownedRun{id: a.Head.Run, phase: phaseLoading}
		if sh.runs[r.id] != nil {
			a.Landed <- commit.Landing{Err: store.ErrStale}
			return
		}
		sh.runs[r.id] = r
		for _, rec := range a.Records {
			failpoint.HitEvent("record.before", rec.Event())
		}
		ok := sh.out.commitRow(ctx, a.Transition, func(l commit.Landing) {
			sh.drop(r, call.ErrNotOwner, nil)
			a.Landed <- l
		})
		if !ok { // this membership is over
			sh.drop(r, call.ErrNotOwner, nil)
			a.Landed <- commit.Landing{Err: call.ErrNotOwner}
		}
	})
}
