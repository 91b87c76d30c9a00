package postgres

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/store/storetest"
)

func BenchmarkCommit(b *testing.B) { storetest.Bench(b, open(b, migrated(b))) }

// BenchmarkYardstick commits one updated row at a time, by a prepared statement
// as pgbench does: what the server can do in this run.
func BenchmarkYardstick(b *testing.B) {
	db := raw(b, pgtest.DSN(b))
	must(b, db, "CREATE TABLE account (id int PRIMARY KEY, balance int)")
	must(b, db, "INSERT INTO account SELECT n, 0 FROM generate_series(1, 100000) n")
	must(b, db, "VACUUM ANALYZE account")
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var (
				wg   sync.WaitGroup
				left atomic.Int64
			)
			left.Store(int64(b.N))
			start := make(chan struct{})
			for c := range clients {
				conn, err := db.Conn(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				st, err := conn.PrepareContext(b.Context(), "UPDATE account SET balance = balance + 1 WHERE id = $1")
				if err != nil {
					b.Fatal(err)
				}
				wg.Go(func() {
					<-start
					for n := c; left.Add(-1) >= 0; n += 7919 {
						if _, err := st.Exec(1 + n%100000); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			b.ResetTimer()
			close(start)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkLoad(b *testing.B) { storetest.BenchLoad(b, open(b, migrated(b))) }

func BenchmarkOrphans(b *testing.B) { storetest.BenchOrphans(b, open(b, migrated(b))) }

// BenchmarkTick beside nothing and beside 20,000 runs that have ended.
func BenchmarkTick(b *testing.B) {
	for _, finished := range []int{0, 20_000} {
		b.Run(fmt.Sprintf("finished=%d", finished), func(b *testing.B) { storetest.BenchTick(b, open(b, migrated(b)), finished) })
	}
}
