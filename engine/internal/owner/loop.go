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
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// loop does tasks until the channel in the parameter `last` is closed and no task waits. The final
// tasks may report the commit of a row. Then the shard must still start the calls of the row, or
// report that these calls were not sent. After ctx has ended, the shard decides no event.
func (sh *shard) loop(ctx context.Context, last <-chan struct{}) {
	defer close(sh.ended)
	var batch []task
	for ended := false; ; {
		batch = sh.take(batch, ended)
		for i := range batch {
			sh.turn.start(batch[i].about())
			sh.do(ctx, &batch[i])
			batch[i] = task{}
			if (i+1)%inARow == 0 {
				sh.out.flush(ctx)
			}
		}
		sh.turn.end()
		sh.out.flush(ctx)
		if len(batch) > 0 {
			sh.size.Store(int64(len(sh.runs)))
			if sh.empty() {
				sh.out.rest()
			}
			continue
		}
		if ended {
			return
		}
		select {
		case <-sh.hint:
		case <-last:
			ended = true
		}
	}
}

func (sh *shard) do(ctx context.Context, t *task) {
	switch {
	case t.d != nil:
		sh.accept(ctx, t.run, t.d)
	case t.it != nil:
		sh.answered(ctx, t.it)
	case t.call != nil:
		sh.callAnswered(ctx, t.call)
	case t.back != nil:
		sh.brought(ctx, t.back)
	default:
		t.fn(ctx)
	}
}

// brought continues a run with the result of a goroutine: the loaded run, loaded messages,
// or a costly decision.
func (sh *shard) brought(ctx context.Context, back any) {
	switch of := back.(type) {
	case *loadedRun:
		if sh.runs[of.r.id] != of.r || of.r.inHand {
			sh.s.Hands.LetGo(of.r.id)
		} else {
			of.r.inHand = true // the run stays in hand until its next decision
		}
		sh.loaded(ctx, of.r, of.story, of.err)
	case *loadedMessages:
		sh.inboxRead(ctx, of)
	case *costlyDecision:
		sh.offloaded(ctx, of)
	}
}

// accept adds an event to the waiting events of its run, and decides them if that is possible.
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
	case d.start != nil: // another run has this id: the caller assigns a new id
		d.finish(store.ErrExists)
		return
	case r.phase == phaseQuarantined:
		d.finish(r.err)
		return
	case r.phase == phaseReady && r.state.Status().Final():
		if _, freed := d.Event.(machine.SlotsFreed); freed {
			// The run waited for a slot, a place or its unique key. It has ended since, or ends
			// with the commit in flight. So it needs none of these. If the run waited for a slot,
			// finish makes the queue of the agent notify the next run.
			d.finish(nil)
			return
		}
	}
	r.pending = append(r.pending, d)
	sh.step(ctx, r)
}

// adopt starts the takeover that Adoption a asks for. Later a.Done is called with the outcome,
// unless this membership ends first.
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
	case r.phase == phaseReady && r.commit == nil && r.away == nil: // the run's messages are being read
		r.adopts = append(r.adopts, a)
		if r.owner == a.From {
			sh.takeOver(ctx, r, a)
		}
	default:
		r.adopts = append(r.adopts, a)
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

// landed continues a run after the store has answered its commit.
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
	case l.Err == nil, errors.Is(l.Err, store.ErrStale), errors.Is(l.Err, naming.ErrFull) && f.started == nil, errors.Is(l.Err, store.ErrExists) && l.Unsure:
		// There are three possible reasons: the concurrency limit has no place for the run, another
		// engine has appended a row, or this row was committed and the store's answer was lost. The
		// journal says which. Until the journal is read, r.commit stays set.
		r.phase = phaseLoading
		sh.load(ctx, r)
	case errors.Is(l.Err, store.ErrExists), errors.Is(l.Err, naming.ErrFull) && !l.Unsure:
		sh.drop(r, l.Err, nil)
	case OverFor(l.Err), ctx.Err() != nil:
		// This membership is over. The run stays in memory, so that shard.close can report to
		// the next membership that this engine owned it. shard.close also answers the callers.
	case l.Unsure && f.started == nil:
		// The store refuses the row now, but may have committed the row at an earlier try.
		// The journal says whether the row was committed.
		r.phase = phaseLoading
		sh.load(ctx, r)
	case f.started != nil && l.Unsure: // the committer tries no more, but the run may be stored
		sh.drop(r, &OpenOutcome{fmt.Errorf("submit: %w", l.Err)}, nil)
	case f.started != nil:
		sh.drop(r, fmt.Errorf("submit: %w", l.Err), nil)
	default:
		f.release(sh.s.capacity)
		r.commit = nil
		sh.quarantine(ctx, r, f.deliveries, fmt.Errorf("the store refuses row %d: %w", f.Transition.Seq, l.Err))
	}
}

