package owner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// An Unstaffed run is one that this engine could take, had it the agents. What
// needs none of them is decided all the same: what people say to the run, and
// that its time has passed. Then the engine releases the run, so that an engine
// that has the agents can claim it.
type Unstaffed struct {
	store.Loaded
	Story    Story
	Specs    map[string]invoke.AgentSpec
	Messages []Message
	Why      map[string]string // by agent, of those that cannot be called here
	Err      *journal.RunError
}

// An UnstaffedDecision is a row for an unstaffed run, on its way to the store.
type UnstaffedDecision struct {
	Unstaffed
	Transition store.Transition
	Records    []machine.Record
	Facts      []story.Fact
	Told       bool // it holds the alert
	Landed     chan commit.Landing
}

// commitUnstaffed commits the row, unless this engine is at work on the run for
// another reason. Until it has landed, everything else that concerns the run waits.
func (sh *shard) commitUnstaffed(ctx context.Context, a *UnstaffedDecision) {
	id := a.Head.Run
	if sh.runs[id] != nil {
		a.Landed <- commit.Landing{Err: store.ErrStale}
		return
	}
	r := &ownedRun{id: id, phase: phaseLoading}
	sh.runs[id] = r
	for _, rec := range a.Records {
		failpoint.HitEvent("record.before", rec.Event())
	}
	ok := sh.commitRow(ctx, a.Transition, func(l commit.Landing) {
		sh.drop(r, call.ErrNotOwner, nil)
		a.Landed <- l
	})
	if !ok { // this membership ends
		sh.drop(r, call.ErrNotOwner, nil)
		a.Landed <- commit.Landing{Err: call.ErrNotOwner}
	}
}

// OverdueFrom returns since when the run should have moved; Never if nothing of
// it is waited for.
func (x *Unstaffed) OverdueFrom() time.Time {
	state := x.Story.State
	if x.Head.Owner == 0 {
		return x.Head.NextCheck
	}
	if Moves(state.Status()) && slices.ContainsFunc(state.Held(), func(h machine.HeldAgent) bool { return h.Until.IsZero() }) {
		return state.Last() // for a slot at an engine that is gone
	}
	if due, timed := state.NextDue(); timed {
		return due
	}
	return store.Never
}

// Due returns when time moves the run and no other engine can be expected to say
// so; Never if nothing of it is timed. A run without an owner may have none but engines
// without its agents, so it is at once. A dead owner's is left for a while to
// those that have its agents.
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

// Wake returns the next time, after now, at which something of the run has to be
// told or decided.
func (x *Unstaffed) Wake(now time.Time, grace time.Duration) time.Time {
	due, overdue := x.Due(grace), x.OverdueFrom().Add(grace)
	if !due.After(now) || overdue.After(now) && overdue.Before(due) {
		return overdue
	}
	return due
}

// Moves reports whether an engine could go on with a run in this state, had it
// the agents.
func Moves(s machine.RunState) bool {
	return !s.Final() && !s.NeedsHuman() && s != machine.RunPaused
}

// unstaffedEvents lists what is to be decided of a run, in order: answers that came in
// time, the takeover from an owner that is gone, what was said to the run, and, if a
// person has said nothing, that time has passed.
func (s *Scheduler) unstaffedEvents(a *UnstaffedDecision, now time.Time, spoken bool) (todo []*delivery) {
	run := &ownedRun{id: a.Head.Run, wf: a.Story.Flow, state: a.Story.State}
	var later []*delivery
	for _, l := range slices.SortedStableFunc(slices.Values(a.Messages), func(a, b Message) int { return a.At.Compare(b.At) }) {
		if l.Err != nil {
			continue // a newer version may read it
		}
		d := l.delivery()
		if run.time(d); d.cameInTime(now) {
			todo = append(todo, d) // it counts before anything is said to be over
			continue
		}
		later = append(later, d)
	}
	if a.Head.Owner != 0 {
		todo = append(todo, &delivery{Answer: call.Answer{Event: machine.TakenOver{By: int32(s.engine), From: int32(a.Head.Owner)}, Arrived: now}})
	}
	todo = append(todo, later...)
	if !spoken {
		todo = append(todo, &delivery{Answer: call.Answer{Event: machine.TimePassed{}, Arrived: now}})
	}
	return todo
}

