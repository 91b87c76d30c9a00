package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
)

// queue measures a queue of many runs without an owner: a million, or fewer with -short. First it
// measures how many runs per second a program can submit, and whether a long queue makes this
// slower. Then it measures how many runs per second an engine claims: first with the mock agent,
// then with an agent that never answers.
func (l historyLab) queue(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	d, err := makeDatabase(ctx, l.dsn, "queue")
	if err != nil {
		return err
	}
	closing.add(d.close)
	err = l.prof.during(func() error {
		n, err := l.enqueue(ctx, d)
		if err != nil {
			return err
		}
		l.book.put(0, "queue", "runs", float64(n))
		if err := d.exec(ctx, "queue", `VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
			return err
		}
		if err := l.claim(ctx, d, "claim and work", nil); err != nil {
			return err
		}
		return l.claim(ctx, d, "claim alone", mute{})
	})
	if err != nil {
		return err
	}
	l.t.queue(l.book)
	return nil
}

// enqueue submits runs in large batches until all planned runs are in the queue, or until the
// time limit has passed. It returns how many runs it submitted.
func (l historyLab) enqueue(ctx context.Context, d *database) (int, error) {
	chunk := make([]engine.Submission, min(l.p.queued, 10_000))
	for i := range chunk {
		chunk[i] = engine.Submission{Definition: l.work.def, Workflow: "five", Vars: l.work.vars, By: "bench"}
	}
	cfg := engine.Config{Store: d.store, Options: engine.Options{Address: "bench"}}
	began := time.Now()
	n := 0
	for round := 0; n < l.p.queued && time.Since(began) < l.p.queueLimit; round++ {
		at := time.Now()
		if _, err := engine.EnqueueAll(ctx, cfg, chunk); err != nil {
			return n, err
		}
		n += len(chunk)
		rate := float64(len(chunk)) / time.Since(at).Seconds()
		if round == 0 {
			l.book.put(0, "submit, first", "runs/s", rate)
		}
		l.book.put(round, "submit, each", "runs/s", rate)
		l.book.put(0, "submit, last", "runs/s", rate)
		if round%10 == 0 {
			l.tell("queue: %d runs, %.0f/s", n, rate)
		}
	}
	l.book.put(0, "submit", "runs/s", float64(n)/time.Since(began).Seconds())
	return n, nil
}

// claim starts an engine, which claims runs for a limited time. It records how many runs per
// second the engine claimed, and how many steps per second it finished.
func (l historyLab) claim(ctx context.Context, d *database, row string, invoker invoke.Invoker) (err error) {
	began := time.Now()
	r, err := start(ctx, l.work, setup{store: d.store, d: d, invoker: invoker})
	if err != nil {
		return err
	}
	ended, err := r.busy(ctx, l.p.claim)
	took := ended.Sub(began)
	if err := errors.Join(err, r.stopNow()); err != nil {
		return err
	}
	var taken, done int
	const counted = `SELECT count(*), count(*) FILTER (WHERE state >= 10) FROM engine.run WHERE owner = $1`
	if err := d.db.QueryRowContext(ctx, counted, int(r.engine)).Scan(&taken, &done); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	l.book.put(0, row, "runs/s", float64(taken)/took.Seconds())
	l.book.put(0, row, "steps/s", float64(done*steps)/took.Seconds())
	l.tell("queue: %s: %d runs, %d done", row, taken, done)
	return d.store.Leave(ctx, r.engine)
}
