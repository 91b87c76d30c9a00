package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// errStop says that the engine is stopping.
var ErrStopping = errors.New("engine: this engine is stopping")

// ErrDrained is why a membership ended in order.
var ErrDrained = errors.New("engine: drained")

// A Membership is the time of a node in the store: from joining it under a new
// number until it leaves, or is declared dead.
type Membership struct {
	n         *Local
	Engine    store.EngineID
	Runs      *owner.Scheduler
	Committer *commit.Committer
	writers   []store.Writer
	ctx       context.Context // ends with the membership; only its Done and cause are used
	end       context.CancelCauseFunc

	former    store.EngineID          // the membership before this one; 0 = none
	inherited map[machine.RunID]int32 // runs of the former membership, with the number of their landed rows
	scanner   *scanner

	mu     sync.Mutex // protects following fields
	ticked time.Time  // when the last tick was sent
	hinted bool       // something may be waiting: the next tick comes early
	lag    time.Duration
	others map[machine.RunID]time.Time // runs left to engines that have them in hand, since when
	again  bool                        // such a run was left: look again soon
	busy   bool                        // the last pass found work on runs of others
}

// Join registers a new membership and learns the store's time.
func (n *Local) Join(ctx context.Context) (*Membership, error) {
	o := n.cfg.Options
	sent := time.Now()
	engine, err := n.cfg.Store.Join(ctx, o.Address, o.Lease, o.Writers)
	if err != nil {
		return nil, err
	}
	t := &Membership{n: n, Engine: engine}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	ok := false
	defer func() {
		if !ok {
			t.closeWriters()
			t.end(err)
		}
	}()
	for i := range o.Writers {
		w, err := n.cfg.Store.OpenWriter(ctx, engine, i)
		if err != nil {
			return nil, fmt.Errorf("open writer %d: %w", i, err)
		}
		t.writers = append(t.writers, w)
	}
	t.Committer = commit.New(t.writers, commit.Options{MaxRows: o.MaxBatchRows, MaxBytes: o.MaxBatchBytes, RetryStore: o.RetryStore}, n.shared.Outage)
	t.Runs = owner.New(n.shared, owner.Membership{Engine: engine, Context: t.ctx, Committer: t.Committer, Unable: t.unable})
	tick, err := n.cfg.Store.Tick(ctx, engine, o.Lease, tickLimit)
	if err != nil {
		return nil, fmt.Errorf("take the lease: %w", err)
	}
	n.shared.Clock.Ticked(sent, tick.Now, o.Lease)
	t.ticked = sent
	t.scanner = newScanner(t)
	t.see(tick, false)
	ok = true
	return t, nil
}

func (t *Membership) closeWriters() {
	for _, w := range t.writers {
		if err := w.Close(); err != nil {
			t.n.cfg.Logger.Debug("close a writer", "error", err)
		}
	}
}

// Run works until ctx ends and nothing is in flight any more, or until hard ends, or until
// the membership is over. It returns the reason.
func (t *Membership) Run(ctx, hard context.Context) error {
	defer context.AfterFunc(hard, func() { t.end(ErrStopping) })()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()

	var wg sync.WaitGroup
	for i := range t.writers {
		wg.Go(func() { t.over(t.Committer.Run(work, i)) })
	}
	last := make(chan struct{}) // closed when the writers have ended
	t.Runs.Start(work, last)
	supervisor := NewSupervisor(t.due, t.Runs.TimePassed, SupervisorOptions{
		MinScan: t.n.cfg.Options.MinScan, MaxScan: t.n.cfg.Options.MaxScan,
		Poke: t.Runs.Timers.Poke, Busy: t.isBusy, Passed: t.passed, // due logs a pass that fails
	})
	wg.Go(func() { t.over(supervisor.Run(work)) })
	wg.Go(func() {
		if err := t.inherit(work); err != nil {
			t.over(err)
		}
	})
	if t.n.shared.Claims() {
		wg.Go(func() { t.scanner.run(work) })
	}
	wg.Go(func() { t.listen(work) })
	wg.Go(func() { t.over(t.Runs.Hands.Run(work)) })
	wg.Go(func() { t.retain(work) })

	select {
	case <-ctx.Done():
		t.drain(work)
	case <-t.ctx.Done():
	}
	wg.Wait()
	close(last)
	t.Runs.Stop()
	t.closeWriters()
	return context.Cause(t.ctx)
}

// over ends the membership if one of its loops has ended for a reason of its own.
func (t *Membership) over(err error) { t.end(err) }

// drain ends the membership in order. It starts no call, waits for the calls in flight, and
// commits their answers.
func (t *Membership) drain(ctx context.Context) {
	t.n.shared.Draining.Store(true)
	failpoint.Hit("drain.begun")
	err := t.Runs.Flush(ctx)
	if err == nil {
		t.handBack(ctx)
		if err := t.n.shared.Calls.Wait(ctx, t.n.cfg.Options.Grace); err != nil && ctx.Err() == nil {
			t.n.cfg.Logger.Warn("stopping", "error", err)
		}
		err = t.Runs.Flush(ctx)
		failpoint.Hit("drain.flushed")
	}
	if err == nil {
		t.end(ErrDrained)
	}
	<-t.ctx.Done() // also after a flush that failed: then the membership is over
}

// tickLimit bounds the runs that one tick returns.
const tickLimit = 1000

// hintPause is the shortest pause between two ticks when hints come.
const hintPause = 20 * time.Millisecond

