package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/engine/store/storetest"
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

// BenchmarkView reads the view of a run's steps: what it costs for each of them
// must not depend on how many there are.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "state.db")
			s := open(b, path, Options{})
			id, w := join(b, s)
			submit(b, s, w, id, 1)
			widen(b, w, n)
			db := raw(b, path)
			for b.Loop() {
				var sum int
				if err := db.QueryRowContext(b.Context(), "SELECT sum(attempt) FROM steps WHERE run_id = 1").Scan(&sum); err != nil || sum < n {
					b.Fatal(sum, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/step")
		})
	}
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
