package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A scanner takes over runs that this engine does not own: runs without an owner, runs of
// dead members, and overdue runs of live members. It uses the findings of ticks, and has a
// separate goroutine. Everything that it needs to know is in the store, so that the scanner
// of another engine can continue at any time (S46, S49).
type scanner struct {
	n  *Local
	by *taker
	// Former membership of this node; 0 = none. Its death starts no scan, because inheritance
	// takes its runs over.
	former store.EngineID
	soon   func() // makes the next tick come early
	hint   chan struct{}

	mu      sync.Mutex              // protects following fields
	tick    store.Tick              // the newest tick
	hinted  bool                    // there may be a message for a run whose owner is dead
	routine time.Time               // time of the next full scan, by this process's clock
	passed  map[store.EngineID]bool // dead members whose runs were scanned already
	working bool

	turns uint64 // number of calls of the method some; only the scanner's goroutine uses this field
}

// Names of scans. In each period, only one of all engines makes such a scan.
const (
	passForeign = "foreign" // scan for all runs that other engines or no engine own
	passOrphans = "orphans" // scan for runs of members that have just died
)

// tickLimit is the largest number of runs that one tick returns.
const tickLimit = 1000

func newScanner(by *taker, soon func()) *scanner {
	return &scanner{n: by.n, by: by, soon: soon, hint: make(chan struct{}, 1), passed: map[store.EngineID]bool{},
		routine: time.Now().Add(2 * by.n.cfg.Options.MaxScan)}
}

// see stores the findings of a tick, and reports whether they contain work.
func (p *scanner) see(tick store.Tick, hinted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick, p.hinted = tick, p.hinted || hinted && len(tick.Dead) > 0
	still := map[store.EngineID]bool{}
	for _, engine := range tick.Dead {
		still[engine] = p.passed[engine]
	}
	p.passed = still // forget members that the tick does not list any more
	work := len(p.unownedLocked()) > 0 || len(p.deadLocked()) > 0
	if work || p.hinted || !time.Now().Before(p.routine) {
		wait.Wake(p.hint)
	}
	return work || p.working
}

// unownedLocked returns the runs without an owner that this engine may claim.
func (p *scanner) unownedLocked() []status.RunID {
	runs := make([]status.RunID, 0, len(p.tick.Unowned))
	for _, d := range p.tick.Unowned {
		runs = append(runs, d.Run)
	}
	return p.by.withoutBackoff(runs)
}

// deadLocked returns the members that died since the last scan.
func (p *scanner) deadLocked() []store.EngineID {
	var dead []store.EngineID
	for _, engine := range p.tick.Dead {
		if !p.passed[engine] && engine != p.former {
			dead = append(dead, engine)
		}
	}
	return dead
}

const doingPatrol = "look after runs of others"

// run works on the findings of ticks until ctx ends.
func (p *scanner) run(ctx context.Context) {
	for {
		select {
		case <-p.hint:
		case <-ctx.Done():
			return
		}
		p.setWorking(true)
		err := p.round(ctx)
		p.setWorking(false)
		if err == nil {
			p.n.shared.Outage.Worked(doingPatrol, time.Time{})
		}
		if err != nil && ctx.Err() == nil && !overFor(err) {
			p.n.shared.Outage.Failed(doingPatrol, err)
			if wait.For(ctx, p.n.cfg.Options.MinScan) != nil {
				return
			}
		}
	}
}

func (p *scanner) setWorking(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working = is
}

