package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// maxEvents bounds how many waiting events become one row.
const maxEvents = 256

// accept queues an event for its run.
func (sh *shard) accept(ctx context.Context, id status.RunID, d *delivery) {
	r := sh.runs[id]
	switch {
	case r == nil && d.start != nil:
		r = &ownedRun{id: id, phase: phaseReady, state: machine.NewState(), bound: store.Never}
		sh.runs[id] = r
	case r == nil:
		r = &ownedRun{id: id, phase: phaseLoading}
		sh.runs[id] = r
		sh.load(ctx, r)
	case d.start != nil: // the id is taken: the caller assigns another
		d.finish(store.ErrExists)
		return
	case r.phase == phaseQuarantined:
		d.finish(r.err)
		return
	case r.phase == phaseReady && r.state.Status().Final():
		if _, freed := d.Event.(machine.SlotsFreed); freed {
			// The run waited for a slot and has ended since, or ends when its commit lands.
			// The next run in line must not wait for that.
			d.finish(nil)
			return
		}
	}
	r.pending = append(r.pending, d)
	sh.step(ctx, r)
}

// adopt makes this engine the owner of a run, if its owner is dead or late.
func (sh *shard) adopt(ctx context.Context, id status.RunID, a Adoption) {
	r := sh.runs[id]
	switch {
	case r == nil:
		r = &ownedRun{id: id, phase: phaseLoading, specs: a.Specs}
		sh.runs[id] = r
		r.adopts = append(r.adopts, a)
		if a.Story != nil {
			sh.loaded(ctx, r, *a.Story, nil)
			return
		}
		sh.load(ctx, r)
	case r.phase == phaseQuarantined:
		a.Done(r.err)
	case r.phase == phaseReady && r.owned && !r.adopting():
		a.Done(nil)
	case r.phase == phaseReady && r.commit == nil && r.away == nil: // its messages are being read
		r.adopts = append(r.adopts, a)
		if r.owner == a.From {
			sh.takeOver(ctx, r, a)
		}
	default:
		r.adopts = append(r.adopts, a)
	}
}

// step decides the events that wait for the run, unless a commit of the run is in flight.
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
		sh.settle(ctx, r)
		if due, ok := r.state.NextDue(); ok && sh.runs[r.id] == r && len(r.pending) == 0 && sh.s.n.Clock.Until(due) <= 0 {
			// This decision was just made and changed nothing: it is not made again at once.
			sh.s.Timers.set(r.id, sh.s.n.Clock.Now().Add(sh.s.n.cfg.Options.MinScan), true)
		}
		sh.step(ctx, r)
	default:
		sh.keepMessages(ctx, r, f)
		sh.send(ctx, r, f)
	}
}

// send gives a transition to the committer, together with others of this turn of the shard.
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

// answered handles the outcome of a commit.
func (sh *shard) answered(ctx context.Context, it *commit.Item) {
	switch of := it.For.(type) {
	case *pendingCommit:
		sh.landed(ctx, of.r, of, it.Landing)
	case func(commit.Landing):
		of(it.Landing)
	}
}

// landed continues a run after its commit was answered.
func (sh *shard) landed(ctx context.Context, r *ownedRun, f *pendingCommit, l commit.Landing) {
	sh.out.commits--
	if r.commit != f {
		return
	}
	switch {
	case l.Err == nil && l.Submitted.Exists && l.Submitted.Run != r.id:
		f.started.Submitted = l.Submitted
		sh.drop(r, nil, nil)
	case l.Err == nil && !l.Submitted.Exists:
		sh.act(ctx, r, f)
		sh.decide.spares.doneWith(f)
		sh.step(ctx, r)
	case l.Err == nil, errors.Is(l.Err, store.ErrStale), errors.Is(l.Err, store.ErrExists) && l.Unsure:
		// Another engine has appended a row, or this same row had landed and its answer
		// was lost. The journal says which. The pending commit stays until it is read.
		r.phase = phaseLoading
		sh.load(ctx, r)
	case errors.Is(l.Err, store.ErrExists):
		sh.drop(r, l.Err, nil)
	case OverFor(l.Err), ctx.Err() != nil:
		// This membership is over. The run stays as it is, so that the next membership
		// knows that this engine owned it. The end of the membership answers the callers.
	case l.Unsure && f.started == nil:
		// The store refuses the row now, but an earlier sending may have landed. The
		// journal says whether it has.
		r.phase = phaseLoading
		sh.load(ctx, r)
	case f.started != nil && l.Unsure: // sending was given up: the run may be stored all the same
		sh.drop(r, &OpenOutcome{fmt.Errorf("submit: %w", l.Err)}, nil)
	case f.started != nil:
		sh.drop(r, fmt.Errorf("submit: %w", l.Err), nil)
	default:
		f.release(sh.s.capacity)
		r.commit = nil
		sh.quarantine(ctx, r, f.deliveries, fmt.Errorf("the store refuses row %d: %w", f.Transition.Seq, l.Err))
	}
}

