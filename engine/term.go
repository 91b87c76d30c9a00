package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// errDrained is why an incarnation ended in order.
var errDrained = errors.New("engine: drained")

// A term is one incarnation of a node: from joining the store under a new
// number until it leaves, or is declared dead.
type term struct {
	n         *Node
	engine    EngineID
	scheduler *scheduler
	writers   []Writer
	ctx       context.Context // ends with the incarnation; only its Done and cause are used
	end       context.CancelCauseFunc

	former    EngineID        // the incarnation before this one; 0 = none
	inherited []machine.RunID // what the former one owned

	mu     sync.Mutex // protects following fields
	ticked time.Time  // when the last tick was sent
	dead   []EngineID // dead members as the last tick saw them
}

// join registers a new incarnation and learns the store's time.
func (n *Node) join(ctx context.Context) (*term, error) {
	o := n.cfg.Options
	sent := time.Now()
	engine, err := n.cfg.Store.Join(ctx, o.Address, o.Lease, o.Writers)
	if err != nil {
		return nil, err
	}
	t := &term{n: n, engine: engine}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	t.scheduler = newScheduler(n, engine, t.ctx.Done())
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
	t.scheduler.committer = newCommitter(t.writers, o, n.cfg.Logger)
	tick, err := n.cfg.Store.Tick(ctx, engine, o.Lease, tickLimit)
	if err != nil {
		return nil, fmt.Errorf("first tick: %w", err)
	}
	n.clock.ticked(sent, tick.Now, o.Lease)
	t.ticked, t.dead = sent, tick.Dead
	ok = true
	return t, nil
}

func (t *term) closeWriters() {
	for _, w := range t.writers {
		if err := w.Close(); err != nil {
			t.n.cfg.Logger.Debug("close a writer", "error", err)
		}
	}
}

// run works until ctx ends and everything in flight has come to rest, or hard
// ends, or the incarnation is over, and returns which.
func (t *term) run(ctx, hard context.Context) error {
	defer context.AfterFunc(hard, func() { t.end(ErrStopping) })()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()

	var wg, shards sync.WaitGroup
	for i := range t.writers {
		wg.Go(func() { t.over(t.scheduler.committer.run(work, i)) })
	}
	last := make(chan struct{}) // closed when the writers have said their last word
	for _, sh := range t.scheduler.shards {
		shards.Go(func() { sh.loop(work, last) })
	}
	supervisor := NewSupervisor(t.due, t.scheduler.timePassed, SupervisorOptions{
		MinScan: t.n.cfg.Options.MinScan, MaxScan: t.n.cfg.Options.MaxScan,
		Poke: t.scheduler.agenda.poke, Logger: t.n.cfg.Logger,
	})
	wg.Go(func() { t.over(supervisor.Run(work)) })
	wg.Go(func() { t.inherit(work) })

	select {
	case <-ctx.Done():
		t.drain(work)
	case <-t.ctx.Done():
	}
	wg.Wait()
	close(last)
	shards.Wait()
	t.closeWriters()
	return context.Cause(t.ctx)
}

// over ends the incarnation if one of its loops has ended by itself.
func (t *term) over(err error) { t.end(err) }

// drain ends the incarnation in order: nothing more is started, calls in
// flight are waited for, and what they brought is committed.
func (t *term) drain(ctx context.Context) {
	t.n.draining.Store(true)
	err := t.scheduler.flush(ctx)
	if err == nil {
		if err := t.n.worker.wait(ctx, t.n.cfg.Options.Grace); err != nil && ctx.Err() == nil {
			t.n.cfg.Logger.Warn("stopping", "error", err)
		}
		err = t.scheduler.flush(ctx)
	}
	if err == nil {
		t.end(errDrained)
	}
	<-t.ctx.Done() // where the flush failed the incarnation is over anyhow
}

// tickLimit bounds the runs that one tick returns.
const tickLimit = 1000

// due finds runs whose time has passed: at the exact time those in memory, and
// by the store's scan whatever else this engine owns. The scan renews the
// lease. That is on purpose: an engine whose Supervisor stands still, or
// cannot reach the store, loses its lease and with it its runs, to one whose
// Supervisor works.
func (t *term) due(ctx context.Context) ([]machine.RunID, time.Duration, error) {
	runs := t.scheduler.agenda.take(t.n.clock.now())
	var err error
	if time.Since(t.lastTick()) >= t.n.cfg.Options.MinScan {
		var found []machine.RunID
		found, err = t.tick(ctx)
		runs = append(runs, found...)
	}
	wait := time.Duration(-1)
	if next, ok := t.scheduler.agenda.next(); ok {
		wait = max(0, t.n.clock.until(next))
	}
	return runs, wait, err
}

func (t *term) lastTick() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ticked
}

// tick renews the lease and returns the own runs that the store finds due. An
// engine that cannot commit does not renew: it must lose its lease.
func (t *term) tick(ctx context.Context) ([]machine.RunID, error) {
	o := t.n.cfg.Options
	if age := t.scheduler.committer.oldest(); age > o.Lease/2 {
		if !t.n.clock.leased() {
			t.end(ErrLapsed)
		}
		return nil, fmt.Errorf("a commit has been waiting for %s: the lease is not renewed", age.Round(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, o.Lease)
	defer cancel()
	sent := time.Now()
	tick, err := t.n.cfg.Store.Tick(ctx, t.engine, o.Lease, tickLimit)
	if errors.Is(err, ErrLapsed) || errors.Is(err, ErrFenced) {
		t.end(err)
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("tick: %w", err)
	}
	t.n.clock.ticked(sent, tick.Now, o.Lease)
	t.mu.Lock()
	t.ticked, t.dead = sent, tick.Dead
	t.mu.Unlock()
	runs := make([]machine.RunID, 0, len(tick.Due))
	for _, d := range tick.Due {
		runs = append(runs, d.Run)
	}
	return runs, nil
}

// inherit takes over what the former incarnation of this node owned.
func (t *term) inherit(ctx context.Context) {
	if len(t.inherited) == 0 || t.n.draining.Load() {
		return
	}
	pause := 20 * time.Millisecond
	for {
		dead, err := t.n.cfg.Store.Fence(ctx, t.former)
		if err == nil && dead {
			break
		}
		if err != nil {
			t.n.cfg.Logger.Warn("fence the former incarnation", "engine", t.former, "error", err)
		}
		if sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, t.n.cfg.Options.RetryStore)
	}
	for _, run := range t.inherited {
		err := t.scheduler.adopt(ctx, run, func(owner EngineID) bool { return owner == t.former })
		if err != nil && !errors.Is(err, ErrNotOwner) && ctx.Err() == nil {
			t.n.cfg.Logger.Warn("take over from the former incarnation", "run", RunName(run), "error", err)
		}
	}
}
