package sim

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// KeepSnapshot passes the call to the store. If the store keeps the snapshot, KeepSnapshot makes
// two checks. The engine must not have been declared dead (I3). The run must have the same state
// from the snapshot as from its first row (promise 10).
func (w *wire) KeepSnapshot(ctx context.Context, e store.EngineID, x snapshots.Snapshot) error {
	_, err := over(ctx, w, callerOther, fmt.Sprintf("as %d keeps a snapshot of %d/%d", e, x.Run, x.Next), func() (nothing, error) {
		dead := w.world.registry().isBuried(e)
		err := w.world.store.KeepSnapshot(ctx, e, x)
		switch {
		case err == nil && dead:
			w.world.fault("run %d: engine %d stored a snapshot after it was declared dead (I3)", x.Run, e)
		case err == nil:
			w.world.judges().sameState(ctx, x.Run)
		}
		return nothing{}, err
	})
	return err
}

// Snapshotted passes the call to the store.
func (w *wire) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	return over(ctx, w, callerOther, "snapshotted", func() ([]status.RunID, error) { return w.world.store.Snapshotted(ctx, runs...) })
}

// LoadShort passes the call to the store.
func (w *wire) LoadShort(ctx context.Context, run status.RunID) (snapshots.Loaded, error) {
	return over(ctx, w, callerOther, "load short", func() (snapshots.Loaded, error) { return w.world.store.LoadShort(ctx, run) })
}
