package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	storeintake "github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// starter is the name under which runs of schedules are submitted and cancelled.
const starter = "schedule"

// A ticker starts the runs that no caller submits to its node: the runs of schedules, and the runs
// that other programs have submitted in the database.
type ticker struct {
	cfg    Config
	shared *owner.Shared
	submit func(context.Context, Submission) (store.Submitted, error)
	hints  <-chan struct{} // receives a value when there may be submissions of other programs

	firings firings.Store // nil = the store has no business tables
	fired   chan struct{} // receives a value when there may be an open firing
}

// startTicks starts a goroutine that starts the runs of schedules until ctx ends. The goroutine closes
// the result when it ends. startTicks starts no goroutine if the store keeps no schedules, or if the
// engine works only on its own runs. Then the result is closed already.
func (n ticker) startTicks(ctx context.Context, role schedules.Store) <-chan struct{} {
	done := make(chan struct{})
	if role == nil || n.cfg.Options.Alone {
		close(done)
		return done
	}
	st := store.Complete(n.cfg.Store)
	firer := ticks.New(ticks.Config{
		Store: role, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Now: n.shared.Clock.Now, Pass: st.Pass,
		Definition: n.shared.Defs.Definition, MaxPause: n.cfg.Options.MaxScan,
		Submit: func(ctx context.Context, r ticks.Run) error {
			_, err := n.submit(ctx, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: starter, trigger: r.Trigger})
			return err
		},
		Open: func(ctx context.Context, name string) (bool, error) {
			run, err := st.Find(ctx, name)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil // retention has removed the run
			}
			return err == nil && !run.State.Final(), err
		},
		Cancel: n.cancelTick, Selections: n.selections(),
	})
	go func() {
		defer close(done)
		firer.Run(ctx)
	}()
	return done
}

// cancelTick posts a cancel to a run that a schedule has started. While the message is in the inbox,
// posting it again adds nothing.
func (n ticker) cancelTick(ctx context.Context, name, reason string) error {
	st := store.Complete(n.cfg.Store)
	run, err := st.Find(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil // retention has removed the run
	}
	if err != nil {
		return err
	}
	data, err := journal.EncodeMessage(n.cfg.Sealer, run.Run, machine.CancelRequested{By: starter, Reason: reason})
	if err != nil {
		return err
	}
	_, err = st.Post(ctx, store.Message{Run: run.Run, Kind: store.MessageVerb, By: starter, Dedup: "tick", Data: data})
	if err != nil {
		return fmt.Errorf("post to run %s: %w", name, err)
	}
	return nil
}

// startIntake starts a goroutine that turns submissions of other programs into runs until ctx ends.
// The goroutine closes the result when it ends. startIntake starts no goroutine if the store does not
// keep such submissions, or if the engine works only on its own runs. Then the result is closed
// already.
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
			_, err := n.submit(ctx, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, ReplyTo: r.ReplyTo, Correlation: r.Correlation, trigger: "submitted"})
			return err != nil && refused(ctx, err), err
		},
	})
	go func() {
		defer close(done)
		taker.Run(ctx)
	}()
	return done
}

// refused reports whether an error of Submit is about the submission itself, so that the engine must
// refuse the submission. A *FullError is such an error, too. After any other error, another try or
// another engine may succeed.
func refused(ctx context.Context, err error) bool {
	var (
		silent *unanswered
		key    *crypt.KeyError
		open   *owner.OpenOutcome
	)
	return ctx.Err() == nil && !errors.Is(err, ErrStopping) && !owner.OverFor(err) &&
		!busy(err) && !errors.As(err, &silent) && !errors.As(err, &key) && !errors.As(err, &open)
}
