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
	"github.com/saga-engine/engine/engine/store/naming"
)

// A scanner takes over runs that this engine does not own: runs without an owner, runs of dead
// engines, and overdue runs of live engines. It begins with the lists of runs that a tick has
// returned. A scanner has its own goroutine. Everything that it must know is in the store, so that
// the scanner of another engine can continue the work at any time (S46, S49).
type scanner struct {
	n  *Local
	by *taker
	// former is the number of this node's former membership; 0 = none. When that membership has
	// ended, no scan is needed for its runs, because an `inheritance` takes over these runs.
	former store.EngineID
	soon   func()        // makes the next tick come early
	hint   chan struct{} // channel of capacity 1; it receives a value when a scan may be due

	mu      sync.Mutex              // protects the fields below
	tick    store.Tick              // the newest tick
	hinted  bool                    // there may be a message for a run whose owner is dead
	routine time.Time               // time of the next full scan, by this process's clock
	passed  map[store.EngineID]bool // dead engines whose runs were scanned already
	working bool                    // the scanner's goroutine is making scans now

	turns uint64 // number of times that scanner.some was called; only the scanner's goroutine uses this field
}

// Names of scans. For each name, only one engine of the store makes the scan in each period.
const (
	passForeign = "foreign" // scan for all runs that other engines own or that have no owner
	passOrphans = "orphans" // scan for runs of engines that have just died
)

// tickLimit is the largest number of runs in each list that one tick returns.
const tickLimit = 1000

func newScanner(by *taker, soon func()) *scanner {
	return &scanner{n: by.n, by: by, soon: soon, hint: make(chan struct{}, 1), passed: map[store.EngineID]bool{},
		routine: time.Now().Add(2 * by.n.cfg.Options.MaxScan)}
}

// see remembers the findings of a tick, and wakes the scanner's goroutine if a scan is due. It
// returns true if the findings contain work, or if the goroutine is already working. The parameter
// `hinted` is true if the tick came early, because of a hint of the store or because the scanner
// has taken over runs.
func (p *scanner) see(tick store.Tick, hinted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick, p.hinted = tick, p.hinted || hinted && len(tick.Dead) > 0
	still := map[store.EngineID]bool{}
	for _, engine := range tick.Dead {
		still[engine] = p.passed[engine]
	}
	p.passed = still // forget engines that the tick does not list any more
	work := len(p.unownedLocked()) > 0 || len(p.deadLocked()) > 0
	if work || p.hinted || !time.Now().Before(p.routine) {
		wait.Wake(p.hint)
	}
	return work || p.working
}

// queueAge returns the longest time for which a run without an owner has been due, according to the
// newest tick; 0 = none is due (S65).
func (p *scanner) queueAge() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var age time.Duration
	for _, d := range p.tick.Unowned {
		since := d.NextCheck
		if accepted := naming.TimeOfRun(d.Run); since.Before(accepted) { // a high priority makes NextCheck earlier than the creation of the run
			since = accepted
		}
		age = max(age, p.tick.Now.Sub(since))
	}
	return age
}

// unownedLocked returns the runs without an owner that the newest tick has found. It leaves
// out runs that are in the backoff set.
func (p *scanner) unownedLocked() []status.RunID {
	runs := make([]status.RunID, 0, len(p.tick.Unowned))
	for _, d := range p.tick.Unowned {
		runs = append(runs, d.Run)
	}
	return p.by.withoutBackoff(runs)
}

// deadLocked returns the dead engines whose runs were not scanned yet. It leaves out the
// former membership of this node.
func (p *scanner) deadLocked() []store.EngineID {
	var dead []store.EngineID
	for _, engine := range p.tick.Dead {
		if !p.passed[engine] && engine != p.former {
			dead = append(dead, engine)
		}
	}
	return dead
}

const doingScan = "scan the runs of other engines"

// run makes the scans that are due after a tick, until ctx ends. After a scan that failed, it
// pauses for MinScan. Then a later tick starts the scans that are due.
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
			p.n.shared.Outage.Worked(doingScan, time.Time{})
		}
		if err != nil && ctx.Err() == nil && !overFor(err) {
			p.n.shared.Outage.Failed(doingScan, err)
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
		// A tick does not return all runs without an owner, because there are too many. The
		// runs of all dead engines were scanned before, so the runs that dead engines still
		// own wait for a person. A search for all these runs would cost more than all other
		// work. So the method `addressed` takes over only the runs that have a message.
		if hinted || foreign {
			note(p.addressed(ctx, all))
		}
		hinted = false
	case foreign && (len(all) > 0 || full && len(unowned) == 0):
		note(p.orphans(ctx, all, full && len(unowned) == 0))
	case len(dead) > 0 || hinted:
		period := n.cfg.Options.ClaimInterval
		if len(dead) == 0 {
			// Hints may be frequent, because the store gives one for each message.
			period = max(period, n.cfg.Options.MaxScan/10)
		}
		may, err := n.cfg.Store.Pass(ctx, passOrphans, period)
		errs = append(errs, err)
		if may {
			foreign = true
			note(p.orphans(ctx, all, false))
		}
	}
	if hinted { // unlike the method `orphans`, the method `addressed` also considers runs whose agents are missing here
		note(p.addressed(ctx, all))
	}
	note(p.claim(ctx, unowned))
	if routine && foreign {
		note(p.overdue(ctx))
		p.wakeAnnouncer()
	}
	if foreign || stats.Taken > 0 {
		stats.Took, stats.Foreign = time.Since(began), foreign
		n.cfg.Passed(stats)
	}
	if stats.Taken > 0 {
		p.soon() // there may be more runs
	}
	if p.by.scansAgain() {
		p.mu.Lock()
		p.hinted, p.passed = true, map[store.EngineID]bool{}
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// wakeAnnouncer wakes the goroutine that announces states of runs. This is needed because an engine
// may have ended before it announced a state. If the newest tick says that no state waits to be
// announced, wakeAnnouncer does nothing.
func (p *scanner) wakeAnnouncer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tick.Searched || p.tick.Notices {
		wait.Wake(p.n.shared.Notices)
	}
}

