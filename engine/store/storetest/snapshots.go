package storetest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

func hasSnapshots(h Harness) bool { _, ok := h.Store.(snapshots.Keeper); return ok }

// The type shortened has helper methods for tests of snapshots.
type shortened struct{ *frame }

// keeper returns the role Keeper of a store.
func (w shortened) keeper(s store.Full) snapshots.Keeper {
	w.Helper()
	role, ok := snapshots.Of(s)
	if !ok {
		w.Fatal("the store keeps no snapshots")
	}
	return role
}

// short returns a snapshot of the first n rows of a run, with the given data.
func (w shortened) short(run status.RunID, n int, data string) snapshots.Snapshot {
	w.Helper()
	_, rows := w.load(run)
	return snapshots.Snapshot{Run: run, Next: int32(n), Data: []byte(data), Last: rows[n-1].Data}
}

// keep stores a snapshot of the first n rows of a run, with the given data.
func (w shortened) keep(a actor, run status.RunID, n int, data string) {
	w.Helper()
	if err := w.keeper(w.Store).KeepSnapshot(w.ctx, a.id, w.short(run, n, data)); err != nil {
		w.Fatalf("keep a snapshot of %d rows: %v", n, err)
	}
}

// wantShort checks the result of LoadShort: the snapshot with the given data, and the rows with the
// numbers `first` to `last`. If `data` is "", there must be no snapshot.
func (w shortened) wantShort(run status.RunID, data string, first, last int32) {
	w.Helper()
	got, err := w.keeper(w.Other).LoadShort(w.ctx, run)
	if err != nil {
		w.Fatalf("load the run with its snapshot: %v", err)
	}
	head, rows := w.load(run)
	if got.Head != head {
		w.Errorf("head = %+v, want %+v", got.Head, head)
	}
	if (got.Snapshot != nil) != (data != "") || data != "" && (string(got.Snapshot.Data) != data || got.Snapshot.Next != first+1 || got.Snapshot.Run != run) {
		w.Errorf("snapshot = %+v, want %q of the first %d rows", got.Snapshot, data, first+1)
	}
	if len(got.Rows) != int(last-first+1) {
		w.Fatalf("%d rows, want the rows %d to %d", len(got.Rows), first, last)
	}
	for i, r := range got.Rows {
		if want := rows[int(first)+i]; r.Seq != want.Seq || !r.At.Equal(want.At) || !bytes.Equal(r.Data, want.Data) {
			w.Errorf("row %d = %+v, want %+v", i, r, want)
		}
	}
	found, err := w.keeper(w.Other).Snapshotted(w.ctx, run, run, 1<<50)
	if err != nil || len(found) > 0 != (data != "") || data != "" && !slices.Equal(found, []status.RunID{run}) {
		w.Errorf("Snapshotted = %v, %v", found, err)
	}
}

// long creates a run with n rows and returns its id.
func (w shortened) long(a actor, n int32) status.RunID {
	w.Helper()
	run := w.started(a, 1)[0]
	for seq := int32(1); seq < n; seq++ {
		w.land(a.writers[0], next(run, seq))
	}
	return run
}

