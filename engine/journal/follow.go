package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// followRows is the largest number of rows that one read of new rows returns. The first read
// returns all rows of the run.
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
	// Through is called before Follow returns, if the reason for the return is that a child run, at
	// any depth, needs a person. The argument is this child run. nil = not called.
	Through func(child store.RunRow)
}

// Follow does the same as Node.Follow, but needs no engine, and uses opts.Hint. Commands that only
// read use it.
func (rd Reader) Follow(ctx context.Context, run status.RunID, from int, fn func(first int, facts []story.Fact), opts FollowOptions) (*machine.State, error) {
	if opts.Poll <= 0 {
		opts.Poll = time.Second
	}
	ask := wait.Retry{Most: opts.RetryStore, Lasting: Lasting, Unanswered: opts.Unanswered}
	f := following{Reader: rd, run: run, from: from, fn: fn}
	var rows []store.Row
	load := func() (err error) { rows, err = f.load(ctx); return err }
	if err := ask.Do(ctx, load); err != nil {
		return nil, followError(ctx, run, err)
	}
	const least = 10 * time.Millisecond
	next, pause := int32(0), least
	for loaded := true; ; loaded = false {
		applied, err := f.applyRows(ctx, rows)
		if applied > 0 {
			next, pause = rows[applied-1].Seq+1, least
		}
		var broken *HistoryError
		if !loaded && errors.As(err, &broken) {
			// Perhaps Reseal has given new tags to rows that Follow has read already. So Follow
			// reads all rows of the run again. It does not pass a fact to fn a second time.
			f.from = max(from, f.story.Facts+1)
			if err := ask.Do(ctx, load); err != nil {
				return nil, followError(ctx, run, err)
			}
			applied, err = f.applyRows(ctx, rows)
			next, loaded = int32(applied), true
		}
		if err != nil {
			return nil, err
		}
		if loaded { // the Head was read together with these rows, so the Head must fit the rows
			if err := f.story.whole(); err != nil {
				return nil, followError(ctx, run, err)
			}
		}
		status := f.story.State.Status()
		if len(rows) < followRows && (status.Final() || status.NeedsHuman()) {
			return f.story.State, nil
		}
		if len(rows) < followRows {
			if child, ok := f.through(ctx); ok {
				if opts.Through != nil {
					opts.Through(child)
				}
				return f.story.State, nil
			}
			timer := time.NewTimer(pause)
			select {
			case <-opts.Hint:
			case <-timer.C:
				pause = min(2*pause, opts.Poll)
			case <-ctx.Done():
			}
			timer.Stop()
		}
		err = ask.Do(ctx, func() (err error) {
			rows, err = f.Store.Rows(ctx, run, next, followRows)
			return err
		})
		if err != nil {
			return nil, followError(ctx, run, err)
		}
	}
}

// A following is the state of one call of Follow.
type following struct {
	Reader
	run   status.RunID
	from  int                                 // number of the first fact that fn receives
	fn    func(first int, facts []story.Fact) // receives the facts; nil = not called
	story Run
	watch childWatch
}

// through returns the child run because of which the run needs a person. It returns false if there
// is none, or if the method childWatch.ask does not know it yet.
func (f *following) through(ctx context.Context) (store.RunRow, bool) {
	if !f.story.Flow.StartsChildren() || !f.story.State.InFlight() {
		return store.RunRow{}, false // no child run is open
	}
	return f.watch.ask(ctx, f.Store, f.run)
}

// load reads the run again from its first row, and returns all its rows. It resets the state to
// the empty one.
func (f *following) load(ctx context.Context) ([]store.Row, error) {
	head, rows, err := store.LoadRun(ctx, f.Store, f.run)
	if err != nil {
		return nil, err
	}
	f.story = Run{Head: head, State: machine.NewState()}
	if f.story.Flow, err = f.Defs.Workflow(ctx, head.Workflow); err == nil {
		f.story.chain.strict, err = f.Defs.strict(ctx, f.run)
	}
	return rows, err
}

// applyRows applies the rows to the state, in order, and passes their facts to the function `fn`.
// It returns the number of rows before the first error, and this error.
func (f *following) applyRows(ctx context.Context, rows []store.Row) (int, error) {
	for i, row := range rows {
		if err := f.story.applyRow(ctx, f.Reader, row, f.from, f.fn); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// followError adds the run to an error of Follow. If ctx has ended, it returns ctx's error.
func followError(ctx context.Context, run status.RunID, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("follow run %s: %w", naming.RunName(run), err)
}

// applyRow verifies one row and applies its records to the state. It passes the facts of the row to
// fn, except facts whose number is less than the parameter `from`.
func (st *Run) applyRow(ctx context.Context, rd Reader, row store.Row, from int, fn func(int, []story.Fact)) error {
	if err := st.verify(rd.Sealer, row); err != nil {
		return err
	}
	records, err := DecodeRow(rd.Sealer, st.Head.Run, row)
	if err != nil {
		return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: err, Hint: HintFor(err)}
	}
	err = guard.Do(func() error {
		for _, rec := range records {
			c := st.State.Change(&rec)
			for _, m := range c.After().Moves[st.moved:] {
				if err := st.move(ctx, rd.Defs, m.Workflow, m.StepOf); err != nil {
					return err
				}
			}
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
