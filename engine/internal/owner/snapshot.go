package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// AlertSnapshot is the kind of an alert. It says that the snapshot of a run was damaged or changed,
// and that the journal was read instead.
const AlertSnapshot = "snapshot_refused"

const (
	// snapshotBytes is the size of rows, in bytes, after which a run gets a snapshot even if it has
	// fewer rows than Options.SnapshotRows.
	snapshotBytes = 4 << 20
	// With the default of 1,000 for Options.SnapshotRows, the rows since the last snapshot must also be
	// four times as large as a snapshot. So snapshots add at most a quarter to what a run writes, and a
	// wide run, whose state grows with each row, gets few. With fewer rows the factor is smaller:
	// it is Options.SnapshotRows divided by rowsPerFactor.
	rowsPerFactor = 250
)

// A shortcut says when a run needs its next snapshot.
type shortcut struct {
	next   int32 // number of rows that the last snapshot covers; 0 = there is no snapshot
	stored int64 // size of these rows, in bytes
	size   int64 // size of the last snapshot that was made, in bytes; 0 = none was made
	busy   bool  // a snapshot is being stored

	refused *journal.SnapshotError // the next row of the run tells operators about this; nil = nothing to tell
}

// due reports whether a run needs a snapshot now. The run has seq rows, whose size in bytes is the
// parameter stored. The parameter every is the usual number of rows between two snapshots.
func (s *shortcut) due(seq int32, stored int64, every int) bool {
	rows, bytes := int(seq-s.next), stored-s.stored
	return !s.busy && (rows >= every || bytes >= snapshotBytes) && s.pays(bytes, every)
}

// pays reports whether rows of the given size, in bytes, are large enough for a snapshot of the size
// s.size.
func (s *shortcut) pays(bytes int64, every int) bool {
	return bytes >= s.size*int64(every)/rowsPerFactor
}

// tellRefused adds an alert to the transition t if the snapshot of the run was refused.
func (r *ownedRun) tellRefused(t *store.Transition) {
	if r.short.refused == nil {
		return
	}
	t.Alerts = append(t.Alerts, store.Alert{Kind: AlertSnapshot, Message: r.short.refused.Error()})
	r.short.refused = nil
}

// takeSnapshot starts to store a snapshot of the run if the run needs one. It is called after a row was
// committed; the parameter last is the data of this row. The shard only copies the state, which
// costs little. A goroutine does the rest, and no commit waits for it. An engine makes one snapshot
// at a time. If another run's snapshot is being made, this run gets its snapshot after a later row.
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
	sh.out.commits++ // a caller of shard.quiet must wait for this write, too
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
			if !small { // after an error, too, the next snapshot is made after as many rows: the error may last
				r.short.next, r.short.stored = p.Next, p.Stored
			}
		}})
	}()
}

// errSmallRows says that a snapshot was not stored, because the rows that it would save are too small.
var errSmallRows = errors.New("the snapshot is too large for its rows")

// keepSnapshot encodes and stores a snapshot. It returns the size of the snapshot in bytes. It stores
// nothing, and returns errSmallRows, if the rows since the snapshot before are too small.
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

// Resume implements journal.Noter: it replaces all notes.
func (n *notes) Resume(k journal.Notes) { *n = notes{sensitive: k.Sensitive, refusals: k.Refusals} }

// Note implements journal.Noter.
func (n *notes) Note(e machine.Event) { n.note(e) }
