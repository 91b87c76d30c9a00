package owner

import (
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// maxEvents is the largest number of waiting events whose decisions go into one row.
const maxEvents = 256

// step decides the events that wait for the run, and passes the transition to the outbox.
// It does nothing while the run is being read, while a commit of the run is in flight, or
// while the decision pool makes a costly decision about the run.
func (sh *shard) step(ctx context.Context, r *ownedRun) {
	if r.phase != phaseReady || r.commit != nil || r.away != nil || len(r.pending) == 0 || ctx.Err() != nil {
		return
	}
	becoming := r.becoming()
	if !r.owned && !becoming || sh.inboxFirst(ctx, r) {
		return
	}
	if r.suspect && !r.inHand && !becoming { // during a takeover the run is in hand already
		sh.grasp(r)
		return
	}
	n := min(len(r.pending), maxEvents)
	todo := slices.Clone(r.pending[:n])
	r.pending = slices.Delete(r.pending, 0, n)
	var f *pendingCommit
	var costly *costlyDecision
	err := guard.Do(func() (err error) { f, costly, err = sh.decide.decide(r, todo); return err })
	switch {
	case err != nil:
		sh.quarantine(ctx, r, todo, err)
	case costly != nil:
		sh.offload(r, costly)
	case f == nil || f.Transition.Data == nil:
		if f != nil {
			sh.keepMessages(ctx, r, f)
		}
		sh.afterDecision(ctx, r)
		if due, ok := r.state.NextDue(); ok && sh.runs[r.id] == r && len(r.pending) == 0 && sh.s.n.Clock.Until(due) <= 0 {
			// This decision changed nothing, but the run is still due. So decide again after a
			// pause.
			sh.s.Timers.set(r.id, sh.s.n.Clock.Now().Add(sh.s.n.cfg.Options.MinScan), true)
		}
		sh.step(ctx, r)
	default:
		sh.keepMessages(ctx, r, f)
		sh.send(ctx, r, f)
	}
}

// send adds the transition f to the outbox. The outbox passes f to the committer, together
// with other transitions.
func (sh *shard) send(ctx context.Context, r *ownedRun, f *pendingCommit) {
	r.commit = f
	for _, e := range f.events {
		failpoint.HitEvent("record.before", e)
	}
	if f.started != nil {
		f.Transition.Names = &f.started.Names
	}
	f.For, f.r = f, r
	sh.out.add(&f.Item)
	if len(sh.out.items) >= inARow {
		sh.out.flush(ctx)
	}
}

// act does the work that follows the commit of a transition. It starts the calls, logs the
// alerts, and notifies the callers that wait for the commit.
func (sh *shard) act(ctx context.Context, r *ownedRun, f *pendingCommit) {
	n := sh.s.n
	for _, e := range f.events {
		failpoint.HitEvent("record.after", e)
	}
	r.commit = nil
	r.seq, r.link, r.owned = f.Transition.Seq+1, f.link, true
	r.stored += int64(len(f.Transition.Data))
	r.weigh(&sh.memory, sh.runs[r.id] == r)
	if f.Transition.Owner != nil {
		r.fence = f.Transition.Seq
	}
	if !f.Transition.NextCheck.IsZero() {
		r.bound = f.Transition.NextCheck
	}
	if len(f.facts) > 0 {
		n.cfg.Observer.Facts(r.id, r.facts+1, f.facts)
	}
	r.facts += f.factCount
	sh.decide.spares.keepFacts(f)
	sh.clearSuspect(ctx, r, &f.Transition)
	if len(f.Transition.Announce) > 0 {
		wait.Wake(n.Notices)
	}
	if p := f.Transition.Post; p != nil && n.Posted != nil {
		n.Posted(p.Sink)
	}
	if f.started != nil {
		f.started.Submitted = store.Submitted{Run: r.id, Name: f.started.Public}
	}
	r.inbox.consumed(f.Transition.Consumed)
	if r.unheard {
		r.inbox.wanted, r.inbox.first = true, true
	}
	for _, d := range f.deliveries {
		d.finish(nil)
	}
	if f.adopting {
		n.Quarantined.Gone(r.id)
		n.Backoffs.Take(r.id)
		for _, a := range r.adopts {
			a.Done(nil)
		}
		r.adopts = nil
	}
	failpoint.Hit("act.before")
	for _, c := range f.commands {
		switch c := c.(type) {
		case machine.Invoke:
			n.Calls.StartCall(r.callSpec(c, sh.s.capacity, f.sendBy(r.specs[c.Agent])))
		case machine.Stop:
			n.Calls.StopCall(r.id, c)
		case machine.PauseChild:
			n.Calls.PauseChild(r.id, c)
		case machine.BoundChild:
			n.Calls.BoundChild(r.id, c)
		case machine.Alert:
			n.cfg.Logger.Warn("alert", "run", r.name(), "kind", c.Kind, "step", c.Step, "code", c.Code, "message", c.Message)
		}
	}
	failpoint.Hit("act.after")
	f.reserved = nil // from now on each call gives back its own slot
	if f.moved {
		reload(ctx, sh, r)
		return
	}
	n.Followers.Notify(r.id)
	takeSnapshot(ctx, sh, r, f.Transition.Data)
	sh.afterDecision(ctx, r)
	if sh.runs[r.id] == r {
		sh.readInbox(ctx, r)
	}
}

// afterDecision is called when no event of the run is being decided. It sets the run's timer. If
// the run has ended or needs a person, it sends the state to the callers that wait for it. If the
// run waits for slots, afterDecision puts it into the queues of the agents. If the run has ended
// and no event waits, or if it is at rest and not due soon, afterDecision removes it from memory.
// If the engine is stopping, afterDecision may release the run.
func (sh *shard) afterDecision(ctx context.Context, r *ownedRun) {
	if sh.runs[r.id] != r || r.commit != nil || r.away != nil || r.phase != phaseReady {
		return
	}
	sh.s.Hands.letGoOf(r)
	current := r.state.Status()
	if current.Final() || current.NeedsHuman() {
		for i, w := range r.waiters {
			if current.Final() && len(r.pending) == 0 && i == len(r.waiters)-1 {
				// The run is removed from memory after this loop, so the last waiter gets the
				// state without a copy.
				w <- r.state
				continue
			}
			w <- r.state.Clone()
		}
		r.waiters = nil
	}
	if current.Final() {
		if r.state.Run().Parent.Run != 0 && sh.s.n.Ended != nil {
			sh.s.n.Ended(r.id, r.state)
		}
		sh.s.Timers.set(r.id, time.Time{}, false)
		if len(r.pending) == 0 {
			if r.inbox.wanted {
				sh.clear(ctx, r)
			}
			delete(sh.runs, r.id)
			r.weigh(&sh.memory, sh.runs[r.id] == r)
		}
		return
	}
	due, ok := r.state.NextDue()
	sh.s.Timers.set(r.id, due, ok)
	if sh.s.n.Draining.Load() {
		sh.release(ctx, r)
		return
	}
	// A paused or parked run starts nothing, so it must not wait in the queue for a slot. If it
	// waited, the queue would wake it for each free slot. The run would leave the slot unused and
	// wait in the queue again, for ever.
	if sh.s.capacity != nil && current != status.RunPaused && current != status.RunParked && !r.unheard {
		sh.gate.wait(r)
		leave(sh, r)
	}
	sh.unload(r)
}

// offload passes a costly decision to the node's decision pool, so that the shard can decide for
// other runs. Until the pool has made this decision, the other events of the run wait.
func (sh *shard) offload(r *ownedRun, c *costlyDecision) {
	r.away = c
	sh.s.n.Pool.add(c, &sh.taskQueue, sh.s.done)
}

// grasp takes in hand a run that may have crashed an engine (see ownedRun.suspect). It does not
// block. The shard decides the run's waiting events later: after the store has recorded that this
// engine has the run in hand.
func (sh *shard) grasp(r *ownedRun) {
	if r.grasping {
		return
	}
	r.grasping = true
	sh.out.commits++ // a caller of shard.idle must wait for this write, too
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		err := sh.s.Hands.PutInHand(context.Background(), r.id) // PutInHand also returns when the membership ends
		sh.give(task{run: r.id, fn: func(ctx context.Context) {
			sh.out.commits--
			r.grasping = false
			if err != nil || sh.runs[r.id] != r || r.inHand {
				sh.s.Hands.LetGo(r.id)
				return
			}
			r.inHand = true
			sh.step(ctx, r)
			if r.commit == nil && r.away == nil {
				sh.s.Hands.letGoOf(r)
			}
		}})
	}()
}

