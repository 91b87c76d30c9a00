package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store/postgres"
)

// timerLength is the length of the timer in the workflow "timer", in workflow.hcl.
const timerLength = 5 * time.Second

// senders is the number of goroutines that send signals at the same time.
const senders = 16

// A waitResult holds the figures of waiting runs.
type waitResult struct {
	bytes, goroutines float64 // bytes of memory, and goroutines, that each waiting run costs
	rows              float64 // rows that the engine commits for each run until the run waits
	lags              [3]time.Duration
	sent, perSecond   float64 // signals that are sent per second, and runs that end per second
	plain             float64 // transactions per second that insert a signal into plain tables
}

// waits measures runs that wait: the memory of the engine for each of them, how late timers end,
// and how many signals per second the engine takes.
func (l processLab) waits(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "waits")
	if err != nil {
		return err
	}
	closing.add(d.close)
	f, err := waitingRuns(ctx, l.work, d, l.p.waits, l.prof)
	if err != nil {
		return err
	}
	l.book.put(0, "waits", "bytes/run", f.bytes)
	l.book.put(0, "waits", "goroutines/run", f.goroutines)
	l.book.put(0, "waits", "rows/run", f.rows)
	for i, name := range []string{"lag p50", "lag p99", "lag max"} {
		l.book.put(0, "waits", name, milliseconds(f.lags[i]))
	}
	l.book.put(0, "waits", "sent/s", f.sent)
	l.book.put(0, "waits", "signals/s", f.perSecond)
	l.book.put(0, "waits", "plain/s", f.plain)
	l.t.waits(l.book, l.p.waits)
	return nil
}

// waitingRuns starts an engine with p.waiting runs that wait for a signal. It measures their
// memory, then the lag of timers, and then how fast signals end some of the runs. The profiler
// writes a CPU profile only during the last measurement.
func waitingRuns(ctx context.Context, w *work, d *database, p waitPlan, prof *profiler) (f waitResult, err error) {
	r, err := start(ctx, w, setup{store: d.store, d: d, invoker: mute{}})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, r.stopNow()) }()
	fill := func(workflow string, n int) error {
		if err := r.loader().fill(ctx, workflow, n); err != nil {
			return err
		}
		return r.quiet(ctx)
	}
	// These runs allocate the memory that does not depend on p.waiting.
	if err := fill("waiting", 64); err != nil {
		return f, err
	}
	rows, before := r.store.rows.Load(), inUse()
	if err := fill("waiting", p.waiting); err != nil {
		return f, err
	}
	after := inUse()
	n := float64(p.waiting)
	f.bytes, f.goroutines = (after.Bytes-before.Bytes)/n, (after.Goroutines-before.Goroutines)/n
	f.rows = float64(r.store.rows.Load()-rows) / n

	if err := fill("timer", p.timers); err != nil {
		return f, err
	}
	if err := d.ended(ctx, "timer", p.timers); err != nil {
		return f, err
	}
	if f.lags, err = d.lags(ctx, timerLength); err != nil {
		return f, err
	}
	if f.plain, err = plainSignals(ctx, d, p.signals); err != nil {
		return f, err
	}
	err = prof.during(func() (err error) {
		f.sent, f.perSecond, err = signalled(ctx, d, p.signals)
		return err
	})
	return f, err
}

// plainTables are the tables of a program that would handle signals without an engine. One
// table has a row for each waiting process, and the other a row for each signal. The data in a
// row are as large as a row of the journal.
var plainTables = []string{
	`CREATE SCHEMA bench`,
	`CREATE TABLE bench.process (id int8 PRIMARY KEY, state text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`,
	`CREATE TABLE bench.signal (id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, process int8 NOT NULL, name text NOT NULL, sent_by text NOT NULL, data bytea NOT NULL,
		at timestamptz NOT NULL DEFAULT clock_timestamp())`,
}