// next sets the time of the next full scan. The pause until the scan is a whole number of times
// MaxScan, minus a quarter of MaxScan. Usually this number is two or three. If the parameter `work`
// is false and no run is in memory, the number is four or five, so that an idle engine puts almost
// no load on the store.
func (p *scanner) next(work bool) {
	scans := 2
	if !work && p.by.runs.Size() == 0 {
		scans = 4
	}
	// The method `some` makes the pause differ between engines, so that the scan is not always
	// made by the same engine. A scan leaves out the runs of the engine that makes the scan. So
	// if one engine always made it, no scan would find the stuck runs of that engine.
	scans += p.some(2)
	p.mu.Lock()
	defer p.mu.Unlock()
	// An idle engine ticks once in each MaxScan, and a scan that is due starts only at a tick.
	// So the scan becomes due a quarter of MaxScan before a tick. If the scan became due
	// exactly at the time of the tick, and the tick came slightly too early, the tick would not
	// start the scan.
	p.routine = time.Now().Add(time.Duration(scans)*p.n.cfg.Options.MaxScan - p.n.cfg.Options.MaxScan/4)
}

// some returns a number from 0 to n-1 that differs between engines and between calls. It is
// not random, so that a simulation can be repeated.
func (p *scanner) some(n int) int {
	p.turns++
	h := (uint64(p.by.engine)<<32 | p.turns) * 0x9e3779b97f4a7c15
	return int((h >> 33) % uint64(n))
}

// orphans takes over the runs of dead engines, and returns how many it got. If the parameter
// `unowned` is true, it also takes runs without an owner. Usually this is the task of the method
// `claim`. But claim sees only the runs that a tick returns, and a tick returns a limited number of
// runs. If this engine can work on none of these runs, claim never sees any other run.
func (p *scanner) orphans(ctx context.Context, dead []store.EngineID, unowned bool) (int, error) {
	p.mu.Lock()
	p.hinted = false
	p.mu.Unlock()
	taken, err := p.by.orphans(ctx, dead, takeoverScope{owned: !unowned, from: func(h store.Head) bool {
		return p.n.shared.Claims() && p.by.hasMemory() && (h.Owner != 0 || unowned && p.mayClaim())
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

// addressed takes over runs of dead engines for which messages wait. It returns how many it
// got.
func (p *scanner) addressed(ctx context.Context, dead []store.EngineID) (int, error) {
	p.mu.Lock()
	p.hinted = false
	p.mu.Unlock()
	runs, err := p.n.find(ctx, store.RunFilter{Owners: store.OwnerDead, Waiting: true, Limit: p.n.cfg.Options.ClaimBatch})
	if err != nil {
		return 0, fmt.Errorf("find runs that have messages: %w", err)
	}
	now := p.n.shared.Clock.Now()
	runs = slices.DeleteFunc(runs, func(run status.RunID) bool { return p.n.shared.Backoffs.IgnoresMessages(run, now) })
	return p.by.take(ctx, runs, takeoverScope{from: func(h store.Head) bool { return h.Owner != 0 && slices.Contains(dead, h.Owner) }})
}

// mayClaim reports whether this engine should claim more runs. For example, it returns false if
// many runs of this engine already wait for slots of agents. Then other engines can claim the runs
// that have no owner.
func (p *scanner) mayClaim() bool {
	return p.n.shared.Claims() && p.by.hasMemory() && p.by.runs.Queue.Waiting() < p.n.cfg.Options.ClaimBatch
}

// claim takes runs without an owner, in batches, and returns how many it got (S55, S75). If there
// are at least two full batches, engines usually begin at different batches, so that they do not
// compete for the same runs.
func (p *scanner) claim(ctx context.Context, runs []status.RunID) (int, error) {
	batch := p.n.cfg.Options.ClaimBatch
	if len(runs) > batch {
		at := p.some(len(runs)/batch) * batch
		runs = append(append([]status.RunID(nil), runs[at:]...), runs[:at]...)
	}
	taken := 0
	for len(runs) > 0 && p.mayClaim() {
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

// overdue takes over runs that are overdue by more than Options.grace although their owner is
// alive. It returns how many it got. It does not notify the owner, because a message would make a
// slow owner even slower.
func (p *scanner) overdue(ctx context.Context) (int, error) {
	o, now := p.n.cfg.Options, p.n.shared.Clock.Now()
	grace := o.grace()
	// All of the first runs that the store returns may be in the backoff set. So the limit is
	// the size of a batch plus the size of this set.
	runs, err := p.n.find(ctx, store.RunFilter{Owners: store.OwnerOther, Asking: p.by.engine, Overdue: grace, Limit: o.ClaimBatch + p.n.shared.Backoffs.Size()})
	if err != nil {
		return 0, err
	}
	runs = p.n.shared.Backoffs.NewFirst(p.by.withoutBackoff(runs))
	return p.by.take(ctx, runs[:min(len(runs), o.ClaimBatch)], takeoverScope{passed: true, from: func(h store.Head) bool {
		return h.Owner != 0 && h.NextCheck.Before(now.Add(-grace)) && !p.n.shared.Draining.Load() && p.by.hasMemory()
	}})
}
