package cluster

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
)

// These are the names of the scans that remove runs that ended long ago. An engine whose
// Options.Retention is 0 removes only the runs of workflows that have their own retention, and
// scans more rarely than other engines. So it uses the second name. If it used the first name, its
// rare scan would count as the scan of all engines, and delay the scans of the other engines.
const (
	passRetention    = "retention"
	passOwnRetention = "retention of workflows"
)

// retainBatch is the largest number of runs that one call of Retain examines.
const retainBatch = 500

// retentionPeriod returns the time between two scans that remove old runs. The engine makes these
// scans even if Options.Retention is 0, because a workflow may have its own retention.
func (o Options) retentionPeriod() time.Duration {
	if o.Retention == 0 {
		return max(o.MaxScan, time.Hour)
	}
	return max(o.MaxScan, min(o.Retention/16, time.Hour))
}

// retain removes old runs until ctx ends. A run is old if it ended longer ago than the retention of
// its workflow, or longer ago than Options.Retention if the workflow has none. In each period only
// one engine of the store removes runs for each of the names passRetention and passOwnRetention. If
// that engine dies, or the store does not answer, another engine removes the remaining runs in a
// later period (S22). retain does nothing if the store cannot remove runs.
func (n *Local) retain(ctx context.Context) {
	st, ok := n.cfg.Store.Store.(store.Retainer)
	if !ok {
		return
	}
	log, period, pass := n.cfg.Logger, n.cfg.Options.retentionPeriod(), passRetention
	if n.cfg.Options.Retention == 0 {
		pass = passOwnRetention
	}
	for {
		may, err := n.cfg.Store.Pass(ctx, pass, period)
		if err == nil && may && !n.shared.Draining.Load() {
			began := time.Now()
			var stats store.RetainStats
			stats, err = n.forget(ctx, st, period)
			if stats.Runs > 0 || stats.Partitions > 0 {
				log.Info("runs that ended long ago were removed", "age", n.cfg.Options.Retention, "runs", stats.Runs,
					"rows", stats.Rows, "partitions", stats.Partitions, "held", stats.Kept, "took", time.Since(began).Round(time.Millisecond))
			}
			n.cfg.Retained(stats)
		}
		if err != nil && ctx.Err() == nil {
			n.shared.Outage.Beside("remove runs that ended long ago", err)
		}
		if wait.For(ctx, period) != nil {
			return
		}
	}
}

// forget removes old runs in batches, and returns how much it removed. After each batch it pauses
// for as long as the batch took. It works at most for the duration in the parameter `period`: after
// that time another engine may begin to remove runs.
func (n *Local) forget(ctx context.Context, store store.Retainer, period time.Duration) (sum store.RetainStats, err error) {
	began, before := time.Now(), time.Time{}
	if keep := n.cfg.Options.Retention; keep > 0 {
		before = n.shared.Clock.Now().Add(-keep)
	}
	for {
		sent := time.Now()
		s, err := store.Retain(ctx, before, retainBatch)
		sum.Runs, sum.Rows, sum.Partitions, sum.Kept = sum.Runs+s.Runs, sum.Rows+s.Rows, sum.Partitions+s.Partitions, sum.Kept+s.Kept
		sum.More = s.More
		if err != nil || !s.More || time.Since(began) > period || n.shared.Draining.Load() {
			return sum, err
		}
		if err := wait.For(ctx, time.Since(sent)); err != nil {
			return sum, err
		}
	}
}