// callAnswered handles the answer to a call.
func (sh *shard) callAnswered(ctx context.Context, c *call.Call) {
	a, ok := c.Concluded()
	switch {
	case !ok:
		c.Finish()
	case c.Flush(): // the progress of the call must be decided before its answer
		c.Report(a)
	default:
		sh.accept(ctx, c.Run, &delivery{Answer: a, call: c})
	}
}

// offloaded continues a run after the pool has posted a decision or an error about it.
func (sh *shard) offloaded(ctx context.Context, c *costlyDecision) {
	r := c.r
	if c.instead != nil && r.away == c.instead {
		r.away = c
	}
	if sh.runs[r.id] != r || r.away != c {
		return
	}
	r.away = nil
	if c.err != nil {
		sh.quarantine(ctx, r, nil, c.err)
		return
	}
	// If r.state is not c.base, the run was read again in the meantime, and the decision is not
	// used.
	if r.state == c.base {
		r.state = c.state // use the copy of the state: the pool has worked with it, so its cache has more values
		r.decided = c
	}
	sh.step(ctx, r)
	if r.commit == nil && r.away == nil {
		sh.s.Hands.letGoOf(r)
	}
}

// inboxChanged starts to read the inbox of a run that this engine owns, or that has no owner.
func (sh *shard) inboxChanged(ctx context.Context, id status.RunID) {
	r := sh.runs[id]
	if r == nil {
		r = &ownedRun{id: id, phase: phaseLoading}
		sh.runs[id] = r
		r.inbox.wanted = true
		sh.load(ctx, r)
		return
	}
	r.inbox.wanted = true
	sh.readInbox(ctx, r)
}

// inboxRead continues a run after its messages were read.
func (sh *shard) inboxRead(ctx context.Context, m *loadedMessages) {
	r, messages, more, err := m.r, m.messages, m.more, m.err
	b, n := &r.inbox, sh.s.n
	if sh.runs[r.id] != r || b.epoch != m.epoch {
		return
	}
	b.reading, b.first = false, false
	gone := b.gone
	b.gone = nil
	var unable *journal.RunError
	switch {
	case r.phase != phaseReady:
		return
	case errors.As(err, &unable):
		sh.drop(r, unable, nil)
		sh.s.decideUnable(ctx, r.id)
		return
	case err != nil:
		if ctx.Err() == nil {
			n.Outage.Failed(doingMessages, err, "run", r.name())
		}
	default:
		n.Outage.Worked(doingMessages, time.Time{})
	}
	if len(messages) > 0 {
		failpoint.Hit("inbox.read")
	}
	fresh, stuck := 0, 0
	for _, l := range messages {
		switch {
		case l.Err != nil:
			stuck++
			if !b.received[l.ID] {
				n.cfg.Logger.Error("a message cannot be read here and is left", "run", r.name(), "message", l.ID, "error", l.Err)
				n.Quarantined.Note(r.id, &journal.RunError{Run: int64(r.id), Name: r.name(), Err: l.Err, Hint: journal.HintFor(l.Err)})
			}
		case b.received[l.ID] || gone[l.ID]:
			continue
		default:
			fresh++
			d := l.delivery()
			d.noCalls = r.unheard
			r.pending = append(r.pending, d)
		}
		b.receive(l.ID)
	}
	b.stuck = stuck
	switch {
	case fresh > 0:
		b.pause, b.nextRead = 0, time.Time{}
		sh.s.Undecidable.Take(r.id)
		b.wanted = b.wanted || more
		slices.SortStableFunc(r.pending, earlier)
	case stuck > 0:
		b.pause = min(max(n.cfg.Options.MaxScan, 2*b.pause), 20*n.cfg.Options.MaxScan)
		b.nextRead = n.Clock.Now().Add(b.pause)
		if r.owned { // without this call of Rest, the message would look like new work at each tick
			sh.s.Undecidable.Rest(r.id, b.nextRead, sh.s.Undecidable.Woken())
		}
	}
	switch {
	case r.owned:
		if r.unheard && err == nil {
			sh.heardMore(r, more)
		}
		sh.step(ctx, r)
		sh.readInbox(ctx, r)
		sh.unload(r)
	case r.commit != nil: // this engine is already taking the run over
	case err == nil && (fresh > 0 || r.wanted()):
		sh.takeOver(ctx, r, Adoption{Read: true, Messages: messages})
	default:
		if stuck > 0 {
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, call.ErrNotOwner, nil)
	}
}

