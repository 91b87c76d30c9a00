package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/machine/status"
)

const (
	replyQueue = "bench" // name of the queue for the replies
	takers     = 4       // number of consumers that take replies at the same time
	// Largest number of replies that a consumer takes at a time: the default of
	// engine.take_replies.
	takeSize    = 100
	repliesEach = 3 // replies of a run that succeeds: accepted, started, succeeded
)

// replies measures two things: how much slower runs with replies are than runs without replies, and
// how fast consumers take the replies out of a queue.
func (l startsLab) replies(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	pg, err := l.runLab().postgres(ctx, "replies", &closing)
	if err != nil {
		return err
	}
	at := func(row string, r *running, profiled bool) subject {
		return l.runLab().loaded(row, r, profiled, steps, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, warm: l.p.warm, window: l.p.each})
	}
	err = l.inTurn(ctx, []subject{at("no replies/256", pg, false), at("replies/256", pg.replying("table:"+replyQueue), true)})
	if err != nil {
		return err
	}
	if err := l.taken(ctx, pg.d); err != nil {
		return err
	}
	l.t.replies(l.book)
	return nil
}

// plainReplies are the statements that copy the replies into a plain table. The table has only the
// columns that a consumer reads.
var plainReplies = []string{
	`CREATE SCHEMA bench`,
	`CREATE TABLE bench.replies (n int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text NOT NULL, workflow text NOT NULL, key text NOT NULL, correlation text NOT NULL,
		seq int4 NOT NULL, status text NOT NULL, at timestamptz NOT NULL)`,
	`INSERT INTO bench.replies (run, workflow, key, correlation, seq, status, at) SELECT run, workflow, coalesce(key, ''), correlation, seq, status, at FROM engine.replies WHERE NOT done ORDER BY at`,
}

// taken measures how many replies per second several consumers take out of the queue. For
// comparison, it measures how many rows per second they remove from a plain table with the
// same replies.
func (l startsLab) taken(ctx context.Context, d *database) error {
	if err := d.exec(ctx, "copy the replies", plainReplies...); err != nil {
		return err
	}
	if err := l.serverLab().settle(ctx); err != nil {
		return err
	}
	d.db.SetMaxIdleConns(takers)
	for _, from := range []struct{ row, count, take string }{
		{"take/plain", `SELECT count(*) FROM bench.replies`,
			`DELETE FROM bench.replies WHERE n IN (SELECT n FROM bench.replies ORDER BY n LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING run, workflow, key, correlation, seq, status, at`},
		{"take/replies", `SELECT count(*) FROM engine.reply WHERE NOT done`,
			`SELECT run, workflow, key, correlation, seq, status, at FROM engine.take_replies('` + replyQueue + `', $1)`},
	} {
		var n int
		if err := d.db.QueryRowContext(ctx, from.count).Scan(&n); err != nil {
			return fmt.Errorf("count the replies: %w", err)
		}
		if n == 0 {
			return nil // the option -rows has left out the runs with replies
		}
		before, known := d.cpu(ctx)
		began := time.Now()
		if err := takeAll(ctx, d, from.take, n); err != nil {
			return fmt.Errorf("%s: %w", from.row, err)
		}
		took := time.Since(began)
		after, _ := d.cpu(ctx)
		l.book.put(0, from.row, "replies/s", float64(n)/took.Seconds())
		l.book.put(0, from.row, "replies", float64(n))
		if known {
			l.book.put(0, from.row, "all µs/reply", microseconds(after-before)/float64(n))
		}
		l.tell("%s: %d replies, %.0f/s", from.row, n, float64(n)/took.Seconds())
	}
	return nil
}

// takeAll lets all consumers take rows until they have taken n rows together. Each call of the
// query is a transaction. The only argument of the query is the largest number of rows that it
// may take.
func takeAll(ctx context.Context, d *database, query string, n int) error {
	var taken atomic.Int64
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && taken.Load() < int64(n) {
				var got int
				if got, errs[i] = received(ctx, d.db, query, takeSize); got == 0 && errs[i] == nil {
					// Another consumer is taking the last rows. So wait a moment, and look again.
					errs[i] = pause.For(ctx, time.Millisecond)
				}
				taken.Add(int64(got))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
