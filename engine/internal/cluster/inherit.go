package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// An inheritance takes over the runs that the former membership of this node owned.
type inheritance struct {
	by   *taker
	from store.EngineID         // number of the former membership; 0 = none
	runs map[status.RunID]int32 // for each run, the number of the run's rows that are known to be committed
}

// takeOver takes over the runs of the former membership of this node. If the store has lost
// committed rows of a run, takeOver returns a *LossError. While the store does not answer, takeOver
// tries again. If ctx ends before the takeover is complete, takeOver returns nil. It does nothing
// if the engine is stopping.
func (t *inheritance) takeOver(ctx context.Context) error {
	n := t.by.n
	if len(t.runs) == 0 || n.shared.Draining.Load() {
		return nil
	}
	runs := slices.Sorted(maps.Keys(t.runs))
	how := takeoverScope{from: func(h store.Head) bool { return h.Owner == t.from }}
	pause, fenced := 20*time.Millisecond, false
	for len(runs) > 0 {
		err := error(nil)
		if !fenced {
			fenced, err = n.cfg.Store.Fence(ctx, t.from)
		}
		if fenced && err == nil {
			batch := runs[:min(len(runs), n.cfg.Options.ClaimBatch)]
			if err = t.lost(ctx, batch); err == nil {
				_, err = t.by.take(ctx, batch, how)
			}
			if err == nil {
				runs, pause = runs[len(batch):], 20*time.Millisecond
				continue
			}
		}
		var loss *store.LossError
		switch {
		case errors.As(err, &loss):
			return err
		case ctx.Err() != nil:
			return nil
		case err != nil:
			n.shared.Outage.Failed(outage.Inherit, err, "engine", t.from)
		default:
			n.shared.Outage.Worked(outage.Inherit, time.Time{})
		}
		if wait.For(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, n.cfg.Options.RetryStore)
	}
	return nil
}

// lost compares the given runs with the store. It returns a *LossError if the store has
// fewer rows of a run than were committed. It ignores runs that retention has removed.
func (t *inheritance) lost(ctx context.Context, runs []status.RunID) error {
	loaded, err := snapshots.Load(ctx, t.by.n.cfg.Store, runs...)
	if err != nil {
		return fmt.Errorf("compare runs with the store: %w", err)
	}
	rows := map[status.RunID]int{}
	for _, l := range loaded {
		if n := len(l.Rows); n > 0 {
			rows[l.Head.Run] = int(l.Rows[n-1].Seq) + 1
		}
	}
	for _, run := range runs {
		if have, known := rows[run], int(t.runs[run]); have < known {
			if have == 0 {
				removed, err := t.by.n.removed(ctx, run)
				if err != nil {
					return err
				}
				if removed { // other engines continued the run; it ended and retention removed it
					continue
				}
			}
			return &store.LossError{Run: int64(run), Known: fmt.Sprintf("%d rows", known), Switch: fmt.Sprintf("%d rows", have)}
		}
	}
	return nil
}
