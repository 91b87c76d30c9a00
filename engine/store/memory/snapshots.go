package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// shorts is the part of a Store that keeps snapshots of long runs.
type shorts struct{ *state }

// KeepSnapshot stores a snapshot of a run in place of the former one.
func (s *shorts) KeepSnapshot(ctx context.Context, id store.EngineID, x snapshots.Snapshot) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, m, last := s.runs[x.Run], s.members[id], int(x.Next)-1
	switch {
	case m == nil || len(m.fence) == 0:
		return store.ErrFenced
	case r == nil || r.head.Owner != id || last < 0 || last >= len(r.rows) || !bytes.Equal(r.rows[last].Data, x.Last):
		return store.ErrStale
	}
	r.short = &snapshots.Snapshot{Run: x.Run, Next: x.Next, Data: slices.Clone(x.Data)}
	return nil
}

// Snapshotted returns those of the given runs that have a snapshot, ascending by id.
func (s *shorts) Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []status.RunID
	for _, id := range runs {
		if r := s.runs[id]; r != nil && r.short != nil {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// LoadShort returns the head of a run, its snapshot, and the rows from Snapshot.Next-1 on.
func (s *shorts) LoadShort(ctx context.Context, id status.RunID) (snapshots.Loaded, error) {
	if err := s.lock(ctx); err != nil {
		return snapshots.Loaded{}, err
	}
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil {
		return snapshots.Loaded{}, store.ErrNotFound
	}
	l, from := snapshots.Loaded{Loaded: store.Loaded{Head: r.head, Waiting: len(s.inbox[id]) > 0}}, 0
	if r.short != nil {
		x := *r.short
		x.Data = slices.Clone(x.Data)
		l.Snapshot, from = &x, min(max(int(x.Next)-1, 0), len(r.rows))
	}
	l.Rows = copyRows(r.rows[from:])
	return l, nil
}
