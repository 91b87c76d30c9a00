package engine

import (
	"context"
	"errors"
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
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// AlertAgentMissing is the code of an alert of kind overdue that says that no
// engine goes on with a run, because its agents are missing.
const AlertAgentMissing = "agent_missing"

// maxSeen is how many engines an alert names.
const maxSeen = 8

// An unstaffed run is one that this engine could take, had it the agents. What
// needs none of them is decided all the same: what people say to the run, and
// that its time has passed. Then the engine releases the run, so that an engine
// that has the agents can claim it.
type unstaffedRun struct {
	store.Loaded
	story    loadedRun
	specs    map[string]invoke.AgentSpec
	messages []message
	why      map[string]string // by agent, of those that cannot be called here
	err      *journal.RunError
}

// An unstaffedDecision is a row for an unstaffed run, on its way to the store.
type unstaffedDecision struct {
	unstaffedRun
	t       store.Transition
	records []machine.Record
	facts   []machine.Fact
	told    bool // it holds the alert
	landed  chan commit.Landing
}

// A cause is why something is decided of an unstaffed run.
type cause struct {
	spoken bool // a person has said something to it
	due    bool // its time has passed: a deadline that no other engine may notice
	late   bool // people should know that no engine goes on with it
}

// grace is for how long past its time a run of others is left alone.
func (o Options) grace() time.Duration { return max(o.Lease, 2*o.MaxScan) }

// decideUnstaffed decides of an unstaffed run what needs no agent, and sends the row on its
// way; nil = there is nothing to write. It puts the run into the backoff set.
func (t *membership) decideUnstaffed(ctx context.Context, x unstaffedRun, elsewhere func(string) (bool, error)) (*unstaffedDecision, error) {
	n := t.n
	n.noteQuarantined(x.Head.Run, x.err)
	overdue := x.overdueFrom().Add(n.cfg.Options.grace())
	now := n.clock.Now()
	n.backoffs.addUnstaffed(x.Head.Run, now, n.cfg.Options.MaxScan, x.wake(now, n.cfg.Options.grace()), len(x.messages) > 0)
	why := cause{
		spoken: slices.ContainsFunc(x.messages, func(l message) bool { return l.err == nil && l.Kind == store.MessageVerb }),
		due:    x.due(n.cfg.Options.grace()).Compare(now) <= 0,
		late:   !overdue.After(now) && n.backoffs.reportedAt(x.Head.Run) != len(x.Rows),
	}
	if why == (cause{}) {
		return nil, nil
	}
	a := &unstaffedDecision{unstaffedRun: x, landed: make(chan commit.Landing, 1)}
	if err := t.recordUnstaffed(ctx, a, now, why, elsewhere); err != nil {
		return nil, err
	}
	if a.t.Data == nil {
		if a.told {
			n.backoffs.reported(x.Head.Run, len(x.Rows))
		}
		return nil, nil
	}
	sh := t.scheduler.shard(x.Head.Run)
	sh.post(func(ctx context.Context) { sh.commitUnstaffed(ctx, a) })
	return a, nil
}

// unable has what is said to a run without an owner decided, although its agents are
// missing here.
func (sh *shard) unable(ctx context.Context, run machine.RunID) {
	t := sh.s.n.now()
	if t == nil || t.scheduler != sh.s {
		return
	}
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		_, err := t.take(ctx, []machine.RunID{run}, takeoverScope{from: func(h store.Head) bool { return h.Owner == 0 }})
		if err != nil && ctx.Err() == nil && !overFor(err) {
			sh.s.n.outage.Failed(outage.Bystand, err, "run", store.RunName(run))
		} else if err == nil {
			sh.s.n.outage.Worked(outage.Bystand, time.Time{})
		}
	}()
}

// commitUnstaffed commits the row, unless this engine is at work on the run for
// another reason. Until it has landed, everything else that concerns the run waits.
func (sh *shard) commitUnstaffed(ctx context.Context, a *unstaffedDecision) {
	id := a.Head.Run
	if sh.runs[id] != nil {
		a.landed <- commit.Landing{Err: store.ErrStale}
		return
	}
	r := &ownedRun{id: id, phase: phaseLoading}
	sh.runs[id] = r
	for _, rec := range a.records {
		failpoint.HitEvent("record.before", rec.Event())
	}
	ok := sh.commitRow(ctx, a.t, func(l commit.Landing) {
		sh.drop(r, ErrNotOwner, nil)
		a.landed <- l
	})
	if !ok { // this incarnation ends
		sh.drop(r, ErrNotOwner, nil)
		a.landed <- commit.Landing{Err: ErrNotOwner}
	}
}

