package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// takeSnapshot starts to store a snapshot of the run if the run needs one. It is called after a row
// was committed. The parameter `last` is the data of this row. The shard only copies the state,
// which costs little. A goroutine encodes and stores the copy, and no commit waits for this
// goroutine. An engine makes one snapshot at a time. If another run's snapshot is being made, this
// run gets its snapshot after a later row.
func takeSnapshot(ctx context.Context, sh *shard, r *ownedRun, last []byte) {
	n := sh.s.n
	role, ok := snapshots.Of(n.cfg.Store)
	if !ok || !r.short.due(r.seq, r.stored, n.cfg.Options.SnapshotRows) || r.state.Status().Final() || !r.link.Snapped(n.cfg.Sealer) || !n.snapping.TryLock() {
		return
	}
	p := &journal.Point{Run: r.id, Next: r.seq, State: r.state.Clone(), Facts: r.facts, Stored: r.stored, Link: r.link,
		Notes: journal.Notes{Sensitive: slices.Clip(r.sensitive), Refusals: maps.Clone(r.refusals)}}
	r.short.busy = true
	before := r.short
	sh.out.commits++ // a caller of shard.idle must wait for this write, too
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		size, err := n.keepSnapshot(ctx, role, sh.s.engine, p, &before, last)
		n.snapping.Unlock()
		small := errors.Is(err, errSmallRows)
		switch {
		case err == nil, small, OverFor(err), ctx.Err() != nil:
		case errors.Is(err, store.ErrStale): // the rows have new tags, or the run has another owner
		default:
			n.cfg.Logger.Warn("store a snapshot of a run", "run", p.State.Name(), "error", err)
		}
		sh.give(task{run: p.Run, fn: func(context.Context) {
			sh.out.commits--
			r.short.busy, r.short.size = false, size
			// After most errors, the next snapshot is due as late as after a success,
			// because another try soon would often have the same error. Only after
			// errSmallRows is it due earlier.
			if !small {
				r.short.next, r.short.stored = p.Next, p.Stored
			}
		}})
	}()
}

// errSmallRows says that a snapshot was not stored, because it is too large compared with the rows
// that it replaces.
var errSmallRows = errors.New("the snapshot is too large for its rows")

// keepSnapshot encodes and stores a snapshot. It returns the size of the snapshot in bytes. It
// stores nothing, and returns errSmallRows, if the rows since the last snapshot are too small. The
// parameter `before` describes the last snapshot; keepSnapshot sets its field `size` to the new
// size. The parameter `last` is the data of the last row.
func (n *Shared) keepSnapshot(ctx context.Context, role snapshots.Keeper, engine store.EngineID, p *journal.Point, before *shortcut, last []byte) (int64, error) {
	var data []byte
	err := guard.Do(func() (err error) { data, err = journal.EncodeSnapshot(n.cfg.Sealer, p); return err })
	if err != nil {
		return 0, err
	}
	if len(data) > n.cfg.Options.MaxRow {
		return int64(len(data)), &rowSizeError{p.Next, len(data), n.cfg.Options.MaxRow}
	}
	before.size = int64(len(data))
	if !before.pays(p.Stored-before.stored, n.cfg.Options.SnapshotRows) {
		return before.size, errSmallRows
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotPatience)
	defer cancel()
	return int64(len(data)), role.KeepSnapshot(ctx, engine, snapshots.Snapshot{Run: p.Run, Next: p.Next, Data: data, Last: last})
}

// snapshotPatience is how long the store may take to store a snapshot.
const snapshotPatience = 30 * time.Second