// loaded continues a run whose journal was read.
func (sh *shard) loaded(ctx context.Context, r *ownedRun, story Story, err error) {
	if sh.runs[r.id] != r {
		return
	}
	if err != nil {
		sh.notLoaded(r, err)
		return
	}
	f := r.commit
	mine := f != nil && story.wrote(&f.Transition)
	if f != nil && f.started != nil {
		if !mine {
			sh.drop(r, store.ErrExists, nil) // another run has this id
			return
		}
		// The run was accepted, although another engine may own it by now.
		f.started.Submitted = store.Submitted{Run: r.id, Name: f.started.Public}
	}
	sh.fill(r, story)
	if r.specs == nil {
		if r.specs = story.specs; story.specsErr != nil {
			err = &journal.RunError{Run: int64(r.id), Name: r.name(), Err: story.specsErr}
			sh.drop(r, err, err)
			return
		}
	}
	if r.moved = false; story.unable != nil && r.owned && f == nil {
		sh.s.n.cfg.Logger.Warn("run was moved to a definition whose agents are missing here: another engine may have them", "run", r.name(), "error", story.unable)
		free(ctx, sh, r)
		return
	}
	if f != nil && mine && story.Rows() == f.Transition.Seq+1 {
		if r.owned { // count the facts of this row only once: the method `fill` has counted them already, and `act` counts them again
			r.facts -= f.factCount
			sh.act(ctx, r, f)
			sh.step(ctx, r)
			return
		}
	} else if f != nil {
		sh.forget(r, mine)
	}
	sh.goOn(ctx, r, story.Head)
}

// goOn continues a run that was just read. If the run had a pending commit, the outcome of this
// commit is known now.
func (sh *shard) goOn(ctx context.Context, r *ownedRun, head store.Head) {
	from := slices.IndexFunc(r.adopts, func(a Adoption) bool { return a.From == head.Owner })
	switch {
	case r.state.Run().Undoable() && (r.reopening || !r.owned && from >= 0):
		reopened(ctx, sh, r, head.Owner)
	case r.owned:
		for _, a := range r.adopts {
			a.Done(nil)
		}
		r.adopts = nil
		sh.afterDecision(ctx, r)
		sh.readInbox(ctx, r)
		sh.step(ctx, r)
	case r.state.Status().Final():
		if r.inbox.wanted {
			sh.clear(ctx, r)
		}
		for _, d := range r.pending {
			if d.answers() {
				sh.s.n.keepLate(r, d)
			}
		}
		sh.drop(r, nil, nil)
	case from >= 0:
		sh.takeOver(ctx, r, r.adopts[from])
	case r.inbox.wanted && head.Owner == 0 && sh.s.n.Claims():
		sh.readInbox(ctx, r)
	default:
		n := sh.s.n
		switch {
		case !r.inbox.wanted:
		case head.Owner == 0:
			n.Backoffs.addForOthers(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		default:
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, call.ErrNotOwner, nil)
	}
}

// reopened continues a run that has ended, and that may turn back because its parent is undone. The
// parameter `owner` is the owner of the run; 0 = none. If this engine is not the owner, reopened
// starts to take the run over.
func reopened(ctx context.Context, sh *shard, r *ownedRun, owner store.EngineID) {
	r.reopening = false
	if r.owned {
		r.inbox.wanted = true
		sh.readInbox(ctx, r)
		return
	}
	a := Adoption{From: owner, Done: func(error) {}}
	r.adopts = append(r.adopts, a)
	sh.takeOver(ctx, r, a)
}
