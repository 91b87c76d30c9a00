package engine

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/store"
	storeintake "github.com/saga-engine/engine/engine/store/intake"
)

// startIntake turns submissions of other programs into runs until ctx ends, and then closes the
// result. It does nothing if the store has no such submissions, or if the engine works on its own
// runs only.
func (n ticker) startIntake(ctx context.Context, role storeintake.Store) <-chan struct{} {
	done := make(chan struct{})
	if role == nil || n.cfg.Options.Alone {
		close(done)
		return done
	}
	taker := intake.New(intake.Config{
		Store: role, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Pass: store.Complete(n.cfg.Store).Pass,
		Definition: n.shared.Defs.Definition, Hints: n.hints, MaxPause: n.cfg.Options.MaxScan,
		Submit: func(ctx context.Context, r intake.Run) (bool, error) {
			_, err := n.submit(ctx, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, trigger: "submitted"})
			return err != nil && refused(ctx, err), err
		},
	})
	go func() {
		defer close(done)
		taker.Run(ctx)
	}()
	return done
}

// refused reports whether an error of Submit is about the submission itself, so that another try, or
// another engine, would return the same error.
func refused(ctx context.Context, err error) bool {
	var (
		silent *unanswered
		key    *crypt.KeyError
		open   *owner.OpenOutcome
	)
	return ctx.Err() == nil && !errors.Is(err, ErrStopping) && !owner.OverFor(err) &&
		!errors.As(err, &silent) && !errors.As(err, &key) && !errors.As(err, &open)
}
