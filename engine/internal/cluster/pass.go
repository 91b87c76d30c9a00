package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Once makes one full scan of the runs that this engine does not own. It takes over runs that are
// due or have a message, if their owner is dead or they have no owner. It also takes over runs that
// are overdue by more than Options.grace, if their owner is alive. It returns the results of the
// scan.
func (t *Membership) Once(ctx context.Context) (Pass, error) {
	began := time.Now()
	stats := Pass{Foreign: true}
	tick, err := t.tick(ctx)
	if err != nil {
		return stats, fmt.Errorf("look for what is due: %w", err)
	}
	for _, d := range tick.Unowned {
		since := d.NextCheck
		// A high priority makes NextCheck of a new run earlier than the creation of the run. The
		// delay counts from the creation.
		if created := naming.TimeOfRun(d.Run); since.Before(created) {
			since = created
		}
		stats.Lag = max(stats.Lag, tick.Now.Sub(since))
	}
	var errs []error
	taken, err := t.taker.orphans(ctx, tick.Dead, takeoverScope{due: true, from: func(store.Head) bool { return true }})
	errs = append(errs, err)
	stats.Taken += taken
	taken, err = t.scanner.overdue(ctx)
	errs = append(errs, err)
	stats.Taken += taken
	// Every run that was taken over counts as due.
	stats.Due = stats.Taken
	errs = append(errs, t.Runs.Flush(ctx))
	stats.Took = time.Since(began)
	t.n.cfg.Passed(stats)
	return stats, errors.Join(errs...)
}

// TakeOver does the work of Node.TakeOver: it takes over the runs of dead engines and the
// runs without an owner. It returns how many runs it has taken over.
func (t *Membership) TakeOver(ctx context.Context) (int, error) {
	tick, err := t.tick(ctx)
	if err != nil {
		return 0, fmt.Errorf("take over: %w", err)
	}
	return t.taker.orphans(ctx, tick.Dead, takeoverScope{from: func(store.Head) bool { return true }})
}

// Adopt does the work of Node.Adopt: it takes over the given run.
func (t *Membership) Adopt(ctx context.Context, run status.RunID) error {
	return t.taker.adopt(ctx, run)
}