// overdueFrom returns since when the run should have moved; Never if nothing of
// it is waited for.
func (x *unstaffedRun) overdueFrom() time.Time {
	state := x.story.State
	if x.Head.Owner == 0 {
		return x.Head.NextCheck
	}
	if moves(state.Status()) && slices.ContainsFunc(state.Held(), func(h machine.HeldAgent) bool { return h.Until.IsZero() }) {
		return state.Last() // for a slot at an engine that is gone
	}
	if due, timed := state.NextDue(); timed {
		return due
	}
	return store.Never
}

// due returns when time moves the run and no other engine can be expected to say
// so; Never if nothing of it is timed. A run without an owner may have none but engines
// without its agents, so it is at once. A dead owner's is left for a while to
// those that have its agents.
func (x *unstaffedRun) due(grace time.Duration) time.Time {
	due, timed := x.story.State.NextDue()
	switch {
	case !timed:
		return store.Never
	case x.Head.Owner != 0:
		return due.Add(grace)
	}
	return due
}

// wake returns the next time, after now, at which something of the run has to be
// told or decided.
func (x *unstaffedRun) wake(now time.Time, grace time.Duration) time.Time {
	due, overdue := x.due(grace), x.overdueFrom().Add(grace)
	if !due.After(now) || overdue.After(now) && overdue.Before(due) {
		return overdue
	}
	return due
}

// moves reports whether an engine could go on with a run in this state, had it
// the agents.
func moves(s machine.RunState) bool {
	return !s.Final() && !s.NeedsHuman() && s != machine.RunPaused
}

// recordUnstaffed makes the row. Nothing is started by it: what could start is held,
// and says for want of what.
func (t *membership) recordUnstaffed(ctx context.Context, a *unstaffedDecision, now time.Time, why cause, elsewhere func(string) (bool, error)) error {
	state := a.story.State
	alarm := why.late && !why.spoken && moves(state.Status())
	if alarm {
		var err error
		if alarm, err = t.mayAlert(ctx, a, elsewhere); err != nil || !alarm && !why.due {
			return err
		}
	}
	a.t = store.Transition{Run: a.Head.Run, Seq: int32(len(a.Rows))}
	var late []store.LateReply
	err := guard.Do(func() error {
		late = t.decideEvents(a, t.unstaffedEvents(a, now, why), now)
		return nil
	})
	if err != nil {
		return &journal.RunError{Run: int64(a.Head.Run), Name: a.Head.Name, Err: err, Hint: "another version of the engine may be able to go on"}
	}
	if alarm && moves(state.Status()) {
		live, err := t.n.cfg.Store.Live(ctx)
		if err != nil {
			return fmt.Errorf("list engines: %w", err)
		}
		a.told = true
		a.t.Alerts = append(a.t.Alerts, store.Alert{Kind: "overdue", Code: AlertAgentMissing, Message: store.CleanText(a.missingAgentsMessage(t.engine, live))})
	}
	if len(a.records) == 0 && len(a.t.Alerts) == 0 && len(a.t.Consumed) == 0 {
		return nil
	}
	for _, l := range late { // first kept, then gone from the inbox
		if !t.n.keepSurely(ctx, l) {
			return context.Cause(ctx)
		}
		t.n.cfg.Observer.LateReply(l.Run, machine.AttemptID{Node: int(l.Node), Call: int(l.Call)})
	}
	return a.row(t.n, now)
}

