// Package snapshots is the role of a store that keeps snapshots of long runs. With a snapshot, an
// engine need not read all rows of a run to know the state of the run.
//
// In: the encoded state of a run after a certain row of its journal. Out: this state, that row, and
// the rows that follow. The package does not decode a snapshot.
package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Keeper is a store that keeps at most one snapshot for each run: the state of the run after a
// certain row of the journal. An engine that loads the run reads the snapshot and the rows after
// it. A snapshot is computed from the journal, so it may be lost or removed at any time. The role
// is optional. In a store without this role, each load of a run reads all rows.
//
// A rekey.Resealer that replaces rows of a run removes the run's snapshot. A store.Retainer that
// removes a run also removes the run's snapshot.
type Keeper interface {
	// KeepSnapshot stores a snapshot of a run in place of the run's former snapshot. It returns
	// store.ErrFenced, and stores nothing, if the engine was declared dead. It returns
	// store.ErrStale, and stores nothing, in three cases: the engine is not the owner of the run,
	// the row s.Next-1 of the journal is missing, or the data of this row is not equal to s.Last.
	// The check is part of the write, as in a commit. A second call with the same snapshot changes
	// nothing.
	KeepSnapshot(ctx context.Context, engine store.EngineID, s Snapshot) error
	// Snapshotted returns those of the given runs that have a snapshot, ascending by id.
	Snapshotted(ctx context.Context, runs ...status.RunID) ([]status.RunID, error)
	// LoadShort returns the head of a run, its snapshot, and the journal rows whose numbers are at
	// least Snapshot.Next-1. All are from the same moment. If the run has no snapshot, LoadShort
	// returns all rows, as store.Journal.Load does. It returns store.ErrNotFound if the run does
	// not exist.
	LoadShort(ctx context.Context, run status.RunID) (Loaded, error)
}

// A Snapshot is the state of a run after the first n rows of its journal. The field Next is n.
type Snapshot struct {
	Run  status.RunID
	Next int32  // number of journal rows that the snapshot covers; at least 1
	Data []byte // encoded state; it may be sealed
	// Last is the data of the journal row with the number Next-1. Only KeepSnapshot uses it: if the
	// journal has other data in that row, the snapshot was computed from other rows and is refused.
	Last []byte
}

// A Loaded is a run as LoadShort returns it: its head, its snapshot, and the journal rows from
// Snapshot.Next-1 on. If Snapshot is nil, the Loaded has all rows of the run.
type Loaded struct {
	store.Loaded
	Snapshot *Snapshot
}

// Of returns the optional role Keeper of the store s. If s does not have this role, `ok` is false.
func Of(s store.Store) (role Keeper, ok bool) {
	if full, complete := s.(store.Full); complete {
		s = full.Store
	}
	role, ok = s.(Keeper)
	return role, ok
}

// Load reads runs as store.Journal.Load does. But if a run has a snapshot, Load reads only the
// snapshot and the rows that Keeper.LoadShort returns.
func Load(ctx context.Context, s store.Full, runs ...status.RunID) ([]Loaded, error) {
	var short []status.RunID
	role, ok := Of(s)
	if ok {
		var err error
		if short, err = role.Snapshotted(ctx, runs...); err != nil {
			return nil, fmt.Errorf("look for snapshots: %w", err)
		}
	}
	whole := runs
	if len(short) > 0 {
		whole = slices.DeleteFunc(slices.Clone(runs), func(run status.RunID) bool { return slices.Contains(short, run) })
	}
	var all []Loaded
	if len(whole) > 0 {
		found, err := s.Load(ctx, whole...)
		if err != nil {
			return nil, err
		}
		all = make([]Loaded, len(found))
		for i, l := range found {
			all[i].Loaded = l
		}
	}
	for _, run := range short {
		l, err := role.LoadShort(ctx, run)
		switch {
		case errors.Is(err, store.ErrNotFound): // the run was removed meanwhile
		case err != nil:
			return nil, err
		default:
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b Loaded) int { return cmp.Compare(a.Head.Run, b.Head.Run) })
	return all, nil
}

// LoadOne reads one run in the same way as Load. It returns store.ErrNotFound if the run does not
// exist.
func LoadOne(ctx context.Context, s store.Full, run status.RunID) (Loaded, error) {
	all, err := Load(ctx, s, run)
	switch {
	case err != nil:
		return Loaded{}, err
	case len(all) == 0:
		return Loaded{}, store.ErrNotFound
	}
	return all[0], nil
}
