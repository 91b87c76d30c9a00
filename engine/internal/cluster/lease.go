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
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// ErrDrained says that a membership ended in order, after its work in flight was done.
var ErrDrained = errors.New("engine: drained")

// A Membership is the time of a node in the store. It begins when the node joins under a
// new number, and ends when the node leaves or is declared dead.
type Membership struct {
	n         *Local
	Engine    store.EngineID
	Runs      *owner.Scheduler
	Committer *commit.Committer
	writers   []store.Writer
	ctx       context.Context         // ends with the membership; used only to notice the end and its reason
	end       context.CancelCauseFunc // ends the membership with a reason

	taker   *taker
	former  *inheritance
	scanner *scanner

	mu     sync.Mutex    // protects the fields below
	ticked time.Time     // time at which the last tick was sent
	hinted bool          // work may be waiting, so the next tick comes early
	lag    time.Duration // largest delay of the runs that the last call of the method `due` has found
	// busy is true if the last call of the method `due` found the field `hinted` set. It is also
	// true if the tick of this call found work in addition to due runs of this engine: for example
	// messages, or runs of other engines that this engine may take over.
	busy bool
}

// hintPause is the shortest pause between two ticks that follow hints.
const hintPause = 20 * time.Millisecond

// listen receives hints from the store until ctx ends. A hint says that work may be waiting,
// so listen makes the next tick come early. If a hint is lost, the next regular tick finds the
// work. listen returns at once if the store gives no hints.
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
		t.n.cfg.Hinted()
		t.scan()
	}
}

// scan makes the next tick come early.
func (t *Membership) scan() {
	t.mu.Lock()
	t.hinted = true
	t.mu.Unlock()
	wait.Wake(t.Runs.Timers.Poke)
}

// due implements DueFunc for the runs of this engine. Runs in memory have timers, so due finds
// them at the exact time. It finds the engine's other runs with a tick, which asks the store. A
// tick also renews the lease. So an engine whose Supervisor hangs, or cannot reach the store,
// loses its lease. Then an engine whose Supervisor works takes over the runs.
func (t *Membership) due(ctx context.Context) ([]status.RunID, time.Duration, error) {
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

// QueueAge returns the longest time for which a run without an owner has been due; 0 = none is due.
func (t *Membership) QueueAge() time.Duration { return t.scanner.queueAge() }

// see handles the findings of a tick. It notifies the runs for which messages wait, and passes the
// tick to the scanner, which looks for runs of other engines. The first result lists the runs of
// this engine that may be due. The second result is the largest delay of these runs, without the
// runs that have a timer; 0 = no run is late. The parameter `hinted` is true if the tick came
// early, because of a hint of the store or because the scanner has taken over runs.
func (t *Membership) see(tick store.Tick, hinted bool) ([]status.RunID, time.Duration) {
	busy := len(tick.Inbox) == tickLimit // there may be more messages, which the next tick returns
	if hinted {
		t.n.shared.Backoffs.WakeResting()
	}
	if tick.Searched {
		t.n.cfg.Searched(tick.Starts)
	}
	for _, run := range tick.Inbox {
		if t.n.shared.Backoffs.IgnoresMessages(run, tick.Now) || t.Runs.Quarantined.Has(run) || t.Runs.Undecidable.Has(run, tick.Now) {
			continue
		}
		busy = true
		t.Runs.InboxChanged(run)
	}
	for _, run := range tick.Next {
		busy = true
		failpoint.Hit("key.next")
		t.Runs.Next(run)
	}
	for _, b := range tick.Beaten {
		busy = true
		failpoint.Hit("key.beaten")
		t.Runs.Beaten(b)
	}
	if t.n.shared.Claims() && t.scanner.see(tick, hinted) {
		busy = true
	}
	var lag time.Duration
	runs := make([]status.RunID, 0, len(tick.Due))
	for _, d := range tick.Due {
		if t.Runs.Quarantined.Has(d.Run) {
			continue
		}
		runs = append(runs, d.Run)
		if !t.Runs.Timers.Has(d.Run) { // a timer is more exact than the run's next_check
			lag = max(lag, tick.Now.Sub(d.NextCheck))
		}
	}
	t.mu.Lock()
	t.busy = t.busy || busy
	t.mu.Unlock()
	return runs, lag
}

// isBusy reports whether there may be work in addition to the due runs of this engine. See the
// field `busy`.
func (t *Membership) isBusy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy
}

// passed reports a scan of the engine's own runs to the function Config.Passed. The parameter
// `due` is the number of runs that got the event TimePassed. The parameter `took` is the duration
// of the scan.
func (t *Membership) passed(due int, took time.Duration) {
	t.mu.Lock()
	stats := Pass{Took: took, Due: due, Lag: t.lag}
	t.mu.Unlock()
	t.n.cfg.Passed(stats)
}

// tick renews the lease and returns the store's findings. If commits or a shard of this engine
// hang, tick does not renew the lease, and returns an error. Then other engines take over the runs
// as soon as the lease has ended. If the lease has already ended, tick also ends the membership. It
// also ends the membership if the store says that this engine was declared dead, that its lease has
// ended, or that committed rows are lost.
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

// stuck returns an error if a shard has been busy with one task for longer than a lease. In
// this time the deadlines, verbs and answers of the shard's runs wait. If the engine renewed
// its lease anyway, no other engine could take these runs over.
func (t *Membership) stuck() error {
	age, run := t.Runs.Longest()
	if age > t.n.cfg.Options.Lease {
		what := "one task"
		if run != 0 {
			what = "run " + naming.RunName(run)
		}
		return fmt.Errorf("%s has kept its shard busy for %s: the lease is not renewed, so that other engines can continue the runs of this engine", what, age.Round(time.Millisecond))
	}
	return nil
}
