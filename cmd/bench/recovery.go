package main

import (
	"context"
	"errors"
	"fmt"
)

// recovery measures the scan and the takeover, in databases of their own. The
// runs that are taken over stand next to the finished ones.
func (l *lab) recovery(ctx context.Context) (err error) {
	var closing closers // in the end: passes alternate between the two
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
	rounds, err := takeovers(ctx, d, l.work, l.p.flight, l.p.takes, l.prof)
	if err != nil {
		return err
	}
	for i, t := range rounds {
		l.book.put(i, "takeover", "ms", milliseconds(t.took))
		l.book.put(i, "psql", "ms", milliseconds(t.psql))
	}
	l.t.takeovers(rounds, l.p.flight, l.p.finished)
	return nil
}
