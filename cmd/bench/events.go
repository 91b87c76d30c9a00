package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
)

// noted is the source of a workflow whose runs are started by events: each event starts one run.
// The run ends at once, so its journal has only one row.
const noted = `workflow "noted" {
  deadline = "2h"
  variable "value" { type = string }
  on_event "noted" { variables = { value = event.data.value } }
  step "a" { value = var.value }
}
`

func notedSource() fs.FS { return fstest.MapFS{"noted.hcl": {Data: []byte(noted)}} }

// A sending is one way to send events: how many clients send, and how many events each of their
// transactions holds.
type sending struct {
	row           string // name of this way of sending; part of the name of a row in the results
	clients, size int
}

// sendings returns the ways to send n events: each event in its own transaction, in batches, and
// all of them in one transaction.
func sendings(n int) []sending {
	return []sending{{"each", manyClients, 1}, {"batches", 4, min(batchSize, n)}, {"all", 1, n}}
}

// plainEvents creates a table with the same columns as the engine's table of events. No engine
// uses this table: plainDrain removes its rows.
const plainEvents = `CREATE TABLE bench.events (seq int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE DEFAULT gen_random_uuid()::text, type text NOT NULL,
	data jsonb NOT NULL DEFAULT '{}', sent_by text NOT NULL DEFAULT session_user, sent_at timestamptz NOT NULL DEFAULT clock_timestamp())`

// An eventTable is a table into which events are sent.
type eventTable struct {
	kind, name string
	// The function `drain` is called before n events are sent. It makes an engine or a plain client
	// remove these events. The returned function `wait` waits until all n events are removed. The
	// caller may call `wait` only after all events are sent.
	drain func(ctx context.Context, d *database, n int) (wait func() error)
}

// events measures how many events per second an engine turns into runs, for each way to send
// them. For comparison, it also measures how fast a plain client removes the same rows from a
// plain table.
func (l startsLab) events(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	w, err := linkSource(ctx, l.work.catalog, notedSource(), "noted")
	if err != nil {
		return err
	}
	d, err := makeDatabase(ctx, l.dsn, "events")
	if err != nil {
		return err
	}
	closing.add(d.close)
	if err := d.exec(ctx, "make a plain table", `CREATE SCHEMA bench`, plainEvents); err != nil {
		return err
	}
	if err := publish(ctx, d, w.def, "noted"); err != nil {
		return err
	}
	r, err := start(ctx, w, setup{store: d.store, d: d, invoker: mute{}})
	if err != nil {
		return err
	}
	closing.add(r.stop)
	d.db.SetMaxIdleConns(manyClients)
	var subjects []subject
	for _, s := range sendings(l.p.starts.events) {
		for _, t := range []eventTable{{"delete", "bench.events", plainDrain}, {"events", "engine.events", engineDrain}} {
			subjects = append(subjects, l.sent(d, s, t))
		}
	}
	if err := l.inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.events(l.book, l.p)
	return nil
}

// sent returns a subject that sends events into a table and measures how long it takes until all
// events are removed. The measurement begins with the first send. If all events are sent in one
// transaction, the measurement begins with the commit of this transaction.
func (l startsLab) sent(d *database, s sending, t eventTable) subject {
	row := t.kind + "/" + s.row
	return subject{row, func(ctx context.Context, round int) error {
		ctx, cancel := context.WithCancel(ctx) // ends the removal if the events cannot be sent
		defer cancel()
		n := l.p.starts.events / s.size * s.size
		runs, err := d.runs(ctx)
		if err != nil {
			return err
		}
		before, known := d.cpu(ctx)
		wait := t.drain(ctx, d, n)
		began, err := s.send(ctx, d.db, t.name, n)
		sent := time.Now()
		if err != nil {
			cancel()
		}
		if err := errors.Join(err, wait()); err != nil {
			return err
		}
		took := time.Since(began)
		after, _ := d.cpu(ctx)
		l.book.put(round, row, "events/s", float64(n)/took.Seconds())
		if s.clients > 1 {
			l.book.put(round, row, "sent/s", float64(n)/sent.Sub(began).Seconds())
		}
		if known {
			l.book.put(round, row, "all µs/event", microseconds(after-before)/float64(n))
		}
		l.tell("round %d: %s: %.0f events/s", round+1, row, float64(n)/took.Seconds())
		now, err := d.runs(ctx)
		if want := runs + n; err == nil && t.kind == "events" && now != want {
			err = fmt.Errorf("%d events have started %d runs", n, now-runs)
		}
		return err
	}}
}

// send sends n events into a table. It returns the time after which the events can be removed: the
// time of the first send, or of the commit if all events are in one transaction.
func (s sending) send(ctx context.Context, db *sql.DB, table string, n int) (began time.Time, err error) {
	insert := `INSERT INTO ` + table + ` (type, data) SELECT 'noted', jsonb_build_object('value', repeat('x', $1)) FROM generate_series(1, $2)`
	began = time.Now()
	if s.clients == 1 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return began, err
		}
		for left := n; left > 0 && err == nil; left -= batchSize {
			_, err = tx.ExecContext(ctx, insert, payload, min(left, batchSize))
		}
		began = time.Now()
		if err != nil {
			return began, errors.Join(fmt.Errorf("send events: %w", err), tx.Rollback())
		}
		return began, tx.Commit()
	}
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, s.clients)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && left.Add(-int64(s.size)) >= 0 {
				_, errs[i] = db.ExecContext(ctx, insert, payload, s.size)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return began, fmt.Errorf("send events: %w", err)
	}
	return began, nil
}

// engineDrain returns a function that waits until the running engine has removed all events.
// The engine removes events while they are sent.
func engineDrain(ctx context.Context, d *database, _ int) (wait func() error) {
	const look = 2 * time.Millisecond
	return func() error {
		for {
			var (
				waiting bool
				bad     sql.NullString
			)
			err := d.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM engine.events), (SELECT quarantined FROM engine.events WHERE quarantined IS NOT NULL LIMIT 1)`).Scan(&waiting, &bad)
			switch {
			case err != nil:
				return fmt.Errorf("look for events: %w", err)
			case bad.Valid:
				return fmt.Errorf("an event starts no run: %s", bad.String)
			case !waiting:
				return nil
			}
			if err := pause.For(ctx, look); err != nil {
				return fmt.Errorf("events wait: %w", err)
			}
		}
	}
}

// plainBatch is the number of rows that one statement of the plain client removes. It is also the
// number of events that an engine removes in one batch.
const plainBatch = 500

// plainDrain removes rows with DELETE statements, each in its own transaction, as a simple consumer
// does.
func plainDrain(ctx context.Context, d *database, n int) (wait func() error) {
	const (
		look  = 2 * time.Millisecond
		query = `DELETE FROM bench.events WHERE seq IN (SELECT seq FROM bench.events ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id, type, data`
	)
	ended := make(chan error, 1)
	go func() {
		ended <- func() error {
			for left := n; left > 0; {
				removed, err := received(ctx, d.db, query, plainBatch)
				if err != nil {
					return fmt.Errorf("remove events: %w", err)
				}
				if left -= removed; removed == 0 {
					if err := pause.For(ctx, look); err != nil {
						return fmt.Errorf("%d of %d plain events wait: %w", left, n, err)
					}
				}
			}
			return nil
		}()
	}()
	return func() error { return <-ended }
}

// received executes a query, reads all rows of its result, and returns their number.
func received(ctx context.Context, db *sql.DB, query string, args ...any) (n int, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(sql.RawBytes)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}
