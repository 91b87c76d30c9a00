package sources

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/publish"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

// submitTick submits the run of a tick. If another run has the unique key of the run, the tick ends
// without a run.
func (s *Sources) submitTick(ctx context.Context, r ticks.Run) error {
	_, err := s.cfg.Submit(ctx, submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: publish.Starter, Trigger: r.Trigger, Kind: naming.BySchedule})
	var held *refusal.KeyError
	if errors.As(err, &held) {
		s.cfg.Logger.Warn("a tick starts no run", "run", r.Name, "error", held)
		return nil
	}
	return err
}

// openTick reports whether a run that a schedule has started is still open.
func (s *Sources) openTick(ctx context.Context, name string) (bool, error) {
	run, err := s.all.Find(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // retention has removed the run, so it is not open
	}
	return err == nil && !run.State.Final(), err
}

// cancelTick posts the verb `cancel` to a run that a schedule has started. If an earlier call of
// cancelTick has posted the verb, and it is still in the inbox, cancelTick posts nothing.
func (s *Sources) cancelTick(ctx context.Context, name, reason string) error {
	run, err := s.all.Find(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil // retention has removed the run
	}
	if err != nil {
		return err
	}
	data, err := journal.EncodeMessage(s.cfg.Sealer, run.Run, machine.CancelRequested{By: publish.Starter, Reason: reason})
	if err != nil {
		return err
	}
	_, err = s.all.Post(ctx, store.Message{Run: run.Run, Kind: store.MessageVerb, By: publish.Starter, Dedup: "tick", Data: data})
	if err != nil {
		return fmt.Errorf("post to run %s: %w", name, err)
	}
	return nil
}

// submitOfProgram submits the run of a submission of another program. The result `refuse` is true
// if the submission must not be tried again.
func (s *Sources) submitOfProgram(ctx context.Context, r intake.Run) (refuse bool, err error) {
	res, err := s.cfg.Submit(ctx, submit.Request{
		Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, ReplyTo: r.ReplyTo, Correlation: r.Correlation,
		StartBy: r.StartBy, Priority: r.Priority, Trigger: "submitted", Kind: naming.BySubmission,
	})
	switch {
	case err != nil || !res.Exists:
	case res.Name != r.Name:
		// Another run holds the unique key, so no run gets the name of the submission. The
		// submitter would wait for this name for ever, so the submission is refused.
		err = s.otherRun(ctx, r.Workflow, res)
	default:
		err = s.sameRun(ctx, r, res)
	}
	return err != nil && submit.Refused(ctx, err), err
}

// submitOfEvent submits the run of a sent event. The result `refuse` is true if the run must not be
// submitted again.
func (s *Sources) submitOfEvent(ctx context.Context, r inbox.Run) (refuse bool, err error) {
	_, err = s.cfg.Submit(ctx, submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, Trigger: r.Trigger, Kind: naming.ByEvent})
	return err != nil && submit.Refused(ctx, err), err
}

// otherRun returns the error for a submission whose unique key the run `res` holds. It returns an
// error of the store if it cannot read that run.
func (s *Sources) otherRun(ctx context.Context, workflow string, res store.Submitted) error {
	run, err := s.all.Run(ctx, res.Run)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return &submit.Unanswered{Err: err}
	}
	return submit.HeldBy(ctx, s.cfg.Store, workflow, run.Key, res)
}

// resetGoal frees the unique key of a goal that was reached, because an event asks for it. It does
// nothing if the goal is not reached, or if the same event has reset the goal before. The result
// `refused` is true if the goal cannot be reset, for example because a run of the key is open.
func (s *Sources) resetGoal(ctx context.Context, r inbox.Reset) (refused bool, err error) {
	if s.cfg.Roles.Goals == nil {
		return true, errors.New("this store keeps no goals")
	}
	found, err := s.cfg.Roles.Goals.Goals(ctx, goals.Filter{Workflow: r.Workflow, Key: r.Key, Limit: 1})
	if err != nil || len(found) == 0 || found[0].LastReset.Reason == r.Reason {
		return false, err
	}
	goal, err := s.cfg.Roles.Goals.ResetGoal(ctx, goals.Reset{Workflow: r.Workflow, Key: r.Key, By: r.By, Reason: r.Reason})
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, goals.ErrNotReached):
		return false, nil
	case errors.Is(err, goals.ErrOpen), errors.Is(err, goals.ErrEver):
		return true, fmt.Errorf("the goal of key %q cannot be reset: %w; run %s has the key", r.Key, err, goal.Name)
	}
	return false, err
}
