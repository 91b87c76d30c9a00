package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/saga-engine/engine/cmd/bench/internal/rival"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
)

const (
	manyClients = 16    // number of clients that submit at the same time
	batchSize   = 1_000 // number of submissions or events in a batch
)

// inTurn measures the subjects in turn, in as many rounds as the plan has for the parts that
// measure how runs start.
func (l startsLab) inTurn(ctx context.Context, subjects []subject) error {
	own := *l.lab
	own.p.rounds = l.p.starts.rounds
	return own.runLab().inTurn(ctx, subjects)
}

// publish publishes the workflows of a definition in a database.
func publish(ctx context.Context, d *database, def *dsl.Definition, workflows ...string) error {
	_, err := engine.Publish(ctx, engine.Config{Store: d.store}, engine.Publication{Definition: def, Workflows: workflows, By: "bench"})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// submissions measures how many runs per second programs submit with SQL: each run in its own
// transaction, each run in one transaction with a row of the program, and many runs in a batch. It
// compares the submissions with plain rows that have as many bytes, and with jobs of River. No
// engine and no worker of River runs.
func (l startsLab) submissions(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "submissions")
	if err != nil {
		return err
	}
	closing.add(d.close)
	desk, err := newDesk(ctx, d, l.work)
	if err != nil {
		return err
	}
	closing.add(desk.close)
	var subjects []subject
	for _, w := range desk.ways(l.p.starts.clients) {
		subjects = append(subjects, l.submitting(d, desk, w))
	}
	if err := l.inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.submissions(l.book, l.p.starts)
	return nil
}

// submitting returns a subject that measures one way to submit.
func (l startsLab) submitting(d *database, desk *desk, w way) subject {
	return subject{w.row, func(ctx context.Context, round int) error {
		if err := desk.clear(ctx); err != nil {
			return err
		}
		if _, err := w.repeat(ctx, l.p.starts.each/5); err != nil {
			return err
		}
		before, known := d.cpu(ctx)
		began := time.Now()
		n, err := w.repeat(ctx, l.p.starts.each)
		if err != nil {
			return err
		}
		took := time.Since(began)
		after, _ := d.cpu(ctx)
		l.book.put(round, w.row, "rows/s", float64(n)/took.Seconds())
		if known && n > 0 {
			l.book.put(round, w.row, "all µs/row", microseconds(after-before)/float64(n))
		}
		l.tell("round %d: %s: %.0f/s", round+1, w.row, float64(n)/took.Seconds())
		return nil
	}}
}

// A way is one way to submit: how many clients call it, and how many submissions each call makes.
type way struct {
	row           string
	clients, size int
	// Makes `size` submissions. The parameter `last` is the number of the last of them.
	call func(ctx context.Context, last int64) error
	// Number of the last submission so far, of all clients.
	next *atomic.Int64
}

// repeat lets all clients submit until the time d has passed, and returns the number of
// submissions.
func (w way) repeat(ctx context.Context, d time.Duration) (int64, error) {
	end := time.Now().Add(d)
	errs := make([]error, w.clients)
	var done atomic.Int64
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				if errs[i] = w.call(ctx, w.next.Add(int64(w.size))); errs[i] == nil {
					done.Add(int64(w.size))
				}
			}
		})
	}
	wg.Wait()
	return done.Load(), errors.Join(errs...)
}

// A desk submits in all the ways that the benchmark compares. All of them use the driver pgx,
// because River needs it.
type desk struct {
	pool  *pgxpool.Pool
	river *rival.River
	value string // value of the variable of each run
	next  atomic.Int64
}

// deskTables makes the table of a program's orders, and the table bench.plain for the comparison.
// The columns of bench.plain are those that a program needs for a queue of its own.
var deskTables = []string{
	`CREATE SCHEMA bench`,
	`CREATE TABLE bench.orders (id text PRIMARY KEY, note text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`,
	`CREATE TABLE bench.plain (n int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text NOT NULL UNIQUE, workflow text NOT NULL, input jsonb NOT NULL,
		by text NOT NULL DEFAULT session_user, at timestamptz NOT NULL DEFAULT clock_timestamp())`,
}

const (
	orderPut   = `INSERT INTO bench.orders (id, note) VALUES ($1, 'new')`
	plainPut   = `INSERT INTO bench.plain (run, workflow, input) VALUES ($1, 'five', jsonb_build_object('value', $2::text))`
	plainMany  = `INSERT INTO bench.plain (run, workflow, input) SELECT r, 'five', jsonb_build_object('value', $2::text) FROM unnest($1::text[]) r`
	submitOne  = `SELECT engine.submit('five', jsonb_build_object('value', $2::text), $1)`
	submitMany = `SELECT count(engine.submit('five', jsonb_build_object('value', $2::text), r)) FROM unnest($1::text[]) r`
)