// plainSignals is the yardstick for signals. It makes n transactions, with as many clients as there
// are senders. Each transaction inserts a signal and updates the process that waits for this
// signal. The result is the number of transactions per second.
func plainSignals(ctx context.Context, d *database, n int) (float64, error) {
	const signalSize = 100
	if err := d.exec(ctx, "make plain tables", plainTables...); err != nil {
		return 0, err
	}
	if _, err := d.db.ExecContext(ctx, `INSERT INTO bench.process SELECT g, 'waiting' FROM generate_series(1, $1) g`, n); err != nil {
		return 0, fmt.Errorf("make plain processes: %w", err)
	}
	d.db.SetMaxIdleConns(senders)
	data := make([]byte, signalSize)
	began := time.Now()
	err := together(n, func(k int) error {
		tx, err := d.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO bench.signal (process, name, sent_by, data) VALUES ($1, 'go', 'bench', $2)`, k+1, data)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE bench.process SET state = 'succeeded' WHERE id = $1 AND state = 'waiting'`, k+1)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
	if err != nil {
		return 0, fmt.Errorf("plain signals: %w", err)
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// together calls do(k) for each k from 0 to n-1. The number of its goroutines is the constant
// `senders`. A goroutine ends at its first error.
func together(n int, do func(k int) error) error {
	var next atomic.Int64
	errs := make([]error, senders)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil {
				k := next.Add(1) - 1
				if k >= int64(n) {
					return
				}
				errs[i] = do(int(k))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lags returns how late the runs of the workflow "timer" ended: the time that a run took,
// minus the duration of its timer. The elements of the result are the median, the 99th
// percentile and the maximum.
func (d *database) lags(ctx context.Context, timer time.Duration) (out [3]time.Duration, err error) {
	const query = `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took), percentile_cont(0.99) WITHIN GROUP (ORDER BY took), max(took)
		FROM (SELECT extract(epoch FROM finished_at - created_at)::float8 AS took FROM engine.runs WHERE workflow = 'timer') x`
	var took [3]float64
	if err := d.db.QueryRowContext(ctx, query).Scan(&took[0], &took[1], &took[2]); err != nil {
		return out, fmt.Errorf("read the lag of timers: %w", err)
	}
	for i, s := range took {
		out[i] = time.Duration(s*float64(time.Second)) - timer
	}
	return out, nil
}

// ended waits until n runs of a workflow have ended.
func (d *database) ended(ctx context.Context, workflow string, n int) error {
	const look = 100 * time.Millisecond
	for {
		var done int
		err := d.db.QueryRowContext(ctx, `SELECT count(*) FROM engine.runs WHERE workflow = $1 AND finished_at IS NOT NULL`, workflow).Scan(&done)
		if err != nil {
			return fmt.Errorf("count the ended runs of %s: %w", workflow, err)
		}
		if done >= n {
			return nil
		}
		if err := pause.For(ctx, look); err != nil {
			return fmt.Errorf("%d of %d runs of %s have ended: %w", done, n, workflow, err)
		}
	}
}

// signalled sends a signal to n waiting runs, as `engine signal` does, and waits until these runs
// have ended. The result `sent` is n divided by the seconds until the last signal was sent. The
// result `perSecond` is n divided by the seconds until the last run had ended.
func signalled(ctx context.Context, d *database, n int) (sent, perSecond float64, err error) {
	runs, err := d.waiting(ctx, n)
	if err != nil {
		return 0, 0, err
	}
	// A real signal comes from another process than the engine. So send the signals through
	// connections of their own, and not through the engine's connections.
	own, err := postgres.Open(ctx, d.dsn.String(), postgres.Options{MaxConns: senders})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	op := &operator.Operator{Store: own, Defs: journal.NewDefinitions(own, nil)}
	began := time.Now()
	err = together(len(runs), func(k int) error {
		_, err := op.Ask(ctx, runs[k], machine.SignalReceived{Name: "go", By: "bench"}, "bench")
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("send a signal: %w", err)
	}
	sent = float64(len(runs)) / time.Since(began).Seconds()
	if err := d.ended(ctx, "waiting", len(runs)); err != nil {
		return 0, 0, err
	}
	return sent, float64(len(runs)) / time.Since(began).Seconds(), nil
}

// waiting returns the ids of n runs that wait for a signal.
func (d *database) waiting(ctx context.Context, n int) (runs []status.RunID, err error) {
	rows, err := d.db.QueryContext(ctx, `SELECT run_id FROM engine.run WHERE state = $1 LIMIT $2`, int(status.RunWaiting), n)
	if err != nil {
		return nil, fmt.Errorf("find waiting runs: %w", err)
	}
	defer func(rows *sql.Rows) { err = errors.Join(err, rows.Close()) }(rows)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("find waiting runs: %w", err)
		}
		runs = append(runs, status.RunID(id))
	}
	if len(runs) < n && rows.Err() == nil {
		return nil, fmt.Errorf("%d runs wait, want %d", len(runs), n)
	}
	return runs, rows.Err()
}