// cameInTime reports whether a message brings an answer that arrived before its
// complete-by, which has passed by now.
func (d *delivery) cameInTime(now time.Time) bool {
	return d.answers() && d.Arrived.Before(d.CompleteBy) && !now.Before(d.CompleteBy)
}

// decideEvents decides events of an unstaffed run, until the run has ended. It returns
// the answers that came too late.
func (s *Scheduler) decideEvents(a *UnstaffedDecision, todo []*delivery, now time.Time) (late []store.LateReply) {
	n, wf, state, slots := s.n, a.Story.Flow, a.Story.State, a.slots()
	for _, d := range todo {
		if state.Status().Final() {
			break // what else was said finds a run that has ended
		}
		at := now
		if d.cameInTime(now) {
			at = d.Arrived
		}
		if last := state.Last(); at.Before(last) {
			at = last
		}
		rec := machine.Decide(wf, state, machine.Input{At: at, Event: d.Event, Engine: int32(s.engine), Slots: slots,
			Ceilings: n.cfg.Options.Ceilings, Journal: a.Story.Stored, Allowance: dsl.NewAllowance(machine.MaxDecisionCost)})
		if d.message != 0 {
			a.Transition.Consumed = append(a.Transition.Consumed, d.message)
		}
		if _, taken := d.Event.(machine.TakenOver); rec.Empty() && !taken {
			if rec.Late() && evident(state, d) {
				late = append(late, lateReply(a.Head.Run, wf, state, d))
			}
			continue
		}
		if !n.Told.Empty() {
			a.Facts, _ = story.AppendFacts(a.Facts, n.Told, wf, state, rec)
		}
		AddRecord(&a.Transition, rec, state)
		state.Apply(rec)
		a.Records = append(a.Records, rec)
	}
	return late
}

// Row makes the row of what was decided. It gives the run back, so that an engine that
// has the agents can claim it.
func (a *UnstaffedDecision) Row(n *Shared, now time.Time) error {
	state, nobody := a.Story.State, store.EngineID(0)
	a.Transition.Owner, a.Transition.At = &nobody, now
	if last := state.Last(); now.Before(last) {
		a.Transition.At = last
	}
	a.Transition.NextCheck = a.Transition.At // an engine that has the agents finds it at once
	if due, timed := state.NextDue(); !Moves(state.Status()) {
		a.Transition.NextCheck = store.Never
		if timed && !state.Status().Final() {
			a.Transition.NextCheck = due
		}
	}
	a.Transition.NextCheck = a.Transition.NextCheck.Truncate(time.Microsecond)
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &journal.Scratch{}, a.Story.Next(), a.Head.Run, a.Transition.Seq, a.Transition.At, a.Records)
	if err == nil && len(data) > n.cfg.Options.MaxRow {
		err = &journal.RunError{Run: int64(a.Head.Run), Name: a.Head.Name, Err: fmt.Errorf("journal row %d has %d bytes, more than the %d allowed", a.Transition.Seq, len(data), n.cfg.Options.MaxRow)}
	}
	a.Transition.Data = data
	return err
}

// slots says of every agent why it is not called.
func (x *Unstaffed) slots() map[string]machine.Slot {
	missing := slices.Sorted(maps.Keys(x.Why))
	slots := map[string]machine.Slot{}
	for agent := range x.Specs {
		why, lacks := x.Why[agent]
		if !lacks {
			why = "no engine has taken it that has agent " + strings.Join(missing, ", ") + " too"
		}
		slots[agent] = machine.Slot{Why: naming.CleanText(why)}
	}
	return slots
}

// DecideUnstaffed decides what is due of an unstaffed run, or was said to it. spoken: a
// person has said something. It returns the answers that came too late.
func (s *Scheduler) DecideUnstaffed(a *UnstaffedDecision, now time.Time, spoken bool) (late []store.LateReply, err error) {
	a.Transition = store.Transition{Run: a.Head.Run, Seq: int32(len(a.Rows))}
	err = guard.Do(func() error {
		late = s.decideEvents(a, s.unstaffedEvents(a, now, spoken), now)
		return nil
	})
	return late, err
}

// CommitUnstaffed sends the row on its way. What became of it comes through a.landed.
func (s *Scheduler) CommitUnstaffed(a *UnstaffedDecision) {
	sh := s.shard(a.Head.Run)
	sh.post(func(ctx context.Context) { sh.commitUnstaffed(ctx, a) })
}
