package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// Join registers this node in the store under a new number, takes the lease, and returns the
// Membership. It starts no goroutine: the method Run does.
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
	var tick store.Tick
	renew := func() error {
		sent = time.Now()
		if tick, err = n.cfg.Store.Tick(ctx, engine, o.Lease, tickLimit); err != nil {
			return fmt.Errorf("take the lease: %w", err)
		}
		return nil
	}
	for i := range o.Writers {
		w, err := n.cfg.Store.OpenWriter(ctx, engine, i)
		if err != nil {
			return nil, fmt.Errorf("open writer %d: %w", i, err)
		}
		t.writers = append(t.writers, w)
		if time.Since(sent) > o.Lease/4 { // opening writers takes long: renew the lease in time
			if err := renew(); err != nil {
				return nil, err
			}
		}
	}
	t.Committer = commit.New(t.writers, commit.Options{MaxRows: o.MaxBatchRows, MaxBytes: o.MaxBatchBytes, RetryStore: o.RetryStore}, n.shared.Outage)
	t.Runs = owner.New(n.shared, owner.Membership{
		Engine: engine, Context: t.ctx, Committer: t.Committer,
		Unable: func(ctx context.Context, run status.RunID) { t.taker.unable(ctx, run) },
	})
	t.taker = &taker{
		n: n, engine: engine, runs: t.Runs, ctx: t.ctx,
		unstaffed: &unstaffed{n: n, engine: engine, runs: t.Runs, ctx: t.ctx},
	}
	t.former = &inheritance{by: t.taker}
	if err := renew(); err != nil {
		return nil, err
	}
	n.shared.Clock.Ticked(sent, tick.Now, o.Lease)
	t.ticked = sent
	t.scanner = newScanner(t.taker, t.scan)
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

// Run works until the membership is over, and returns the reason for the end. After ctx has ended,
// Run waits for the work in flight and then ends the membership. After the context `hard` has
// ended, Run ends the membership at once.
func (t *Membership) Run(ctx, hard context.Context) error {
	defer context.AfterFunc(hard, func() { t.end(owner.ErrStopping) })()
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
		Poke: t.Runs.Timers.Poke, Busy: t.isBusy, Passed: t.passed, // no Logger: t.due logs failed scans
	})
	wg.Go(func() { t.over(supervisor.Run(work)) })
	wg.Go(func() {
		if err := t.former.takeOver(work); err != nil {
			t.over(err)
		}
	})
	if t.n.shared.Claims() {
		wg.Go(func() { t.scanner.run(work) })
	}
	wg.Go(func() { t.listen(work) })
	wg.Go(func() { t.over(t.Runs.Hands.Run(work)) })
	wg.Go(func() { t.n.retain(work) })
	wg.Go(func() { t.n.cfg.Announce(work, t.Runs, t.Committer) })
	if t.Runs.Limits != nil {
		wg.Go(func() {
			if err := t.Runs.Limits.Run(work); err != nil {
				t.over(err)
			}
		})
	}

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

// over ends the membership with err as the reason. It is called when a loop of the
// membership has returned err.
func (t *Membership) over(err error) { t.end(err) }

// drain ends the membership in order. It makes the engine start no further call, waits for
// the calls in flight, and waits until their answers are committed.
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
		if t.Runs.Limits != nil {
			t.Runs.Limits.GiveBack(ctx)
		}
		t.end(ErrDrained)
	}
	<-t.ctx.Done() // if Flush returned an error, the membership is over, too
}

// InheritFrom makes the membership take over the runs that a former membership of the same node
// owned. The map `runs` holds, for each run, the number of the run's rows that are known to be
// committed. The caller must call InheritFrom before Run.
func (t *Membership) InheritFrom(former store.EngineID, runs map[status.RunID]int32) {
	t.former.from, t.former.runs, t.scanner.former = former, runs, former
}

// handBack releases the runs that have no call of an agent in flight and that another engine could
// continue now. Without handBack these runs would wait while this engine waits for its calls in
// flight, which may take long. The other runs become free when the engine leaves.
//
// If no other engine is alive, handBack releases no run, because no engine would notice when a
// released run is due.
func (t *Membership) handBack(ctx context.Context) {
	live, err := t.n.cfg.Store.Live(ctx)
	if err != nil {
		t.n.cfg.Logger.Debug("look for other engines to hand runs back to", "error", err)
		return
	}
	if !slices.ContainsFunc(live, func(m store.Member) bool { return m.Engine != t.Engine }) {
		return
	}
	t.Runs.HandBack()
}
