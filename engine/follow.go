package engine

import (
	"context"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// Wait returns a run's state once it has ended or needs a human. Any engine's
// run may be waited for. A store that does not answer is asked again until ctx
// ends. Returns ErrNotFound, a *RunError if the run cannot be read here, and
// whatever else of the store cannot pass: see Follow.
func (n *Node) Wait(ctx context.Context, run status.RunID) (*machine.State, error) {
	for {
		if t := n.now(); t != nil {
			state, here, err := t.Runs.Wait(ctx, run)
			if err != nil || state != nil {
				return state, err
			}
			if here { // lost while waiting: look who has it
				continue
			}
		}
		return n.Follow(ctx, run, 0, nil, journal.FollowOptions{})
	}
}

// Follow calls fn with a run's facts in order, from the one with number from
// (1 = the first) on, as they become durable, until the run has ended or needs
// a human; then it returns the run's state. Any engine's run may be followed.
// fn may be nil. opts.Hint is not used: the node has its own.
//
// A store that does not answer is asked again, with a growing pause, until ctx
// ends: an error of reading is returned only if it cannot pass. That is
// ErrNotFound, ErrDamaged, a *RunError or another error about what is stored if
// the run cannot be read here, a *SchemaError and a *LossError.
func (n *Node) Follow(ctx context.Context, run status.RunID, from int, fn func(first int, facts []story.Fact), opts journal.FollowOptions) (*machine.State, error) {
	hint, done := n.shared.Followers.Follow(run)
	defer done()
	opts.Hint = hint
	if opts.Poll <= 0 {
		opts.Poll = n.cfg.Options.Poll
	}
	if opts.RetryStore <= 0 {
		opts.RetryStore = n.cfg.Options.RetryStore
	}
	return journal.Follow(ctx, n.cfg.Store, n.cfg.Sealer, n.shared.Defs, run, from, fn, opts)
}
