package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// Pass is what one pass of the Supervisor found and cost. See engine.PassStats.
type Pass struct {
	Took    time.Duration // of the scan and of its deliveries
	Due     int           // own runs that got TimePassed
	Lag     time.Duration // for how long the most overdue run had been due; 0 = no run was due
	Foreign bool          // the pass looked at runs of others, too
	Taken   int           // runs taken over or claimed
}

// Once makes one full pass over the runs of others.
func (t *Membership) Once(ctx context.Context) (Pass, error) {
	began := time.Now()
	stats := Pass{Foreign: true}
	tick, err := t.tick(ctx)
	if err != nil {
		return stats, fmt.Errorf("look for what is due: %w", err)
	}
	for _, d := range tick.Unowned {
		stats.Lag = max(stats.Lag, tick.Now.Sub(d.NextCheck))
	}
	var errs []error
	taken, err := t.orphans(ctx, tick.Dead, takeoverScope{due: true, from: func(store.Head) bool { return true }})
	errs = append(errs, err)
	stats.Taken += taken
	taken, err = t.scanner.overdue(ctx)
	errs = append(errs, err)
	stats.Taken += taken
	// Every run that was taken over got TimePassed at once.
	stats.Due = stats.Taken
	errs = append(errs, t.Runs.Flush(ctx))
	stats.Took = time.Since(began)
	t.n.cfg.Passed(stats)
	return stats, errors.Join(errs...)
}
