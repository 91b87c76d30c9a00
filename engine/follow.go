package engine

import (
	"context"
	"sync"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
)

// Wait returns a run's state once it has ended or needs a human. Any engine's
// run may be waited for. A store that does not answer is asked again until ctx
// ends. Returns ErrNotFound, a *RunError if the run cannot be read here, and
// whatever else of the store cannot pass: see Follow.
func (n *Node) Wait(ctx context.Context, run machine.RunID) (*machine.State, error) {
	for {
		if t := n.now(); t != nil {
			state, here, err := t.wait(ctx, run)
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

// wait waits for a run that is in this incarnation's memory, and reports
// whether it was.
func (t *membership) wait(ctx context.Context, run machine.RunID) (*machine.State, bool, error) {
	type place struct {
		waiter chan *machine.State
		err    error
	}
	answer := make(chan place, 1)
	sh := t.scheduler.shard(run)
	sh.post(func(context.Context) {
		w, err := sh.await(run)
		answer <- place{w, err}
	})
	var waiter chan *machine.State
	select {
	case p := <-answer:
		if p.err != nil {
			return nil, false, p.err
		}
		waiter = p.waiter
	case <-t.ctx.Done():
		return nil, false, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if waiter == nil {
		return nil, false, nil
	}
	select {
	case state := <-waiter:
		return state, true, nil
	case <-t.ctx.Done():
		return nil, true, nil
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// await returns where the run's state will be sent; nil = it is not here. The
// error is that of a run that is quarantined.
func (sh *shard) await(run machine.RunID) (chan *machine.State, error) {
	r := sh.runs[run]
	switch {
	case r == nil:
		return nil, nil
	case r.phase == phaseQuarantined:
		return nil, r.err
	}
	w := make(chan *machine.State, 1)
	if r.phase == phaseReady && r.commit == nil && (r.state.Status().Final() || r.state.Status().NeedsHuman()) {
		w <- r.state.Clone()
		return w, nil
	}
	r.waiters = append(r.waiters, w)
	return w, nil
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
func (n *Node) Follow(ctx context.Context, run machine.RunID, from int, fn func(first int, facts []machine.Fact), opts journal.FollowOptions) (*machine.State, error) {
	hint, done := n.followers.follow(run)
	defer done()
	opts.Hint = hint
	if opts.Poll <= 0 {
		opts.Poll = n.cfg.Options.Poll
	}
	if opts.RetryStore <= 0 {
		opts.RetryStore = n.cfg.Options.RetryStore
	}
	return journal.Follow(ctx, n.cfg.Store, n.cfg.Sealer, n.defs, run, from, fn, opts)
}

// followers wakes those who follow runs of this process, so that they need not
// wait for their next look.
type followers struct {
	mu    sync.Mutex // protects following field
	hints map[machine.RunID]map[chan struct{}]bool
}

func (f *followers) follow(run machine.RunID) (<-chan struct{}, func()) {
	hint := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hints == nil {
		f.hints = map[machine.RunID]map[chan struct{}]bool{}
	}
	if f.hints[run] == nil {
		f.hints[run] = map[chan struct{}]bool{}
	}
	f.hints[run][hint] = true
	return hint, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.hints[run], hint)
		if len(f.hints[run]) == 0 {
			delete(f.hints, run)
		}
	}
}

func (f *followers) tell(run machine.RunID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hint := range f.hints[run] {
		wake(hint)
	}
}