// release gives up a run, so that another engine can claim the run. It is called while this engine
// is stopping and waits for calls of other runs. It commits a row without records. The row removes
// the owner and makes the run due at once. release does nothing if the run has a call of an agent
// in flight. It does not release runs that are paused or wait for a person, because no engine could
// continue them.
func (sh *shard) release(ctx context.Context, r *ownedRun) {
	n := sh.s.n
	if !sh.s.handing.Load() || !r.owned || r.phase != phaseReady || r.commit != nil || len(r.pending) > 0 ||
		r.calling() || !Moves(r.state.Status()) || n.Calls.InFlight() == 0 || ctx.Err() != nil {
		return
	}
	free(ctx, sh, r)
}

// free starts to commit a row that removes the run's owner. If the run can continue without a
// person, another engine can claim the run at once. If the run needs a person, another engine can
// claim it when it is due, or when a person sends a verb.
func free(ctx context.Context, sh *shard, r *ownedRun) {
	n := sh.s.n
	at := n.Clock.Now()
	if last := r.state.Last(); at.Before(last) {
		at = last
	}
	data, _, err := journal.NewRow{Run: r.id, Seq: r.seq, At: at, Before: r.link}.Encode(n.cfg.Sealer, &sh.decide.rows)
	if err != nil {
		n.cfg.Logger.Error("hand a run back", "run", r.name(), "error", err)
		return
	}
	nobody, check := store.EngineID(0), at // any engine may continue the run at once
	switch due, ok := r.state.NextDue(); {
	case ok && (due.Before(at) || !Moves(r.state.Status())):
		check = due // next_check must never be later than the due time
	case !ok && !Moves(r.state.Status()):
		check = store.Never // the run waits for a person
	}
	t := store.Transition{Run: r.id, Seq: r.seq, At: at, Owner: &nobody, NextCheck: check.Truncate(time.Microsecond), Data: data}
	r.phase = phaseLoading // nothing is decided until the store has answered
	sh.s.Timers.set(r.id, time.Time{}, false)
	// If this membership ends before the store answers, the run becomes free without this row.
	sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil {
			// Another engine wrote a row with this number, or this membership is over. The
			// journal shows which.
			sh.load(ctx, r)
			return
		}
		sh.drop(r, call.ErrNotOwner, nil)
	})
}