// unstaffedEvents lists what is to be decided of a run, in order: answers that came in
// time, the takeover from an owner that is gone, what was said to the run, and, if a
// person has said nothing, that time has passed.
func (t *membership) unstaffedEvents(a *unstaffedDecision, now time.Time, why cause) (todo []*delivery) {
	run := &ownedRun{id: a.Head.Run, wf: a.story.Flow, state: a.story.State}
	var later []*delivery
	for _, l := range slices.SortedStableFunc(slices.Values(a.messages), func(a, b message) int { return a.At.Compare(b.At) }) {
		if l.err != nil {
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
		todo = append(todo, &delivery{Answer: call.Answer{Event: machine.TakenOver{By: int32(t.engine), From: int32(a.Head.Owner)}, Arrived: now}})
	}
	todo = append(todo, later...)
	if !why.spoken {
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
func (t *membership) decideEvents(a *unstaffedDecision, todo []*delivery, now time.Time) (late []store.LateReply) {
	n, wf, state, slots := t.n, a.story.Flow, a.story.State, a.slots()
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
		rec := machine.Decide(wf, state, machine.Input{At: at, Event: d.Event, Engine: int32(t.engine), Slots: slots,
			Ceilings: n.cfg.Options.Ceilings, Journal: a.story.Stored, Allowance: dsl.NewAllowance(machine.MaxDecisionCost)})
		if d.message != 0 {
			a.t.Consumed = append(a.t.Consumed, d.message)
		}
		if _, taken := d.Event.(machine.TakenOver); rec.Empty() && !taken {
			if rec.Late() && evident(state, d) {
				late = append(late, lateReply(a.Head.Run, wf, state, d))
			}
			continue
		}
		if !n.told.Empty() {
			a.facts, _ = rec.AppendFacts(a.facts, n.told, wf, state)
		}
		addRecord(&a.t, rec, state)
		state.Apply(rec)
		a.records = append(a.records, rec)
	}
	return late
}

// row makes the row of what was decided. It gives the run back, so that an engine that
// has the agents can claim it.
func (a *unstaffedDecision) row(n *Node, now time.Time) error {
	state, nobody := a.story.State, store.EngineID(0)
	a.t.Owner, a.t.At = &nobody, now
	if last := state.Last(); now.Before(last) {
		a.t.At = last
	}
	a.t.NextCheck = a.t.At // an engine that has the agents finds it at once
	if due, timed := state.NextDue(); !moves(state.Status()) {
		a.t.NextCheck = store.Never
		if timed && !state.Status().Final() {
			a.t.NextCheck = due
		}
	}
	a.t.NextCheck = a.t.NextCheck.Truncate(time.Microsecond)
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &machine.Scratch{}, a.story.Next(), a.Head.Run, a.t.Seq, a.t.At, a.records)
	if err == nil && len(data) > n.cfg.Options.MaxRow {
		err = &journal.RunError{Run: int64(a.Head.Run), Name: a.Head.Name, Err: fmt.Errorf("journal row %d has %d bytes, more than the %d allowed", a.t.Seq, len(data), n.cfg.Options.MaxRow)}
	}
	a.t.Data = data
	return err
}

// slots says of every agent why it is not called.
func (x *unstaffedRun) slots() map[string]machine.Slot {
	missing := slices.Sorted(maps.Keys(x.why))
	slots := map[string]machine.Slot{}
	for agent := range x.specs {
		why, lacks := x.why[agent]
		if !lacks {
			why = "no engine has taken it that has agent " + strings.Join(missing, ", ") + " too"
		}
		slots[agent] = machine.Slot{Why: store.CleanText(why)}
	}
	return slots
}

// settleUnstaffed waits for what became of the row, and tells of it.
func (t *membership) settleUnstaffed(ctx context.Context, a *unstaffedDecision) error {
	var l commit.Landing
	select {
	case l = <-a.landed:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
	n, run := t.n, a.Head.Run
	switch {
	case errors.Is(l.Err, store.ErrStale), overFor(l.Err): // another engine was faster, or this incarnation is over
		return nil
	case l.Err != nil:
		n.backOff(run, &journal.RunError{Run: int64(run), Name: a.Head.Name, Err: fmt.Errorf("the store refuses row %d: %w", a.t.Seq, l.Err)})
		return nil
	}
	for _, rec := range a.records {
		failpoint.HitEvent("record.after", rec.Event())
	}
	if len(a.facts) > 0 {
		n.cfg.Observer.Facts(run, a.story.Facts+1, a.facts)
	}
	for _, al := range a.t.Alerts {
		n.cfg.Logger.Warn("alert", "run", a.Head.Name, "kind", al.Kind, "step", al.Step, "code", al.Code, "message", al.Message)
	}
	n.followers.tell(run)
	if a.t.State.Final() {
		n.quarantined.gone(run)
		n.backoffs.take(run)
		return nil
	}
	now := n.clock.Now()
	a.Head.Owner, a.Head.NextCheck = 0, a.t.NextCheck
	n.backoffs.addUnstaffed(run, now, n.cfg.Options.MaxScan, a.wake(now, n.cfg.Options.grace()), false)
	if a.told {
		n.backoffs.reported(run, len(a.Rows)+1)
	}
	return nil
}
