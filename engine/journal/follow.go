package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// followRows is the largest number of rows that one read returns.
const followRows = 256

// FollowOptions set how often a journal is read.
type FollowOptions struct {
	// Hint receives a value when there may be new rows; then Follow reads them at once. nil =
	// there are no hints.
	Hint       <-chan struct{}
	Poll       time.Duration // longest pause between two reads; 0 = 1 s
	RetryStore time.Duration // longest pause before a store that does not answer is read again; 0 = 5 s
	// Unanswered is called when the store stops answering. It is called again only after
	// the store has answered in between. nil = not called.
	Unanswered func(err error)
}

// Follow does the same as Node.Follow, but it needs no node. Commands that only read use it.
func Follow(ctx context.Context, st store.Journal, sealer crypt.Sealer, defs *Definitions, run status.RunID, from int, fn func(first int, facts []story.Fact), opts FollowOptions) (*machine.State, error) {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	ask := wait.Retry{Most: opts.RetryStore, Lasting: Lasting, Unanswered: opts.Unanswered}
	var rows []store.Row
	story := Run{State: machine.NewState()}
	err := ask.Do(ctx, func() (err error) {
		if story.Head, rows, err = store.LoadRun(ctx, st, run); err == nil {
			story.Flow, err = defs.Workflow(ctx, story.Head.Workflow)
		}
		if err == nil {
			story.chain.strict, err = defs.strict(ctx, run)
		}
		return err
	})
	if err != nil {
		return nil, followError(ctx, run, err)
	}
	const least = 10 * time.Millisecond
	next, pause := int32(0), least
	for loaded := true; ; loaded = false {
		for _, row := range rows {
			if err := story.tell(sealer, row, from, fn); err != nil {
				return nil, err
			}
			next, pause = row.Seq+1, least
		}
		if loaded { // the run's own row was read together with these rows, so it must match them
			if err := story.whole(); err != nil {
				return nil, followError(ctx, run, err)
			}
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
		err := ask.Do(ctx, func() (err error) {
			rows, err = st.Rows(ctx, run, next, followRows)
			return err
		})
		if err != nil {
			return nil, followError(ctx, run, err)
		}
	}
}

// followError adds the run to an error of Follow. If ctx has ended, it returns ctx's error.
func followError(ctx context.Context, run status.RunID, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("follow run %s: %w", naming.RunName(run), err)
}

// tell verifies one row and applies its records to the state. It passes the facts of the row to
// fn, except facts whose number is less than from.
func (st *Run) tell(sealer crypt.Sealer, row store.Row, from int, fn func(int, []story.Fact)) error {
	if err := st.verify(sealer, row); err != nil {
		return err
	}
	records, err := DecodeRow(sealer, st.Head.Run, row)
	if err != nil {
		return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: err, Hint: HintFor(err)}
	}
	err = guard.Do(func() error {
		for _, rec := range records {
			facts := story.Facts(st.Flow, st.State, rec)
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
