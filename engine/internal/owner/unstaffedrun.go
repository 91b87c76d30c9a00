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

// An Unstaffed is a run that this engine could take over if it had the run's agents. The engine can
// still decide events that need no agent: verbs and answers from the inbox, and the event
// TimePassed. Then the engine releases the run, so that an engine with the agents can claim it.
type Unstaffed struct {
	store.Loaded
	Story    Story
	Specs    map[string]invoke.AgentSpec
	Messages []Message
	Why      map[string]string // for each agent that this engine cannot call, the reason
	Err      *journal.RunError // why this engine cannot take the run over: the error of the first agent in Why, by name
}

// An UnstaffedDecision is a decision about an unstaffed run, with the row of the journal
// that stores it.
type UnstaffedDecision struct {
	Unstaffed
	Transition store.Transition
	Records    []machine.Record
	Facts      []story.Fact
	Alerted    bool                // this row, or an earlier row of the run, holds the alert about the missing agents
	Landed     chan commit.Landing // receives the outcome of the commit

	work *decision
}

// OverdueFrom returns the time at which the run should continue or should have continued.
// It returns store.Never if the run waits neither for a time nor for a slot.
func (x *Unstaffed) OverdueFrom() time.Time {
	state := x.Story.State
	if x.Head.Owner == 0 {
		return x.Head.DueSince()
	}
	if Moves(state.Status()) && slices.ContainsFunc(state.Held(), func(h machine.HeldAgent) bool { return h.Until.IsZero() }) {
		return state.Last() // a step waits for a slot that the owner should give it, but the owner is gone
	}
	if due, timed := state.NextDue(); timed {
		return due
	}
	return store.Never
}

// Due returns the time at which this engine should record that a time of the run has passed, for
// example a deadline. It returns store.Never if the run waits for no time. If the run has a dead
// owner, the result is later than the passed time by the duration in the parameter `grace`, so that
// an engine with the agents can take the run over first. If the run has no owner, no takeover is
// possible, so the result is the time for which the run waits.
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

// Wake returns when this engine must look at the run again: at the time of its next decision (Due),
// or at the time of its next alert. A run needs an alert when it has been overdue for the duration
// in the parameter `grace`. If both times are later than the parameter `now`, Wake returns the
// earlier one. If only one of them is later, Wake returns that one. If neither is later, Wake
// returns the time of the alert.
func (x *Unstaffed) Wake(now time.Time, grace time.Duration) time.Time {
	due, overdue := x.Due(grace), x.OverdueFrom().Add(grace)
	if !due.After(now) || overdue.After(now) && overdue.Before(due) {
		return overdue
	}
	return due
}

// DecideUnstaffed decides the waiting messages of an unstaffed run, and writes the decision into
// the fields of the parameter `a`. The parameter `spoken` is true if a person has sent a verb. If
// it is false, DecideUnstaffed also decides the event TimePassed. The result `late` holds the
// answers that came too late. The caller must keep these answers as evidence before it commits the
// row, because the row removes their messages.
func (s *Scheduler) DecideUnstaffed(a *UnstaffedDecision, spoken bool) (late []store.LateReply, err error) {
	r := &ownedRun{
		id: a.Head.Run, phase: phaseReady, wf: a.Story.Flow, state: a.Story.State, specs: a.Specs, owner: a.Head.Owner,
		seq: a.Story.Rows(), bound: a.Head.NextCheck, facts: a.Story.Facts, link: a.Story.Next(), stored: a.Story.Stored,
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

// Row encodes the row for the decision into a.Transition. The row also holds the alerts that
// the caller has added to a.Transition. The row removes the owner of the run, so that an
// engine with the agents can claim the run. Row returns a *RunError if the row is too large.
func (a *UnstaffedDecision) Row() error {
	a.work.f.Transition = a.Transition
	err := a.work.release(func(at time.Time) time.Time {
		state := a.Story.State
		due, timed := state.NextDue()
		switch {
		case Moves(state.Status()):
			return at // the run is due at once, so that an engine with the agents finds it
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

// unstaffedEvents returns the events that must be decided, in this order: first, answers that
// arrived in time; then the takeover, if the run has an owner; then the other messages. If the
// parameter `spoken` is false, the event TimePassed follows at the end.
func unstaffedEvents(r *ownedRun, a *UnstaffedDecision, now time.Time, engine int32, spoken bool) (todo []*delivery) {
	var later []*delivery
	for _, l := range slices.SortedStableFunc(slices.Values(a.Messages), func(a, b Message) int { return a.At.Compare(b.At) }) {
		if l.Err != nil {
			continue // the message stays, because a newer version may be able to decode it
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

// CommitUnstaffed starts to commit the row in a.Transition. The outcome is sent to a.Landed. If
// this engine already works on the run for another reason, the outcome is ErrStale. Other events of
// the run wait until the store has answered. Then they get call.ErrNotOwner, because this engine
// does not own the run. If this membership ends first, a.Landed may get nothing.
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