// newDesk publishes the workflow "five" in a database, and makes the tables for the other ways to
// submit.
func newDesk(ctx context.Context, d *database, w *work) (*desk, error) {
	if err := publish(ctx, d, w.def, "five"); err != nil {
		return nil, err
	}
	if err := d.exec(ctx, "make the tables of a program", deskTables...); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(d.dsn.String())
	if err != nil {
		// The error of pgx may contain a password, so the new error does not repeat it.
		return nil, errors.New("pgx does not understand the DSN")
	}
	cfg.MaxConns = manyClients + 2
	k := &desk{value: strings.Repeat("x", payload)}
	if k.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if k.river, err = rival.NewRiver(ctx, k.pool); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *desk) close() error {
	k.pool.Close()
	return nil
}

// clear removes all submissions, so that each measurement begins with empty tables.
func (k *desk) clear(ctx context.Context) error {
	if _, err := k.pool.Exec(ctx, `TRUNCATE bench.orders, bench.plain, engine.submission, river_job`); err != nil {
		return fmt.Errorf("empty the tables: %w", err)
	}
	return nil
}

// ways returns all ways to submit. The parameter `clients` lists the numbers of clients to measure.
// A name such as "submit/16" has two parts: the thing that is inserted, and the number of clients
// that insert it. A name such as "river, COPY" also has two parts: the thing that is inserted, and
// the kind of batch.
func (k *desk) ways(clients []int) []way {
	exec := func(query string) func(context.Context, int64) error {
		return func(ctx context.Context, n int64) error {
			_, err := k.pool.Exec(ctx, query, runID(n), k.value)
			return err
		}
	}
	river := func(ctx context.Context, n int64) error {
		return k.river.Insert(ctx, rival.Job{ID: runID(n), Value: k.value})
	}
	beside := func(query string) func(context.Context, int64) error {
		return k.order(func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, query, id, k.value)
			return err
		})
	}
	nothing := func(context.Context, pgx.Tx, string) error { return nil }
	job := func(ctx context.Context, tx pgx.Tx, id string) error {
		return k.river.InsertTx(ctx, tx, rival.Job{ID: id, Value: k.value})
	}
	var all []way
	add := func(row string, n, size int, call func(context.Context, int64) error) {
		all = append(all, way{row: row, clients: n, size: size, call: call, next: &k.next})
	}
	for _, n := range clients {
		add(fmt.Sprintf("insert/%d", n), n, 1, exec(plainPut))
		add(fmt.Sprintf("submit/%d", n), n, 1, exec(submitOne))
		add(fmt.Sprintf("river/%d", n), n, 1, river)
	}
	for _, n := range clients {
		add(fmt.Sprintf("order/%d", n), n, 1, k.order(nothing))
		add(fmt.Sprintf("order+insert/%d", n), n, 1, beside(plainPut))
		add(fmt.Sprintf("order+submit/%d", n), n, 1, beside(submitOne))
		add(fmt.Sprintf("order+river/%d", n), n, 1, k.order(job))
	}
	many := func(query string) func(context.Context, int64) error {
		return func(ctx context.Context, n int64) error {
			_, err := k.pool.Exec(ctx, query, runIDs(n), k.value)
			return err
		}
	}
	jobs := func(fast bool) func(context.Context, int64) error {
		return func(ctx context.Context, n int64) error {
			list := make([]rival.Job, 0, batchSize)
			for _, id := range runIDs(n) {
				list = append(list, rival.Job{ID: id, Value: k.value})
			}
			return k.river.InsertMany(ctx, list, fast)
		}
	}
	add("insert, batches", 1, batchSize, many(plainMany))
	add("submit, batches", 1, batchSize, many(submitMany))
	add("river, batches", 1, batchSize, jobs(false))
	add("river, COPY", 1, batchSize, jobs(true))
	return all
}

// order returns a call that does two things in one transaction: it inserts an order of the program,
// and calls the function `then`, which may submit a run or a job for this order.
func (k *desk) order(then func(ctx context.Context, tx pgx.Tx, id string) error) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		return pgx.BeginFunc(ctx, k.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, orderPut, runID(n)); err != nil {
				return err
			}
			return then(ctx, tx, runID(n))
		})
	}
}

// runID returns the public id of the run of a submission. It has the length that ids of orders
// often have.
func runID(n int64) string { return fmt.Sprintf("order-%012d", n) }

// runIDs returns the ids of a batch. The parameter `last` is the number of the last submission
// of the batch.
func runIDs(last int64) []string {
	ids := make([]string, batchSize)
	for i := range ids {
		ids[i] = runID(last - batchSize + 1 + int64(i))
	}
	return ids
}