// leave releases a run whose agent does not work in this engine, so that another engine can claim
// the run. It releases the run if a step has waited for the agent at least for the duration of a
// lease, and if the store knows another living engine. After that, this engine does not claim the
// run at least for the duration of a lease. This time grows if it has to release the run again.
// leave does nothing while a call of the run is in flight.
func leave(sh *shard, r *ownedRun) {
	n := sh.s.n
	if n.cfg.Options.OnlyOwnRuns || r.leaving || !leavable(r) {
		return
	}
	now := n.Clock.Now()
	switch {
	case !sh.gate.down(r):
		// No step waits for the agent now. But if the engine could not send calls of this
		// run before, the agent probably still does not work. Then the field `down` keeps
		// its time.
		if len(r.refusals) == 0 {
			r.down = time.Time{}
		}
		return
	case r.down.IsZero():
		r.down = now
		return
	case now.Sub(r.down) < n.cfg.Options.Lease:
		return
	}
	r.leaving, r.down = true, now
	id, engine := r.id, sh.s.engine
	sh.s.loads.Go(func() {
		live, err := n.cfg.Store.Live(context.Background())
		if err != nil {
			n.cfg.Logger.Debug("look for other engines to leave a run to", "error", err)
		}
		others := slices.ContainsFunc(live, func(m store.Member) bool { return m.Engine != engine })
		sh.give(task{run: id, fn: func(ctx context.Context) {
			if sh.runs[id] != r {
				return
			}
			r.leaving = false
			if others && leavable(r) {
				n.Backoffs.Add(id, n.Clock.Now(), n.cfg.Options.Lease)
				n.cfg.Logger.Info("a run is left to other engines, because its agent does not work here", "run", r.name())
				free(ctx, sh, r)
				return
			}
			sh.unload(r)
		}})
	})
}

// leavable reports whether the run has nothing in progress in this engine and can continue in
// another engine.
func leavable(r *ownedRun) bool {
	return r.owned && r.phase == phaseReady && r.commit == nil && r.away == nil && len(r.pending) == 0 && !r.state.InFlight() && Moves(r.state.Status())
}

