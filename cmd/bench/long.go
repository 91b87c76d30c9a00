package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A historyLab has the methods that measure a long load, a long queue, many stored runs, and
// many calls.
type historyLab struct{ *lab }

// minutes is the length of the long measurement, in minutes.
const minutes = 5

// long measures an engine under load for five minutes without a pause, with autovacuum on. If
// the database becomes slower with age, the figures of the last minute are worse. But other
// programs on the machine can have the same effect. So long then measures the old database and
// a new one in turn.
func (l historyLab) long(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	pg, err := l.runLab().postgres(ctx, "long", &closing)
	if err != nil {
		return err
	}
	var res result
	err = l.prof.during(func() (err error) {
		res, err = pg.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, warm: l.p.warm, window: l.p.minute, windows: minutes})
		return err
	})
	if err != nil {
		return err
	}
	res.put(l.book, 0, "long/256", steps)
	for i, runs := range res.runs {
		row := fmt.Sprintf("long/minute %d", i+1)
		l.book.put(0, row, "steps/s", float64(runs*steps)/l.p.minute.Seconds())
		idle, stolen := res.marks[i+1].machine.since(res.marks[i].machine)
		l.book.put(0, row, "idle", idle)
		l.book.put(0, row, "stolen", stolen)
		if runs > 0 {
			res.marks[i+1].minus(res.marks[i].usage).put(l.book, 0, row, runs*steps)
		}
	}
	var vacuums int
	const counted = `SELECT coalesce(sum(autovacuum_count), 0) FROM pg_stat_user_tables WHERE schemaname = 'engine'`
	if err := pg.d.db.QueryRowContext(ctx, counted).Scan(&vacuums); err != nil {
		return fmt.Errorf("count autovacuums: %w", err)
	}
	l.book.put(0, "long/256", "autovacuums", float64(vacuums))
	young, err := l.runLab().postgres(ctx, "young", &closing)
	if err != nil {
		return err
	}
	if err := l.aged(ctx, pg, young); err != nil {
		return err
	}
	l.t.long(l.book, l.p)
	return nil
}

// aged measures in turn an engine whose database was under load for minutes, and an engine with
// a new database. Between the measurements the benchmark does not vacuum; only autovacuum does.
func (l historyLab) aged(ctx context.Context, old, young *running) error {
	// Warm up the engine and the agent of the new store, which have just started.
	if _, err := young.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, window: l.p.each}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for round := range l.p.rounds {
		if err := errors.Join(l.brief(ctx, round, "long/aged", old), l.brief(ctx, round, "long/new", young)); err != nil {
			return err
		}
	}
	return nil
}

func (l historyLab) brief(ctx context.Context, round int, row string, pg *running) error {
	res, err := pg.loader().load(ctx, load{workflow: "five", end: status.RunSucceeded, inFlight: 256, warm: l.p.warm, window: l.p.each})
	if err != nil {
		return fmt.Errorf("%s: %w", row, err)
	}
	res.put(l.book, round, row, steps)
	return nil
}
