package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/goals"
	storeintake "github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// starter is the name under which runs of schedules are submitted and cancelled.
const starter = "schedule"

// A ticker starts the runs that no caller submits to its node: the runs of schedules, the runs
// that other programs have submitted in the database, and the runs of events.
type ticker struct {
	cfg    Config
	shared *owner.Shared
	submit func(context.Context, Submission) (store.Submitted, error)
	hints  <-chan struct{} // receives a value when there may be submissions of other programs
	// sentHints receives a value when there may be events.
	sentHints <-chan struct{}
	keys      goals.Keeper // nil = the store keeps no goals

	firings firings.Store // nil = the store has no business tables
	fired   chan struct{} // receives a value when there may be an open firing
	due     chan struct{} // receives a value when a schedule may be due
	quiet   *quiet
}

// startTicks starts a goroutine that starts the runs of schedules until ctx ends. The goroutine closes
// the result when it ends. startTicks starts no goroutine if the store keeps no schedules, or if the
// engine works only on its own runs. Then the result is closed already.
func (n ticker) startTicks(ctx context.Context, role schedules.Store) <-chan struct{} {
	done := make(chan struct{})
	if role == nil || n.cfg.Options.OnlyOwnRuns {
		close(done)
		return done
	}
	st := store.Complete(n.cfg.Store)
	firer := ticks.New(ticks.Config{
		Store: role, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Now: n.shared.Clock.Now, Pass: st.Pass,
		Definition: n.shared.Defs.Shared, Hints: n.due, NoWork: n.quiet.is, MaxPause: n.cfg.Options.MaxScan,
		Submit: func(ctx context.Context, r ticks.Run) error {
			_, err := n.submit(ctx, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: starter, trigger: r.Trigger, kind: naming.BySchedule})
			var held *KeyError
			if errors.As(err, &held) { // another run has the unique key, so this tick ends without a run
				n.cfg.Logger.Warn("a tick starts no run", "run", r.Name, "error", held)
				return nil
			}
			return err
		},
		Open: func(ctx context.Context, name string) (bool, error) {
			run, err := st.Find(ctx, name)
			if errors.Is(err, store.ErrNotFound) {
				return false, nil // retention has removed the run, so it is not open
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

// cancelTick posts the verb `cancel` to a run that a schedule has started. While this message is in
// the inbox, another call posts no second one.
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
	if role == nil || n.cfg.Options.OnlyOwnRuns {
		close(done)
		return done
	}
	taker := intake.New(intake.Config{
		Store: role, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Pass: store.Complete(n.cfg.Store).Pass,
		Definition: n.shared.Defs.Shared, Hints: n.hints, NoWork: n.quiet.is, MaxPause: n.cfg.Options.MaxScan,
		Submit: func(ctx context.Context, r intake.Run) (bool, error) {
			res, err := n.submit(ctx, Submission{
				Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, ReplyTo: r.ReplyTo, Correlation: r.Correlation,
				StartBy: r.StartBy, Priority: r.Priority, trigger: "submitted", kind: naming.BySubmission,
			})
			switch {
			case err != nil || !res.Exists:
			case res.Name != r.Name:
				// Another run holds the unique key, so no run gets the name of the submission. The submitter
				// would wait for this name for ever, so the submission is refused.
				err = n.otherRun(ctx, r.Workflow, res)
			default:
				err = sameRun(ctx, n.cfg, n.shared.Defs, r, res)
			}
			return err != nil && refused(ctx, err), err
		},
	})
	go func() {
		defer close(done)
		taker.Run(ctx)
	}()
	return done
}

// startEvents starts a goroutine that starts the runs of events until ctx ends. The goroutine closes
// the result when it ends. startEvents starts no goroutine if the store does not keep events or
// published workflows, or if the engine works only on its own runs. Then the result is closed already.
func (n ticker) startEvents(ctx context.Context, role events.Store, published schedules.Store) <-chan struct{} {
	done := make(chan struct{})
	if role == nil || published == nil || n.cfg.Options.OnlyOwnRuns {
		close(done)
		return done
	}
	box := inbox.New(inbox.Config{
		Store: role, Published: published, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger,
		Definition: n.shared.Defs.Shared, Hints: n.sentHints, NoWork: n.quiet.is, MaxPause: n.cfg.Options.MaxScan,
		Submit: func(ctx context.Context, r inbox.Run) (bool, error) {
			_, err := n.submit(ctx, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, trigger: r.Trigger, kind: naming.ByEvent})
			return err != nil && refused(ctx, err), err
		},
		SubmitAll: submitKeys(n.cfg), Fire: n.fireEvent, Reset: n.resetGoal,
	})
	go func() {
		defer close(done)
		box.Run(ctx)
	}()
	return done
}

// otherRun returns the error for a submission whose unique key the run `res` holds. It returns an
// error of the store if it cannot read that run.
func (n ticker) otherRun(ctx context.Context, workflow string, res store.Submitted) error {
	run, err := store.Complete(n.cfg.Store).Run(ctx, res.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return &unanswered{err}
	}
	return keyError(ctx, n.cfg.Store, workflow, run.Key, res)
}

// resetGoal frees the unique key of a goal that was reached, because an event asks for it. It does
// nothing if the goal is not reached, or if the same event has reset the goal before. The result
// `refused` is true if the goal cannot be reset, for example because a run of the key is open.
func (n ticker) resetGoal(ctx context.Context, r inbox.Reset) (refused bool, err error) {
	if n.keys == nil {
		return true, errors.New("this store keeps no goals")
	}
	found, err := n.keys.Goals(ctx, goals.Filter{Workflow: r.Workflow, Key: r.Key, Limit: 1})
	if err != nil || len(found) == 0 || found[0].LastReset.Reason == r.Reason {
		return false, err
	}
	goal, err := n.keys.ResetGoal(ctx, goals.Reset{Workflow: r.Workflow, Key: r.Key, By: r.By, Reason: r.Reason})
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, goals.ErrNotReached):
		return false, nil
	case errors.Is(err, goals.ErrOpen), errors.Is(err, goals.ErrEver):
		return true, fmt.Errorf("the goal of key %q cannot be reset: %w; run %s has the key", r.Key, err, goal.Name)
	}
	return false, err
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
