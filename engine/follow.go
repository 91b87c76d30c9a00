package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// followRows is how many rows of a run are read at once.
const followRows = 256

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
		return n.Follow(ctx, run, 0, nil, FollowOptions{})
	}
}

// wait waits for a run that is in this incarnation's memory, and reports
// whether it was.
func (t *term) wait(ctx context.Context, run machine.RunID) (*machine.State, bool, error) {
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
// error is that of a run that is set aside.
func (sh *shard) await(run machine.RunID) (chan *machine.State, error) {
	r := sh.runs[run]
	switch {
	case r == nil:
		return nil, nil
	case r.phase == phaseAside:
		return nil, r.err
	}
	w := make(chan *machine.State, 1)
	if r.phase == phaseReady && r.flight == nil && (r.state.Status().Final() || r.state.Status().NeedsHuman()) {
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
func (n *Node) Follow(ctx context.Context, run machine.RunID, from int, fn func(first int, facts []machine.Fact), opts FollowOptions) (*machine.State, error) {
	hint, done := n.followers.follow(run)
	defer done()
	opts.Hint = hint
	if opts.Poll <= 0 {
		opts.Poll = n.cfg.Options.Poll
	}
	if opts.RetryStore <= 0 {
		opts.RetryStore = n.cfg.Options.RetryStore
	}
	return Follow(ctx, n.cfg.Store, n.cfg.Sealer, n.defs, run, from, fn, opts)
}

// FollowOptions say how often a journal is looked at.
type FollowOptions struct {
	Hint       <-chan struct{} // tells that there may be something new; nil = never
	Poll       time.Duration   // longest pause between two looks; 0 = 1 s
	RetryStore time.Duration   // longest pause before a store that does not answer is asked again; 0 = 5 s
	// Unanswered is called when the store stops answering, once until it answers
	// again; nil = nobody asks.
	Unanswered func(err error)
}

// Follow is Node.Follow without a node, for commands that only watch.
func Follow(ctx context.Context, st store.Journal, sealer Sealer, defs *Definitions, run machine.RunID, from int, fn func(first int, facts []machine.Fact), opts FollowOptions) (*machine.State, error) {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	ask := asker{most: opts.RetryStore, unanswered: opts.Unanswered}
	var rows []store.Row
	story := Story{State: machine.NewState()}
	err := ask.until(ctx, func() (err error) {
		if story.Head, rows, err = st.Load(ctx, run); err == nil {
			story.Flow, err = defs.Workflow(ctx, story.Head.Workflow)
		}
		if err == nil {
			story.chain.strict, err = defs.strict(ctx, run)
		}
		return err
	})
	if err == nil && story.Head.Fence >= int32(len(rows)) { // more rows will not come
		err = broken(story.Head, int32(len(rows)), faultTail)
	}
	if err != nil {
		return nil, followError(ctx, run, err)
	}
	const least = 10 * time.Millisecond
	next, pause := int32(0), least
	for {
		for _, row := range rows {
			if err := story.tell(sealer, row, from, fn); err != nil {
				return nil, err
			}
			next, pause = row.Seq+1, least
		}
		status := story.State.Status()
		if len(rows) < followRows && (status.Final() || status.NeedsHuman()) {
			return story.State, nil
		}
		if len(rows) < followRows {
			timer := time.NewTimer(pause)
			select {
			case <-opts.Hint:
			case <-timer.C:
				pause = min(2*pause, opts.Poll)
			case <-ctx.Done():
			}
			timer.Stop()
		}
		err := ask.until(ctx, func() (err error) {
			rows, err = st.Rows(ctx, run, next, followRows)
			return err
		})
		if err != nil {
			return nil, followError(ctx, run, err)
		}
	}
}

// followError is an error of following; the end of ctx is returned as it is.
func followError(ctx context.Context, run machine.RunID, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("follow run %s: %w", store.RunName(run), err)
}

// tell verifies and folds one row and tells its facts.
func (st *Story) tell(sealer Sealer, row store.Row, from int, fn func(int, []machine.Fact)) error {
	if err := st.verify(sealer, row); err != nil {
		return err
	}
	records, err := DecodeRow(sealer, st.Head.Run, row)
	if err != nil {
		return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: err, Hint: hintFor(err)}
	}
	err = guard(func() error {
		for _, rec := range records {
			facts := rec.Facts(st.Flow, st.State)
			st.State.Apply(rec)
			first := st.Facts + 1
			st.Facts += len(facts)
			if skip := from - first; skip > 0 {
				facts = facts[min(skip, len(facts)):]
				first += skip
			}
			if fn != nil && len(facts) > 0 {
				fn(first, facts)
			}
		}
		return nil
	})
	if err != nil {
		return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: fmt.Errorf("fold row %d: %w", row.Seq, err)}
	}
	return nil
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
