package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/sqlite"
)

// A bed is a store to measure, and a plain table of the same database beside
// it: the yardstick.
type bed struct {
	name    string
	store   engine.Store
	writers int
	clients int // of the yardstick, when it is not alone
	db      *sql.DB
	update  string
	close   func() error
}

// perClient is how many rows a client of the yardstick has for itself, so that
// clients do not wait for each other's rows.
const perClient = 1000

// sqliteBed makes files in dir. A yardstick's commit is as durable as one of
// the engine: WAL, synced.
func sqliteBed(ctx context.Context, dir string) (*bed, error) {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "yardstick.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: %w", err), store.Close())
	}
	db.SetMaxOpenConns(1) // one writer at a time is all that SQLite has
	b := &bed{
		name: "sqlite", store: store, writers: 1, clients: 1, db: db,
		update: `UPDATE yardstick SET n = n + 1 WHERE id = ?`,
		close:  func() error { return errors.Join(db.Close(), store.Close()) },
	}
	if err := b.prepare(ctx, `WITH RECURSIVE g(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM g WHERE id < ? - 1) INSERT INTO yardstick SELECT id, 0 FROM g`); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// postgresBed makes a database of its own on a server, and drops it in the end.
func postgresBed(ctx context.Context, dsn string) (*bed, error) {
	d, err := makeDatabase(ctx, dsn, "steps")
	if err != nil {
		return nil, err
	}
	b := &bed{name: "postgres", writers: 2, clients: 64, update: `UPDATE yardstick SET n = n + 1 WHERE id = $1`,
		store: d.store, db: d.db, close: d.close}
	b.db.SetMaxOpenConns(b.clients)
	if err := b.prepare(ctx, `INSERT INTO yardstick SELECT g, 0 FROM generate_series(0, $1 - 1) g`); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), b.close())
	}
	return b, nil
}

func (b *bed) prepare(ctx context.Context, fill string) error {
	if _, err := b.db.ExecContext(ctx, `CREATE TABLE yardstick (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)`); err != nil {
		return fmt.Errorf("make the yardstick: %w", err)
	}
	if _, err := b.db.ExecContext(ctx, fill, b.clients*perClient); err != nil {
		return fmt.Errorf("fill the yardstick: %w", err)
	}
	return nil
}

// commits measures single-row commits per second, as pgbench would: each client
// has a connection and a prepared update, and commits after each.
func (b *bed) commits(ctx context.Context, clients int, d time.Duration) (float64, error) {
	var done atomic.Int64
	errs := make([]error, clients)
	var ready, wg sync.WaitGroup
	ready.Add(clients)
	begin := make(chan struct{})
	var end time.Time
	for i := range clients {
		wg.Go(func() { errs[i] = b.client(ctx, i, &ready, begin, &end, &done) })
	}
	ready.Wait()
	at := time.Now()
	end = at.Add(d)
	close(begin)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("yardstick: %w", err)
	}
	return float64(done.Load()) / time.Since(at).Seconds(), nil
}

func (b *bed) client(ctx context.Context, i int, ready *sync.WaitGroup, begin <-chan struct{}, end *time.Time, done *atomic.Int64) error {
	arrived := false
	arrive := func() {
		if !arrived {
			arrived = true
			ready.Done()
		}
	}
	defer arrive()
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stmt, err := conn.PrepareContext(ctx, b.update)
	if err != nil {
		return err
	}
	defer stmt.Close()
	arrive()
	<-begin
	for time.Now().Before(*end) {
		if _, err := stmt.ExecContext(ctx, i*perClient+rand.IntN(perClient)); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}
