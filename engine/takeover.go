package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
)

// takeOverBatch is how many runs are taken over at once.
const takeOverBatch = 256

// TakeOver makes this engine the owner of every open run whose owner is gone
// or that nobody owns, and goes on with them (S19, S49). It returns how many.
// Runs that wait for a person and that time does not move now stay as they are:
// Adopt takes one.
// Dead members are fenced off first, so that nothing of theirs can land
// afterwards. Of two engines that try it for one run, one gets it. A run whose
// definition cannot be read here, or whose agents are missing, is left alone
// and shows in Troubles.
func (n *Node) TakeOver(ctx context.Context) (int, error) {
	t, err := n.present(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := t.tick(ctx); err != nil {
		return 0, fmt.Errorf("take over: %w", err)
	}
	t.mu.Lock()
	dead := t.dead
	t.mu.Unlock()
	gone := map[EngineID]bool{0: true}
	for _, engine := range dead {
		gone[engine] = true
		if _, err := n.cfg.Store.Fence(ctx, engine); err != nil {
			return 0, fmt.Errorf("fence engine %d: %w", engine, err)
		}
	}
	taken := 0
	for after := machine.RunID(0); ; {
		runs, err := n.cfg.Store.Orphans(ctx, after, takeOverBatch)
		if err != nil {
			return taken, fmt.Errorf("find runs without an owner: %w", err)
		}
		if len(runs) == 0 {
			return taken, nil
		}
		got, err := n.takeAll(ctx, t, runs, gone)
		taken += got
		if err != nil {
			return taken, err
		}
		after = runs[len(runs)-1]
	}
}

// takeAll takes runs over together, so that they share commits.
func (n *Node) takeAll(ctx context.Context, t *term, runs []machine.RunID, gone map[EngineID]bool) (int, error) {
	results := make(chan error, len(runs))
	asked := 0
	for _, run := range runs {
		story, err := n.able(ctx, run)
		if err == nil && n.rests(story) {
			continue
		}
		if err != nil {
			var aside *RunError
			if !errors.As(err, &aside) {
				return 0, fmt.Errorf("take over run %s: %w", RunName(run), err)
			}
			n.troubles.note(run, err)
			n.cfg.Logger.Warn("run is left alone", "run", RunName(run), "error", err)
			continue
		}
		asked++
		sh := t.scheduler.shard(run)
		sh.post(func(ctx context.Context) {
			sh.adopt(ctx, run, adoption{func(owner EngineID) bool { return gone[owner] }, func(err error) { results <- err }})
		})
	}
	taken := 0
	for range asked {
		select {
		case err := <-results:
			if err == nil {
				taken++
			}
		case <-t.ctx.Done():
			return taken, fmt.Errorf("take over: %w", context.Cause(t.ctx))
		case <-ctx.Done():
			return taken, ctx.Err()
		}
	}
	return taken, nil
}

// Adopt makes this engine the owner of one run, if its owner is gone or nobody
// owns it. It is harmless for a run that this engine owns or that has ended.
// Returns ErrNotOwner if its owner is alive, ErrNotFound if there is no such
// run, a *RunError if it cannot be worked on here.
func (n *Node) Adopt(ctx context.Context, run machine.RunID) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	head, _, err := n.cfg.Store.Load(ctx, run)
	switch {
	case err != nil:
		return fmt.Errorf("take over run %s: %w", RunName(run), err)
	case head.Owner == t.engine || head.State.Final():
		return nil
	}
	if head.Owner != 0 {
		dead, err := n.cfg.Store.Fence(ctx, head.Owner)
		switch {
		case err != nil:
			return fmt.Errorf("fence engine %d: %w", head.Owner, err)
		case !dead:
			return fmt.Errorf("take over run %s: %w", RunName(run), ErrNotOwner)
		}
	}
	if _, err := n.able(ctx, run); err != nil {
		return err
	}
	gone := func(owner EngineID) bool { return owner == 0 || owner == head.Owner }
	if err := t.scheduler.adopt(ctx, run, gone); err != nil {
		return fmt.Errorf("take over run %s: %w", RunName(run), err)
	}
	return nil
}

// rests reports whether a run waits for a person and nothing of it is due now.
// Its deadline may still be ahead: once that has passed an engine takes the run
// to raise the alert, and then it is at rest for good (Head.AtRest).
func (n *Node) rests(story Story) bool {
	if !story.State.Status().NeedsHuman() || len(story.State.OpenAttempts(story.Flow)) > 0 {
		return false
	}
	due, ok := story.State.NextDue()
	return !ok || due.After(n.clock.now())
}

// able returns a run's story, or why this engine cannot work on it: a *RunError
// if the story cannot be read or an agent is missing, any other error if that
// is not known.
func (n *Node) able(ctx context.Context, run machine.RunID) (Story, error) {
	story, _, err := loadStory(ctx, n.cfg.Store, n.cfg.Sealer, n.defs, run)
	var aside *RunError
	switch {
	case errors.As(err, &aside):
		return Story{}, err
	case err != nil && permanent(err):
		return Story{}, &RunError{Run: int64(run), Err: err, Hint: hintFor(err)}
	case err != nil:
		return Story{}, err
	}
	checker, ok := n.cfg.Invoker.(Checker)
	if !ok {
		return story, nil
	}
	specs, err := agentSpecs(story.Flow, story.State.Vars())
	if err != nil {
		return Story{}, &RunError{Run: int64(run), Name: story.Head.Name, Err: err}
	}
	for _, spec := range specs {
		if err := checker.Check(ctx, spec); err != nil {
			return Story{}, &RunError{Run: int64(run), Name: story.Head.Name, Err: err, Hint: hintFor(err)}
		}
	}
	return story, nil
}