// act starts the calls and alerts of a landed transition (commit before act).
func (sh *shard) act(ctx context.Context, r *ownedRun, f *pendingCommit) {
	n := sh.s.n
	for _, e := range f.events {
		failpoint.HitEvent("record.after", e)
	}
	r.commit = nil
	r.seq, r.link, r.owned = f.Transition.Seq+1, f.link, true
	r.stored += int64(len(f.Transition.Data))
	r.weigh(&sh.held, sh.runs[r.id] == r)
	if f.Transition.Owner != nil {
		r.fence = f.Transition.Seq
	}
	if !f.Transition.NextCheck.IsZero() {
		r.bound = f.Transition.NextCheck
	}
	if len(f.facts) > 0 {
		n.cfg.Observer.Facts(r.id, r.facts+1, f.facts)
	}
	r.facts += f.told
	sh.decide.spares.toldFacts(f)
	sh.gotOn(ctx, r, &f.Transition)
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
			n.Calls.Start(r.callSpec(c, sh.s.capacity))
		case machine.Stop:
			n.Calls.Stop(r.id, c.Attempt)
		case machine.Alert:
			n.cfg.Logger.Warn("alert", "run", r.name(), "kind", c.Kind, "step", c.Step, "code", c.Code, "message", c.Message)
		}
	}
	failpoint.Hit("act.after")
	f.reserved = nil // the worker of each call gives its slot back
	n.Followers.Tell(r.id)
	sh.settle(ctx, r)
	if sh.runs[r.id] == r {
		sh.readInbox(ctx, r)
	}
}

// heard handles the answer to a call.
func (sh *shard) heard(ctx context.Context, c *call.Call) {
	a, ok := c.Concluded()
	switch {
	case !ok:
		c.Finish()
	case c.Flush(): // its earlier progress is decided first
		c.Report(a)
	default:
		sh.accept(ctx, c.Run, &delivery{Answer: a, call: c})
	}
}

// settle sets the timer for the run's next due time, and forgets the run if it has ended.
func (sh *shard) settle(ctx context.Context, r *ownedRun) {
	if sh.runs[r.id] != r || r.commit != nil || r.away != nil || r.phase != phaseReady {
		return
	}
	sh.s.Hands.letGoOf(r)
	current := r.state.Status()
	if current.Final() || current.NeedsHuman() {
		for i, w := range r.waiters {
			if current.Final() && len(r.pending) == 0 && i == len(r.waiters)-1 {
				w <- r.state // the shard forgets the run below, so the last waiter gets its state without a copy
				continue
			}
			w <- r.state.Clone()
		}
		r.waiters = nil
	}
	if current.Final() {
		sh.s.Timers.set(r.id, time.Time{}, false)
		if len(r.pending) == 0 {
			if r.inbox.wanted {
				sh.clear(ctx, r)
			}
			delete(sh.runs, r.id)
			r.weigh(&sh.held, sh.runs[r.id] == r)
		}
		return
	}
	due, ok := r.state.NextDue()
	sh.s.Timers.set(r.id, due, ok)
	// A paused run starts nothing, so it must not wait for a slot: it would be woken for
	// each free slot and leave it unused.
	if sh.s.n.Draining.Load() {
		sh.release(ctx, r)
		return
	}
	if sh.s.capacity != nil && current != status.RunPaused && !r.unheard {
		sh.gate.wait(r)
	}
}

// drop forgets a run that another engine owns or that could not be read, and gives the
// error to all who wait for it.
func (sh *shard) drop(r *ownedRun, err, trouble error) {
	sh.s.Hands.letGoOf(r)
	r.away, r.decided = nil, nil
	if r.commit != nil {
		r.commit.release(sh.s.capacity)
		for _, d := range r.commit.deliveries {
			d.finish(err)
		}
		r.commit = nil
	}
	for _, d := range r.pending {
		d.finish(err)
	}
	r.pending = nil
	for _, a := range r.adopts {
		a.Done(err)
	}
	r.adopts = nil
	for _, w := range r.waiters {
		close(w)
	}
	r.waiters = nil
	if trouble != nil {
		sh.s.n.Quarantined.Note(r.id, trouble)
	}
	sh.s.Timers.set(r.id, time.Time{}, false)
	delete(sh.runs, r.id)
	r.weigh(&sh.held, sh.runs[r.id] == r)
}

