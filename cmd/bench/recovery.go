package main

import (
	"context"
	"errors"
	"fmt"
)

// recovery measures the scan and the takeover, in databases of their own. The
// runs that are taken over stand next to the finished ones.
func recovery(ctx context.Context, dsn string, wf *workflow, p plan, t *table) (err error) {
	var scenes [2]*scene
	for i, finished := range []int{0, p.finished} {
		d, failed := makeDatabase(ctx, dsn, fmt.Sprintf("finished_%d", finished))
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, d.close()) }() // in the end: passes alternate between the two
		if scenes[i], err = stage(ctx, d, wf, finished); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	found, err := scans(ctx, scenes[0], scenes[1], p.scans)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	t.scans(found, p.finished)
	d := scenes[1].d
	if err := d.exec(ctx, "takeover", `DELETE FROM engine.run WHERE state < 10`); err != nil {
		return err
	}
	rounds, err := takeovers(ctx, d, wf, p.flight, p.rounds, p.profile)
	if err != nil {
		return err
	}
	t.takeovers(rounds, p.flight, p.finished)
	return nil
}