// round makes the scans that are due now.
func (p *scanner) round(ctx context.Context) error {
	n := p.n
	began := time.Now()
	p.mu.Lock()
	unowned, dead, all, hinted, routine := p.unownedLocked(), p.deadLocked(), p.tick.Dead, p.hinted, !began.Before(p.routine)
	full := len(p.tick.Unowned) == tickLimit
	p.mu.Unlock()
	if !n.shared.Claims() {
		return nil
	}
	stats := Pass{}
	var errs []error
	note := func(taken int, err error) {
		stats.Taken += taken
		errs = append(errs, err)
	}
	foreign := routine
	if routine {
		p.next(len(unowned) > 0 || len(dead) > 0)
		may, err := n.cfg.Store.Pass(ctx, passForeign, n.cfg.Options.MaxScan)
		foreign = may
		errs = append(errs, err)
	}
	switch {
	case full && len(dead) == 0 && len(unowned) > 0:
		// With so many runs without an owner, the scan does not look for the few runs of
		// dead members that wait for a person. Finding them would cost more than all other
		// work. If such a run gets a message, the method addressed finds it.
		if hinted || foreign {
			note(p.addressed(ctx, all))
		}
		hinted = false
	case foreign && (len(all) > 0 || full && len(unowned) == 0):
		note(p.orphans(ctx, all, full && len(unowned) == 0))
	case len(dead) > 0 || hinted:
		period := n.cfg.Options.ClaimInterval
		if len(dead) == 0 {
			period = max(period, n.cfg.Options.MaxScan/10) // the store gives a hint for each message
		}
		may, err := n.cfg.Store.Pass(ctx, passOrphans, period)
		errs = append(errs, err)
		if may {
			foreign = true
			note(p.orphans(ctx, all, false))
		}
	}
	if hinted { // the method addressed also takes runs whose agents are missing here
		note(p.addressed(ctx, all))
	}
	note(p.claim(ctx, unowned))
	if routine && foreign {
		note(p.overdue(ctx))
	}
	if foreign || stats.Taken > 0 {
		stats.Took, stats.Foreign = time.Since(began), foreign
		n.cfg.Passed(stats)
	}
	if stats.Taken > 0 {
		p.soon() // there may be more runs
	}
	if p.by.looksAgain() {
		p.mu.Lock()
		p.hinted, p.passed = true, map[store.EngineID]bool{}
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// next sets the time of the next full scan: about two to three times MaxScan from now. If
// there is no work it is four to five times, so that an idle engine puts almost no load on
// the store.
func (p *scanner) next(work bool) {
	scans := 2
	if !work && p.by.runs.Size() == 0 {
		scans = 4
	}
	// Adds jitter. Without it one engine would make every scan, and a scan never finds the
	// stuck runs of the engine that makes it.
	scans += p.some(2)
	p.mu.Lock()
	defer p.mu.Unlock()
	// An idle engine ticks once in each MaxScan. The scan becomes due a quarter of MaxScan
	// before the tick that should make it. So this tick never comes slightly too early.
	p.routine = time.Now().Add(time.Duration(scans)*p.n.cfg.Options.MaxScan - p.n.cfg.Options.MaxScan/4)
}

// some returns a number from 0 to n-1 that differs between engines and between calls. It is
// not random, so that a simulation can be repeated.
func (p *scanner) some(n int) int {
	p.turns++
	h := (uint64(p.by.engine)<<32 | p.turns) * 0x9e3779b97f4a7c15
	return int((h >> 33) % uint64(n))
}

// orphans takes over the runs of dead members. If unowned is true, it also takes runs
// without an owner. Usually the method claim takes those, but it knows only the runs that a
// tick returns, and their number is limited. If this engine can work on none of them, claim
// never reaches the others.
func (p *scanner) orphans(ctx context.Context, dead []store.EngineID, unowned bool) (int, error) {
	p.mu.Lock()
	p.hinted = false
	p.mu.Unlock()
	taken, err := p.by.orphans(ctx, dead, takeoverScope{owned: !unowned, from: func(h store.Head) bool {
		return p.n.shared.Claims() && p.by.roomy() && (h.Owner != 0 || unowned && p.room())
	}})
	if err == nil {
		p.mu.Lock()
		for _, engine := range dead {
			p.passed[engine] = true
		}
		p.mu.Unlock()
	}
	return taken, err
}

// addressed takes over runs of dead members for which messages wait.
func (p *scanner) addressed(ctx context.Context, dead []store.EngineID) (int, error) {
	p.mu.Lock()
	p.hinted = false
	p.mu.Unlock()
	runs, err := p.n.find(ctx, store.RunFilter{Owners: store.OwnerDead, Waiting: true, Limit: p.n.cfg.Options.ClaimBatch})
	if err != nil {
		return 0, fmt.Errorf("find runs that are spoken to: %w", err)
	}
	now := p.n.shared.Clock.Now()
	runs = slices.DeleteFunc(runs, func(run status.RunID) bool { return p.n.shared.Backoffs.IgnoresMessages(run, now) })
	return p.by.take(ctx, runs, takeoverScope{from: func(h store.Head) bool { return h.Owner != 0 && slices.Contains(dead, h.Owner) }})
}

// room reports whether this engine should claim more runs. An engine whose runs already
// wait for agents leaves new runs to other engines.
func (p *scanner) room() bool {
	return p.n.shared.Claims() && p.by.roomy() && p.by.runs.Queue.Waiting() < p.n.cfg.Options.ClaimBatch
}

// claim takes runs without an owner, in batches (S55, S75). Each engine begins at a
// different run, so that engines do not compete for the same runs.
func (p *scanner) claim(ctx context.Context, runs []status.RunID) (int, error) {
	batch := p.n.cfg.Options.ClaimBatch
	if len(runs) > batch {
		at := p.some(len(runs)/batch) * batch
		runs = append(append([]status.RunID(nil), runs[at:]...), runs[:at]...)
	}
	taken := 0
	for len(runs) > 0 && p.room() {
		n := min(len(runs), batch, p.by.fits())
		got, err := p.by.take(ctx, runs[:n], takeoverScope{from: func(h store.Head) bool { return h.Owner == 0 }})
		taken += got
		if err != nil {
			return taken, err
		}
		runs = runs[n:]
	}
	return taken, nil
}

// overdue takes over runs of live engines that are long overdue. Notifying the owner
// instead would make a slow engine slower.
func (p *scanner) overdue(ctx context.Context) (int, error) {
	o, now := p.n.cfg.Options, p.n.shared.Clock.Now()
	grace := o.grace()
	// The first runs found may all be in the backoff set. So the limit is larger than a batch,
	// by the size of this set.
	runs, err := p.n.find(ctx, store.RunFilter{Owners: store.OwnerOther, Asking: p.by.engine, Overdue: grace, Limit: o.ClaimBatch + p.n.shared.Backoffs.Size()})
	if err != nil {
		return 0, err
	}
	runs = p.n.shared.Backoffs.NewFirst(p.by.withoutBackoff(runs))
	return p.by.take(ctx, runs[:min(len(runs), o.ClaimBatch)], takeoverScope{passed: true, from: func(h store.Head) bool {
		return h.Owner != 0 && h.NextCheck.Before(now.Add(-grace)) && !p.n.shared.Draining.Load() && p.by.roomy()
	}})
}
