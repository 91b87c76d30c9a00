package postgres

import (
	"bytes"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
)

// resealed returns new data for the first row of a run that has one row.
func resealed(run status.RunID, data string) rekey.Resealed {
	return rekey.Resealed{Run: run, Rows: []store.Row{{Data: []byte(data)}}, Next: 1, At: time.Now().Truncate(time.Microsecond), Data: []byte("added")}
}

// wantFirst checks the data of the first row of a run.
func wantFirst(t *testing.T, s *Store, run status.RunID, data string, rows int) {
	t.Helper()
	_, got, err := store.LoadRun(t.Context(), s, run)
	if err != nil || len(got) != rows || !bytes.Equal(got[0].Data, []byte(data)) {
		t.Errorf("run %d has %+v, %v, want %d rows, the first with %q", run, got, err, rows, data)
	}
}

// The role that owns the tables may seal a journal again, and the role of engines may not. But
// that role may record a new key.
func TestOnlyTheOwnerReseals(t *testing.T) {
	r := newRoles(t)
	work, migrate := open(t, r.work), open(t, r.migrate)
	b := benchOn(t, work)
	run := status.RunID(7)
	first := b.create(run)
	first.Data = []byte("old")
	if err := b.commit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := work.Reseal(t.Context(), resealed(run, "new")); sqlstate(err) != "42501" {
		t.Errorf("engine_work: %v, want 42501", err)
	}
	wantFirst(t, migrate, run, "old", 1)
	if err := migrate.Reseal(t.Context(), resealed(run, "new")); err != nil {
		t.Errorf("engine_migrate: %v", err)
	}
	wantFirst(t, work, run, "new", 2)
	if _, err := work.Pin(t.Context(), "key", "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := work.Repin(t.Context(), "key", "a", "b,a"); err != nil || got != "b,a" {
		t.Errorf("engine_work records a new key: %q, %v", got, err)
	}
}

// While a session moves rows to another partition, rows are not sealed again: the session
// may have copied the former row, and would drop the new one.
func TestResealWaitsForPartitions(t *testing.T) {
	db := migrated(t)
	s := open(t, db)
	b := benchOn(t, s)
	run := status.RunID(7)
	first := b.create(run)
	first.Data = []byte("old")
	if err := b.commit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	admin := raw(t, db)
	tx, err := admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var alone bool
	if err := tx.QueryRowContext(t.Context(), partitionLock).Scan(&alone); err != nil || !alone {
		t.Fatalf("alone = %t, %v", alone, err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Reseal(t.Context(), resealed(run, "new")) }()
	for waiting := 0; waiting == 0; {
		select {
		case err := <-done:
			t.Fatalf("Reseal = %v before the other session has ended", err)
		default:
		}
		const waits = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
		if err := admin.QueryRowContext(t.Context(), waits).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	wantFirst(t, s, run, "old", 1)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Reseal = %v", err)
	}
	wantFirst(t, s, run, "new", 2)
}
