package postgres

import (
	"bytes"
	"slices"
	"testing"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// Decision 0020: the tag of each row costs at most one byte of log in twenty. The rows
// are as long as those of a step with an output of a hundred bytes
// (docs/performance.md). Two databases get the same, except for the tags. They have a
// server of their own, because what other tests write is in the log of a shared one.
func TestLogOfChecks(t *testing.T) {
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	const (
		record = 125 // bytes, before the tag
		runs   = 100
		rounds = 60
	)
	written := func(database string, extra int) int64 {
		dsn, err := server.Database(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		b := benchOn(t, open(t, dsn))
		for run := status.RunID(1); run <= runs; run++ {
			if out, err := b.w.Commit(t.Context(), []store.Transition{b.create(run)}); err != nil || !out[0].Landed {
				t.Fatalf("create: %+v, err = %v", out, err)
			}
		}
		wrote := make([]int64, 0, rounds)
		for seq := int32(1); seq <= rounds; seq++ {
			batch := make([]store.Transition, runs)
			for i := range batch {
				batch[i] = store.Transition{Run: status.RunID(i + 1), Seq: seq, At: at, Data: bytes.Repeat([]byte{7}, record+extra),
					Steps: []store.StepRow{{Node: 1, State: status.StepSucceeded, Attempt: 1}, {Node: 2, State: status.StepRunning, Attempt: 1, CompleteBy: at}}}
			}
			from := position(t, b)
			if out, err := b.w.Commit(t.Context(), batch); err != nil || !out[runs-1].Landed {
				t.Fatalf("commit: %+v, err = %v", out, err)
			}
			wrote = append(wrote, position(t, b)-from)
		}
		slices.Sort(wrote)
		return wrote[rounds/10] / runs
	}
	without, with := written("without", 0), written("with", crypt.TagSize)
	t.Logf("log of a row: %d bytes without a tag, %d with one: %.3f", without, with, float64(with)/float64(without))
	if float64(with) > 1.05*float64(without) || with <= without {
		t.Errorf("a row with a tag writes %d bytes of log, one without %d: want at most 1.05 of it", with, without)
	}
}

// position returns how far the server's log goes.
func position(t *testing.T, b *bench) (at int64) {
	t.Helper()
	if err := b.db.QueryRowContext(t.Context(), `SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0')::int8`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}
