package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// clients is the yardstick that replaces pgbench if pgbench is not installed. Each client has
// its own connection. It updates one row with a prepared statement, and commits after each
// update.
type clients struct {
	d    *database
	rows int
}

func newClients(ctx context.Context, d *database, scale int) (*clients, error) {
	c := &clients{d: d, rows: scale * rowsPerScale}
	return c, d.exec(ctx, "make the yardstick", `CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL)`,
		fmt.Sprintf(`INSERT INTO accounts SELECT g, 0 FROM generate_series(1, %d) g`, c.rows), `VACUUM ANALYZE accounts`)
}

func (c *clients) name() string { return "clients through lib/pq (there is no pgbench)" }

func (c *clients) rate(ctx context.Context, n int, d time.Duration) (float64, error) {
	c.d.db.SetMaxIdleConns(n)
	conns := make([]*sql.Stmt, n)
	for i := range conns {
		conn, err := c.d.db.Conn(ctx)
		if err != nil {
			return 0, fmt.Errorf("connect: %w", err)
		}
		defer conn.Close()
		if conns[i], err = conn.PrepareContext(ctx, `UPDATE accounts SET n = n + 1 WHERE id = $1`); err != nil {
			return 0, fmt.Errorf("prepare: %w", err)
		}
		defer conns[i].Close()
	}
	var done atomic.Int64
	errs := make([]error, n)
	at := time.Now()
	end := at.Add(d)
	var wg sync.WaitGroup
	for i, stmt := range conns {
		wg.Go(func() {
			for first := true; errs[i] == nil && (first || time.Now().Before(end)); first = false {
				_, errs[i] = stmt.ExecContext(context.Background(), 1+rand.IntN(c.rows))
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(at).Seconds(), errors.Join(errs...)
}