// await returns a channel to which the run's final state is sent; nil = this shard does
// not have the run. The error says why the run is quarantined.
func (sh *shard) await(run status.RunID) (chan *machine.State, error) {
	r := sh.runs[run]
	switch {
	case r == nil:
		return nil, nil
	case r.phase == phaseQuarantined:
		return nil, r.err
	}
	w := make(chan *machine.State, 1)
	if r.phase == phaseReady && r.commit == nil && (r.state.Status().Final() || r.state.Status().NeedsHuman()) {
		w <- r.state.Clone()
		return w, nil
	}
	r.waiters = append(r.waiters, w)
	return w, nil
}

// offload has the pool decide an event. The run's other events wait.
func (sh *shard) offload(r *ownedRun, c *costlyDecision) {
	c.sh, r.away = sh, c
	sh.s.n.Pool.add(c)
}

// offloaded goes on with a run for which the pool has decided.
func (sh *shard) offloaded(ctx context.Context, c *costlyDecision) {
	r := c.r
	if sh.runs[r.id] != r || r.away != c {
		return
	}
	r.away = nil
	if c.err != nil {
		sh.quarantine(ctx, r, nil, c.err)
		return
	}
	if r.state == c.base { // else the run was read again meanwhile
		r.state = c.state // the record is about this copy, which knows more values by now
		r.decided = c
	}
	sh.step(ctx, r)
	if r.commit == nil && r.away == nil {
		sh.s.Hands.letGoOf(r)
	}
}

// grasp takes a run in hand before something of it is decided, and goes on with it
// then.
func (sh *shard) grasp(r *ownedRun) {
	if r.grasping {
		return
	}
	r.grasping = true
	sh.out.commits++ // a caller of quiet waits for this too
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		err := sh.s.Hands.Hold(context.Background(), r.id) // ends with the membership
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

// gotOn notes that a run has got on: what it was suspected of it has outlived. An
// attempt that starts is no proof, since what its answer leads to may be what ends
// an engine.
func (sh *shard) gotOn(ctx context.Context, r *ownedRun, t *store.Transition) {
	if !r.suspect || !settles(t) {
		return
	}
	r.suspect = false
	if r.deaths == 0 {
		return
	}
	r.deaths = 0
	n, id := sh.s.n, r.id
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if err := n.cfg.Store.Absolve(ctx, id); err != nil && ctx.Err() == nil {
			// It stays suspect: one death more or less is no harm.
			n.cfg.Logger.Warn("the deaths that count against a run could not be removed: the run has gone on since", "run", naming.RunName(id), "error", err)
		}
	}()
}

// quarantine stops working on a run whose deciding or storing went wrong. The journal
// keeps the run's last state. An alert is written to the store, so that people see it
// there. Another engine, or a newer version, may continue the run.
func (sh *shard) quarantine(ctx context.Context, r *ownedRun, todo []*delivery, cause error) {
	n := sh.s.n
	err := &journal.RunError{Run: int64(r.id), Name: r.name(), Err: cause, Hint: journal.HintFor(cause)}
	if err.Hint == "" {
		err.Hint = "its state is kept; an engine of another version may be able to go on"
	}
	r.away, r.decided = nil, nil
	n.cfg.Logger.Error("run is quarantined", "run", r.name(), "error", cause)
	var p *guard.Panic
	if errors.As(cause, &p) {
		n.cfg.Logger.Debug("stack of the panic", "run", r.name(), "stack", p.Stack)
	}
	for _, d := range todo {
		d.finish(err)
	}
	if !r.owned { // another engine owns the run, or it does not exist yet: this engine may not write
		var trouble error
		if r.seq > 0 {
			trouble = err
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, err, trouble)
		return
	}
	sh.s.Hands.letGoOf(r)
	r.phase, r.err = phaseQuarantined, err
	for _, d := range r.pending {
		d.finish(err)
	}
	r.pending = nil
	for _, a := range r.adopts {
		a.Done(err)
	}
	r.adopts = nil
	for _, w := range r.waiters {
		close(w)
	}
	r.waiters = nil
	n.Quarantined.Note(r.id, err)
	sh.s.Quarantined.begin(r.id)
	sh.s.Timers.set(r.id, time.Time{}, false)
	sh.alert(ctx, r, cause)
}
