package main

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/machine/status"
)

// sagaCalls is how many calls a run of the workflow undone makes: four forward,
// three back.
const sagaCalls = 7

// saga measures runs that turn back: the fourth of five steps fails, and three
// are undone.
func (l *lab) saga(ctx context.Context) (err error) {
	var closing closers
	defer func() { err = errors.Join(err, closing.close()) }()
	pg, err := l.postgres(ctx, "saga", &closing)
	if err != nil {
		return err
	}
	at := func(row string, inFlight int) subject {
		return l.loaded(row, pg, inFlight > 1, sagaCalls,
			load{workflow: "undone", end: status.RunCompensated, inFlight: inFlight, warm: l.p.warm, window: l.p.each})
	}
	if err := l.inTurn(ctx, []subject{at("saga/1", 1), at("saga/256", 256)}); err != nil {
		return err
	}
	l.t.saga(l.book)
	return nil
}