// takeOver begins to make this engine the owner of a run that has no owner, or whose owner is dead
// or late. If the messages of the run were not read yet, takeOver only starts to read them.
// Otherwise it queues the events of the takeover and decides them.
//
// The messages are decided before new work starts (language.md, Verbs before work): after a person
// has cancelled or paused a run, no further call may start. So the row of the takeover also holds
// the decisions on the messages, as many as fit into it. No call starts before the decision on the
// last message.
//
// An answer in the inbox counts if it reached an engine before its complete-by, even if complete-by
// has passed since. Such answers are decided before the takeover, as many as fit into the row. The
// calls that follow from an answer start after the takeover.
func (sh *shard) takeOver(ctx context.Context, r *ownedRun, a Adoption) {
	if !a.Read {
		r.inbox.wanted, r.inbox.first = true, true
		sh.readInbox(ctx, r)
		return
	}
	r.suspect, r.deaths = a.Suspect, a.Deaths
	for _, l := range a.Messages {
		if l.Err == nil && !r.inbox.received[l.ID] {
			r.inbox.receive(l.ID)
			r.pending = append(r.pending, l.delivery())
		}
	}
	r.messagesRead, r.unheard = nil, len(a.Messages) >= InboxLimit
	if !r.unheard {
		heard := int32(len(a.Messages))
		r.messagesRead = &heard
	}
	now := sh.s.n.Clock.Now()
	var inTime, messages, rest []*delivery
	// The variable `left` counts the bytes that are left for answers that came in time. The answers
	// share one row of the journal with the takeover, so they must leave space for the takeover.
	left := sh.s.n.cfg.Options.MaxBatchBytes
	for _, d := range r.pending {
		r.time(d)
		switch {
		case d.message == 0:
			rest = append(rest, d)
		case reopens(r.state, d.Event): // a takeover needs an open run, so the event that opens the run comes first
			d.noCalls = true
			inTime = append(inTime, d)
		case d.cameInTime(now) &&
			len(inTime) < maxEvents/2 && journal.EventSize(d.Event) <= left:
			d.noCalls = true
			inTime, left = append(inTime, d), left-journal.EventSize(d.Event)
		default:
			messages = append(messages, d)
		}
	}
	slices.SortStableFunc(messages, earlier)
	for i, d := range messages {
		d.noCalls = r.unheard || i < len(messages)-1
	}
	taken := &delivery{Answer: call.Answer{Event: machine.TakenOver{By: int32(sh.s.engine), From: int32(r.owner)}, Arrived: now}, noCalls: len(messages) > 0}
	r.pending = append(append(inTime, taken), messages...)
	if !r.unheard {
		r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
	}
	r.pending = append(r.pending, rest...)
	sh.step(ctx, r)
}

// heardMore continues a takeover that found more messages than one read returns. If the parameter
// `more` is true, there may still be unread messages, and heardMore requests another read.
// Otherwise it queues the event after which the steps that waited for the takeover can start.
func (sh *shard) heardMore(r *ownedRun, more bool) {
	if more {
		r.inbox.wanted, r.inbox.first = true, true
		return
	}
	r.unheard = false
	r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
}

// keepMessages keeps as evidence the answers in f.late, which arrived too late to count.
func (sh *shard) keepMessages(ctx context.Context, r *ownedRun, f *pendingCommit) {
	for _, d := range f.late {
		sh.keepMessage(ctx, r, d)
	}
	f.late = nil
}

// keepMessage stores a late answer as evidence. After that, it queues the answer again, so that the
// next row removes the answer's message from the inbox. So the store has the answer at any moment:
// first as a message in the inbox, then as message and evidence, and at the end as evidence.
func (sh *shard) keepMessage(ctx context.Context, r *ownedRun, d *delivery) {
	late := lateReply(r.id, r.wf, r.state, d)
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if !sh.s.n.KeepSurely(ctx, late) {
			return // the membership is over; the message is still in the inbox
		}
		sh.s.n.cfg.Observer.LateReply(r.id, d.Attempt)
		sh.post(func(ctx context.Context) {
			if sh.runs[r.id] != r || !r.inbox.received[d.message] {
				return
			}
			again := *d
			again.kept = true
			r.pending = append(r.pending, &again)
			sh.step(ctx, r)
		})
	}()
}
