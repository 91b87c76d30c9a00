package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// A subject is one row of a table, and the function that measures this row in a round.
type subject struct {
	row     string
	measure func(ctx context.Context, round int) error
}

// steps measures in turn the engine on each store, the yardstick, and the engine on the naive
// store.
func (l runLab) steps(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	dir, err := os.MkdirTemp("", "engine-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	closing.add(func() error { return os.RemoveAll(dir) })

	yard, yardDB, err := l.yardstick(ctx, dir, &closing)
	if err != nil {
		return err
	}
	naive, err := l.naive(ctx, &closing)
	if err != nil {
		return err
	}
	pg, err := l.postgres(ctx, "steps", &closing)
	if err != nil {
		return err
	}
	lite, err := l.sqlite(ctx, dir, &closing)
	if err != nil {
		return err
	}
	subjects := []subject{
		l.pgbenchAt(yard, yardDB, 64), l.engineAt("postgres", pg, 256), l.engineAt("naive", naive, 64), l.engineAt("postgres", pg, 64),
		l.engineAt("sqlite", lite, 256), l.engineAt("postgres", pg, 1024), l.pgbenchAt(yard, yardDB, 1), l.engineAt("naive", naive, 1),
		l.engineAt("postgres", pg, 1), l.engineAt("sqlite", lite, 1), l.engineAt("sqlite", lite, 64), l.engineAt("sqlite", lite, 1024),
	}
	if err := l.inTurn(ctx, subjects); err != nil {
		return err
	}
	l.t.steps(l.book, l.p, yard.name())
	return nil
}

// inTurn measures all subjects that match the option -rows, round after round. Before each
// measurement it vacuums the databases and makes a checkpoint. So the server does not clean up
// after one subject during the measurement of the next one. After a checkpoint PostgreSQL writes
// whole pages to its log. Each measurement begins after a checkpoint, so all subjects have this
// extra cost.
func (l runLab) inTurn(ctx context.Context, subjects []subject) (err error) {
	wake, err := l.serverLab().stopAutovacuum(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wake()) }()
	if !slices.ContainsFunc(subjects, func(s subject) bool { return l.rows.MatchString(s.row) }) {
		return fmt.Errorf("-rows %s matches none of its rows", l.rows)
	}
	for round := range l.p.rounds {
		for _, s := range subjects {
			if !l.rows.MatchString(s.row) {
				continue
			}
			if err := l.serverLab().settle(ctx); err != nil {
				return err
			}
			if err := s.measure(ctx, round); err != nil {
				return fmt.Errorf("%s: %w", s.row, err)
			}
		}
	}
	return nil
}

// yardstick creates a database and a yardstick that uses this database. Then it lets the
// yardstick run for a short time, as a warm-up.
func (l runLab) yardstick(ctx context.Context, dir string, closing *closers) (yardstick, *database, error) {
	d, err := makeDatabase(ctx, l.dsn, "yardstick")
	if err != nil {
		return nil, nil, err
	}
	closing.add(d.close)
	yard, err := newYardstick(ctx, d, dir, l.p.scale)
	if err != nil {
		return nil, nil, err
	}
	_, err = yard.rate(ctx, 64, min(l.p.each, 5*l.p.warm))
	return yard, d, err
}

// naive starts an engine on a naive store in a new database. The type `naive` explains what such a
// store is.
func (l runLab) naive(ctx context.Context, closing *closers) (*running, error) {
	d, err := makeDatabase(ctx, l.dsn, "naive")
	if err != nil {
		return nil, err
	}
	closing.add(d.close)
	store, err := newNaive(ctx, d, naiveConnections)
	if err != nil {
		return nil, err
	}
	closing.add(store.Close)
	return l.start(ctx, setup{store: store, d: d, options: naiveOptions(), unary: true}, closing)
}

// postgres starts an engine on a new PostgreSQL database.
func (l runLab) postgres(ctx context.Context, name string, closing *closers) (*running, error) {
	d, err := makeDatabase(ctx, l.dsn, name)
	if err != nil {
		return nil, err
	}
	closing.add(d.close)
	return l.start(ctx, setup{store: d.store, d: d}, closing)
}

// sqlite starts an engine on a new SQLite file in dir.
func (l runLab) sqlite(ctx context.Context, dir string, closing *closers) (*running, error) {
	store, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	closing.add(store.Close)
	return l.start(ctx, setup{store: store, options: engine.Options{Writers: 1}}, closing)
}

func (l runLab) start(ctx context.Context, s setup, closing *closers) (*running, error) {
	r, err := start(ctx, l.work, s)
	if err != nil {
		return nil, err
	}
	closing.add(r.stop)
	return r, nil
}

// pgbenchAt returns a subject that measures the yardstick with the given number of clients,
// after a warm-up.
func (l runLab) pgbenchAt(yard yardstick, d *database, clients int) subject {
	row := fmt.Sprintf("pgbench/%d", clients)
	return subject{row, func(ctx context.Context, round int) error {
		if _, err := yard.rate(ctx, clients, l.p.warm); err != nil {
			return err
		}
		begin, known := d.cpu(ctx)
		if _, err := yard.rate(ctx, clients, 0); err != nil {
			return err
		}
		before, _ := d.cpu(ctx)
		rate, err := yard.rate(ctx, clients, l.p.each)
		if err != nil {
			return err
		}
		after, _ := d.cpu(ctx)
		l.book.put(round, row, "tps", rate)
		// The variable `used` is the CPU time of the updates, without the CPU time of the
		// connections. If it is zero or negative, nearly all CPU time was for the connections. Then
		// there is no figure.
		if used := (after - before) - (before - begin); known && rate > 0 && used > 0 {
			l.book.put(round, row, "all µs/step", microseconds(used)/(rate*l.p.each.Seconds()))
		}
		l.tell("round %d: %s: %.0f commits/s", round+1, row, rate)
		return nil
	}}
}

// engineAt returns a subject that measures an engine with the given number of runs in flight.
// Each run has five steps.
func (l runLab) engineAt(name string, r *running, inFlight int) subject {
	return l.loaded(fmt.Sprintf("%s/%d", name, inFlight), r, name == "postgres" && inFlight == 256, steps,
		load{workflow: "five", end: status.RunSucceeded, inFlight: inFlight, warm: l.p.warm, window: l.p.each})
}

// loaded returns a subject that measures an engine under a load. The parameter `calls` is the
// number of calls in each run. If `profiled` is true, the profiler may write a CPU profile of the
// measurement.
func (l runLab) loaded(row string, r *running, profiled bool, calls int, ld load) subject {
	return subject{row, func(ctx context.Context, round int) error {
		var res result
		measure := func() (err error) { res, err = r.loader().load(ctx, ld); return err }
		var err error
		if profiled {
			err = l.prof.during(measure)
		} else {
			err = measure()
		}
		if err != nil {
			return err
		}
		res.put(l.book, round, row, calls)
		l.tell("round %d: %s: %.0f steps/s, p50 %.1f ms", round+1, row, res.stepsPerSecond(), milliseconds(res.quantile(0.5)))
		return nil
	}}
}

// closers holds functions that clean up. The method `close` calls them in reverse order.
type closers struct{ all []func() error }

func (c *closers) add(fn func() error) { c.all = append(c.all, fn) }

func (c *closers) close() error {
	var errs error
	for i := len(c.all) - 1; i >= 0; i-- {
		errs = errors.Join(errs, c.all[i]())
	}
	return errs
}
