package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

// A takeover holds the figures of one round: a read with psql and then a takeover.
type takeover struct {
	psql, took time.Duration // duration of the read with psql, and of the takeover
	// CPU time of the engine or psql, and of the server; 0 = not known.
	psqlCPU, tookCPU time.Duration
}

func (t takeover) ratio() float64 { return t.took.Seconds() / t.psql.Seconds() }

// takeovers makes n runs in flight. In each round, psql first reads the rows of these runs. Then a
// new engine takes over the runs from an engine that is dead. The function `takeovers` returns the
// figures of all rounds. The rounds are sorted by a ratio, smallest first: the time of the takeover
// divided by the time of psql.
func takeovers(ctx context.Context, d *database, w *work, n, rounds int, prof *profiler) (out []takeover, err error) {
	psql, err := findTool(ctx, d, "psql")
	if err != nil {
		return nil, err
	}
	owner, err := flocked(ctx, d, w, n)
	if err != nil {
		return nil, err
	}
	for range rounds {
		var t takeover
		before, _ := d.cpu(ctx)
		if t.psql, err = psqlRead(ctx, psql, d, owner); err != nil {
			return nil, err
		}
		between, _ := d.cpu(ctx)
		err = prof.during(func() (err error) { owner, t.took, err = takeOver(ctx, d, n); return err })
		if err != nil {
			return nil, err
		}
		if after, ok := d.cpu(ctx); ok {
			t.psqlCPU, t.tookCPU = between-before, after-between
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b takeover) int { return int(a.ratio()*1000) - int(b.ratio()*1000) })
	return out, nil
}

// takeOver starts an engine and measures the time until the engine owns all n runs and has decided
// each of them. The engine sends no calls, because no agent has a free slot. Then takeOver ends the
// engine, and returns the id of the engine and the time.
func takeOver(ctx context.Context, d *database, n int) (owner store.EngineID, took time.Duration, err error) {
	seen := &passes{all: make(chan struct{})}
	seen.left.Store(int64(n))
	node, err := engine.NewNode(engine.Config{
		Store: d.store, Invoker: silent{}, Capacity: occupied{}, Observer: seen,
		Options: engine.Options{Address: "bench"},
	})
	if err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- node.Run(ctx) }()
	select {
	case <-seen.all:
		took = time.Since(began)
	case err := <-ended:
		return 0, 0, fmt.Errorf("takeover: the engine ended: %w", err)
	}
	owner = node.Engine()
	node.StopNow()
	if err := <-ended; !errors.Is(err, engine.ErrStopping) {
		return 0, 0, fmt.Errorf("takeover: stop the engine: %w", err)
	}
	// Let the engine leave, so that the next engine does not have to wait until the lease of
	// this engine ends.
	if err := d.store.Leave(ctx, owner); err != nil {
		return 0, 0, fmt.Errorf("takeover: %w", err)
	}
	var have int
	if err := d.db.QueryRowContext(ctx, `SELECT count(*) FROM engine.run WHERE owner = $1 AND state < 10 AND fence > 0`, owner).Scan(&have); err != nil {
		return 0, 0, fmt.Errorf("takeover: count: %w", err)
	}
	if have != n {
		return 0, 0, fmt.Errorf("takeover: the engine owns %d runs, not %d", have, n)
	}
	return owner, took, nil
}

// passes is an Observer that closes the channel in the field `all` when the engine has taken over
// all runs. The field `left` is the number of runs that are not taken over yet.
type passes struct {
	engine.NoObserver
	left atomic.Int64
	all  chan struct{}
}

// Pass counts the runs that the engine has taken over.
func (p *passes) Pass(s engine.PassStats) {
	if n := int64(s.Taken); n > 0 {
		if left := p.left.Add(-n); left <= 0 && left+n > 0 {
			close(p.all)
		}
	}
}

// recovery creates two databases: the first has no finished runs, the second has many. It
// measures scans in both databases, and takeovers in the second.
func (l historyLab) recovery(ctx context.Context) (err error) {
	var closing closers // closes both databases only at the end, because the scans use them in turn
	defer func() { err = errors.Join(err, closing.close()) }()
	var scenes [2]*scene
	for i, finished := range []int{0, l.p.finished} {
		d, err := makeDatabase(ctx, l.dsn, fmt.Sprintf("finished_%d", finished))
		if err != nil {
			return err
		}
		closing.add(d.close)
		if scenes[i], err = stage(ctx, d, l.work, finished); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		l.tell("recovery: %d finished runs are there", finished)
	}
	found, err := scans(ctx, scenes[0], scenes[1], l.p.scans)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	l.book.put(0, "scan", "sum µs", microseconds(found[0].sum()))
	l.book.put(0, "scan beside finished", "sum µs", microseconds(found[1].sum()))
	l.t.scans(found, l.p.finished)
	d := scenes[1].d
	if err := d.exec(ctx, "takeover", `DELETE FROM engine.run WHERE state < 10`); err != nil {
		return err
	}
	rounds, err := takeovers(ctx, d, l.work, l.p.pending, l.p.takes, l.prof)
	if err != nil {
		return err
	}
	for i, t := range rounds {
		l.book.put(i, "takeover", "ms", milliseconds(t.took))
		l.book.put(i, "psql", "ms", milliseconds(t.psql))
	}
	l.t.takeovers(rounds, l.p.pending, l.p.finished)
	return nil
}