// snapshotRules are the rules for stores that keep snapshots (snapshots.Keeper).
var snapshotRules = []rule{
	{name: "snapshots/the latest one, and the rows from its last row on", why: "a long run must be read without its first rows, and the reader compares the last row that the snapshot covers", run: func(w *world) {
		a := w.join(w.Store, 1)
		run, other := w.long(a, 6), w.long(a, 2)
		w.wantShort(run, "", 0, 5)
		w.keep(a, run, 1, "one")
		w.wantShort(run, "one", 0, 5)
		w.keep(a, run, 4, "four")
		w.keep(a, run, 4, "four") // a second call changes nothing
		w.wantShort(run, "four", 3, 5)
		w.keep(a, run, 6, "six")
		w.wantShort(run, "six", 5, 5)
		w.land(a.writers[0], next(run, 6))
		w.wantShort(run, "six", 5, 6)
		w.wantShort(other, "", 0, 1)
		all, err := snapshots.Load(w.ctx, w.Other, run, other, 1<<50)
		if err != nil || len(all) != 2 || all[0].Head.Run != run || all[0].Snapshot == nil || len(all[0].Rows) != 2 || all[1].Snapshot != nil || len(all[1].Rows) != 2 {
			w.Errorf("LoadLatest = %+v, %v", all, err)
		}
		if _, err := w.keeper(w.Other).LoadShort(w.ctx, 1<<50); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("a run that does not exist: %v, want ErrNotFound", err)
		}
	}},
	{name: "snapshots/a dead engine stores none", why: "the next owner may have written other rows", run: func(w *world) {
		a := w.join(w.Store, 1)
		run := w.long(a, 3)
		w.keep(a, run, 2, "alive")
		late := w.short(run, 3, "dead")
		w.bury(a)
		if err := w.keeper(w.Store).KeepSnapshot(w.ctx, a.id, late); !errors.Is(err, store.ErrFenced) {
			w.Errorf("snapshot of a dead engine: %v, want ErrFenced", err)
		}
		w.wantShort(run, "alive", 1, 2)
		b := w.join(w.Other, 1)
		w.land(b.writers[0], takes(run, 3, b))
		if err := w.keeper(w.Other).KeepSnapshot(w.ctx, b.id, late); err != nil {
			w.Errorf("the next owner: %v", err)
		}
		w.wantShort(run, "dead", 2, 3)
	}},
	{name: "snapshots/only the owner, and only for rows that the journal has", why: "a snapshot of other rows would give the run another state", run: func(w *world) {
		a, b := w.join(w.Store, 1), w.join(w.Other, 1)
		run := w.long(a, 3)
		good := w.short(run, 2, "x")
		for _, c := range []struct {
			name string
			by   actor
			run  status.RunID
			next int32
			last []byte
		}{
			{"another engine", b, run, 2, good.Last},
			{"another last row", a, run, 2, []byte("other")},
			{"more rows than there are", a, run, 4, good.Last},
			{"no row", a, run, 0, nil},
			{"no such run", a, 1 << 50, 1, good.Last},
		} {
			x := snapshots.Snapshot{Run: c.run, Next: c.next, Data: []byte("x"), Last: c.last}
			if err := w.keeper(w.Store).KeepSnapshot(w.ctx, c.by.id, x); !errors.Is(err, store.ErrStale) {
				w.Errorf("%s: %v, want ErrStale", c.name, err)
			}
		}
		w.wantShort(run, "", 0, 2)
	}},
	{name: "snapshots/large ones", why: "a run may hold outputs of many megabytes", run: func(w *world) {
		a := w.join(w.Store, 1)
		run := w.long(a, 2)
		x := w.short(run, 2, "")
		x.Data = bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
		if err := w.keeper(w.Store).KeepSnapshot(w.ctx, a.id, x); err != nil {
			w.Fatal(err)
		}
		if got, err := w.keeper(w.Other).LoadShort(w.ctx, run); err != nil || got.Snapshot == nil || !bytes.Equal(got.Snapshot.Data, x.Data) {
			w.Errorf("err = %v, want the same %d bytes", err, len(x.Data))
		}
	}},
	{name: "snapshots/new tags of the rows remove it", why: "it holds the former tag of a row, and is sealed with the former key", need: reseals, run: func(w *world) {
		mine, _ := w.resealer()
		a := w.join(w.Store, 1)
		run, other := w.long(a, 3), w.long(a, 2)
		w.keep(a, run, 3, "x")
		w.keep(a, other, 2, "y")
		before := w.short(run, 2, "z")
		if err := mine.Reseal(w.ctx, w.rekeyed(run, 3)); err != nil {
			w.Fatal(err)
		}
		w.wantShort(run, "", 0, 3)
		w.wantShort(other, "y", 1, 1)
		if err := w.keeper(w.Store).KeepSnapshot(w.ctx, a.id, before); !errors.Is(err, store.ErrStale) {
			w.Errorf("a snapshot of the former rows: %v, want ErrStale", err)
		}
		w.wantShort(run, "", 0, 3)
	}},
}

// takes returns a transition that makes an engine the owner of a run.
func takes(run status.RunID, seq int32, a actor) store.Transition {
	t := next(run, seq)
	t.Owner, t.NextCheck = &a.id, base
	return t
}