// listen ticks early when the store hints that something may be waiting. If a hint is
// lost, the next regular tick finds the work.
func (t *Membership) listen(ctx context.Context) {
	w, ok := t.n.cfg.Store.Store.(store.Waker)
	if !ok {
		return
	}
	hints := w.Wakes(ctx)
	if hints == nil {
		return
	}
	for range hints {
		t.scan()
	}
}

// look makes the next tick come early.
func (t *Membership) scan() {
	t.mu.Lock()
	t.hinted = true
	t.mu.Unlock()
	wait.Wake(t.Runs.Timers.Poke)
}

// due finds runs whose time has passed. It finds runs in memory at the exact time, and the
// engine's other runs by the store's scan. The same scan renews the lease, on purpose: an
// engine whose Supervisor hangs, or cannot reach the store, then loses its lease and its
// runs to an engine whose Supervisor works.
func (t *Membership) due(ctx context.Context) ([]machine.RunID, time.Duration, error) {
	runs, lag := t.Runs.Timers.Take(t.n.shared.Clock.Now())
	wait := time.Duration(-1)
	t.mu.Lock()
	since, spacing, hinted := time.Since(t.ticked), t.n.cfg.Options.MinScan, t.hinted
	if hinted {
		spacing = min(spacing, hintPause)
	}
	t.lag, t.busy = lag, hinted
	if since >= spacing {
		t.hinted = false
	} else if hinted {
		wait = spacing - since
	}
	t.mu.Unlock()
	var err error
	if since >= spacing {
		var tick store.Tick
		began := time.Now()
		tick, err = t.tick(ctx)
		switch {
		case err == nil, overFor(err):
			t.n.shared.Outage.Worked(outage.Tick, began)
		case ctx.Err() == nil:
			t.n.shared.Outage.Failed(outage.Tick, err)
		}
		if err == nil {
			found, late := t.see(tick, hinted)
			runs = append(runs, found...)
			t.mu.Lock()
			t.lag = max(t.lag, late)
			t.mu.Unlock()
		}
	}
	if next, ok := t.Runs.Timers.Next(); ok {
		if until := max(0, t.n.shared.Clock.Until(next)); wait < 0 || until < wait {
			wait = until
		}
	}
	return runs, wait, err
}

// see passes on the findings of a tick: messages go to their runs, runs of others go to
// the scanner. It returns the own runs that may be due, and for how long the most overdue
// of the runs outside of memory has been due.
func (t *Membership) see(tick store.Tick, hinted bool) ([]machine.RunID, time.Duration) {
	busy := len(tick.Inbox) == tickLimit // there may be more messages, which the next tick returns
	if hinted {
		t.n.shared.Backoffs.WakeResting()
	}
	for _, run := range tick.Inbox {
		if t.n.shared.Backoffs.IgnoresMessages(run, tick.Now) || t.Runs.Quarantined.Has(run) || t.Runs.Undecidable.Has(run, tick.Now) {
			continue
		}
		busy = true
		t.Runs.InboxChanged(run)
	}
	if t.n.shared.Claims() && t.scanner.see(tick, hinted) {
		busy = true
	}
	var lag time.Duration
	runs := make([]machine.RunID, 0, len(tick.Due))
	for _, d := range tick.Due {
		if t.Runs.Quarantined.Has(d.Run) {
			continue
		}
		runs = append(runs, d.Run)
		if !t.Runs.Timers.Has(d.Run) { // for a run with a timer the bound is no measure
			lag = max(lag, tick.Now.Sub(d.NextCheck))
		}
	}
	t.mu.Lock()
	t.busy = t.busy || busy
	t.mu.Unlock()
	return runs, lag
}

// isBusy reports whether the last pass found work on runs of others.
func (t *Membership) isBusy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy
}

// passed reports a pass over the own runs.
func (t *Membership) passed(told int, took time.Duration) {
	t.mu.Lock()
	stats := Pass{Took: took, Due: told, Lag: t.lag}
	t.mu.Unlock()
	t.n.cfg.Passed(stats)
}

// tick renews the lease and returns the store's findings. An engine that cannot commit
// does not renew its lease, so that other engines get its runs.
func (t *Membership) tick(ctx context.Context) (store.Tick, error) {
	o := t.n.cfg.Options
	if age := t.Committer.Oldest(); age > o.Lease/2 {
		if !t.n.shared.Clock.Leased() {
			t.end(store.ErrLapsed)
		}
		return store.Tick{}, fmt.Errorf("a commit has been waiting for %s: the lease is not renewed", age.Round(time.Millisecond))
	}
	if err := t.stuck(); err != nil {
		if !t.n.shared.Clock.Leased() {
			t.end(errors.Join(store.ErrLapsed, err))
		}
		return store.Tick{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Lease)
	defer cancel()
	sent := time.Now()
	tick, err := t.n.cfg.Store.Tick(ctx, t.Engine, o.Lease, tickLimit)
	if overFor(err) {
		t.end(err)
		return store.Tick{}, err
	}
	if err != nil {
		return store.Tick{}, fmt.Errorf("renew the lease: %w", err)
	}
	t.n.shared.Clock.Ticked(sent, tick.Now, o.Lease)
	t.mu.Lock()
	t.ticked = sent
	t.mu.Unlock()
	return tick, nil
}

// InheritFrom has the membership take over the runs that a former one of the same node
// owned, with the number of rows that are known to have landed of each.
func (t *Membership) InheritFrom(former store.EngineID, runs map[machine.RunID]int32) {
	t.former, t.inherited = former, runs
}

// overFor reports whether an error says that this membership is over.
func overFor(err error) bool { return owner.OverFor(err) }
