package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/engine/storetest"
)

func BenchmarkCommit(b *testing.B) {
	storetest.Bench(b, open(b, filepath.Join(b.TempDir(), "state.db"), Options{}))
}

func BenchmarkLoad(b *testing.B) {
	storetest.BenchLoad(b, open(b, filepath.Join(b.TempDir(), "state.db"), Options{}))
}

func BenchmarkOrphans(b *testing.B) {
	storetest.BenchOrphans(b, open(b, filepath.Join(b.TempDir(), "state.db"), Options{}))
}

func BenchmarkTick(b *testing.B) {
	storetest.BenchTick(b, open(b, filepath.Join(b.TempDir(), "state.db"), Options{}), 200_000)
}

// BenchmarkYardstick commits one updated row at a time, as durably: what the
// machine can do in this run.
func BenchmarkYardstick(b *testing.B) {
	db := rawNew(b, filepath.Join(b.TempDir(), "yardstick.db"))
	db.SetMaxOpenConns(1)
	must(b, db, "PRAGMA journal_mode = WAL")
	must(b, db, "PRAGMA synchronous = FULL")
	must(b, db, "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
	must(b, db, "INSERT INTO account WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000) SELECT n, 0 FROM c")
	st, err := db.PrepareContext(b.Context(), "UPDATE account SET balance = balance + 1 WHERE id = ?1")
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	n := 0
	for b.Loop() {
		if _, err := st.Exec(1 + n*7919%100000); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
