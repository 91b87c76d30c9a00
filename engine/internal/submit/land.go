package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// An entry is a submission that is being sent.
type entry struct {
	n  int // index of the submission
	st *owner.Start
	t  store.Transition
}

// submitted returns the id and name that the run of this entry gets.
func (x *entry) submitted() store.Submitted {
	return store.Submitted{Run: x.t.Run, Name: x.t.Names.Public(x.t.Run)}
}

// share submits the submissions b.all[from:to] in batches. A submission that is refused gets its
// result at once and is in no batch. share returns the same errors as the method `work`.
func (b *batch) share(ctx, stop context.Context, w store.Writer, from, to int) error {
	var batch []entry
	bytes := 0
	for n := from; n < to; n++ {
		if stop.Err() != nil { // the caller gives a result to the submissions that were not sent
			return nil
		}
		x, err := b.entry(ctx, n)
		if err != nil {
			return err
		}
		if x == nil {
			continue
		}
		full := len(batch) == min(shareSize, b.cfg.MaxBatchRows) || bytes+len(x.t.Data) > b.cfg.MaxBatchBytes
		if len(batch) > 0 && full {
			if err := b.land(ctx, w, batch); err != nil {
				return err
			}
			batch, bytes = batch[:0], 0
		}
		batch, bytes = append(batch, *x), bytes+len(x.t.Data)
	}
	return b.land(ctx, w, batch)
}

// entry makes the entry for a submission. It returns nil if the submission has its result
// without being sent, for example because it was refused. It returns an error if the store does
// not answer.
func (b *batch) entry(ctx context.Context, n int) (*entry, error) {
	s, o := b.all[n], &b.out[n]
	var down *Unanswered
	// A name in the form of a run id can only name an existing run. If the run exists, there is
	// nothing to submit. If it does not exist, the submission is refused.
	if _, given := naming.ParseRunName(s.Name); given {
		o.Submitted, o.Err = b.again(ctx, s)
		if errors.As(o.Err, &down) {
			return nil, down
		}
		return nil, nil
	}
	st, err := b.prepare(ctx, s)
	if err != nil {
		o.Err = fmt.Errorf("submit %q: %w", s.Workflow, err)
		if errors.As(err, &down) {
			return nil, down
		}
		return nil, nil
	}
	x := &entry{n: n, st: st}
	if x.t, o.Err = b.transition(s, *st, false); o.Err != nil {
		return nil, nil
	}
	return x, nil
}

// land sends a batch until every submission in it has its result. If the store does not
// answer, land sends the rows again, as often as a Submitter does. They are exactly the same
// rows, so no row is stored twice. It returns an error if the store did not answer, or if
// this membership is over.
func (b *batch) land(ctx context.Context, w store.Writer, batch []entry) error {
	slices.SortFunc(batch, func(a, b entry) int { return cmp.Compare(a.t.Run, b.t.Run) })
	unsure := false // true = an earlier try may have committed the rows
	pause := wait.Least
	for try := 1; len(batch) > 0; try++ {
		rows := make([]store.Transition, len(batch))
		for i, x := range batch {
			rows[i] = x.t
		}
		outcomes, err := w.Commit(ctx, rows)
		if err == nil && len(outcomes) != len(rows) {
			err = fmt.Errorf("the store answered %d outcomes for %d submissions", len(outcomes), len(rows))
		}
		if err == nil {
			if batch, err = b.toResults(ctx, batch, outcomes, unsure); err == nil && len(batch) == 0 {
				return nil
			}
		}
		if err == nil { // some ids were in use: these submissions are sent again with other ids
			if try >= IDTries {
				b.fail(batch, fmt.Errorf("no free run id in %d tries", IDTries), false)
				return nil
			}
			unsure = false
			continue
		}
		unsure = unsure || !store.NothingLanded(err)
		if owner.OverFor(err) || ctx.Err() != nil || try >= commit.SubmitTries {
			b.fail(batch, err, unsure)
			return err
		}
		if wait.For(ctx, pause) != nil {
			b.fail(batch, err, unsure)
			return err
		}
		pause *= 2
	}
	return nil
}

// fail writes the error err into the result of each submission of a batch that has no result yet.
// If the parameter `unsure` is true, the store may have stored the runs in spite of the error. Then
// each of these results also gets the id and name of its run.
func (b *batch) fail(batch []entry, err error, unsure bool) {
	for _, x := range batch {
		o := &b.out[x.n]
		if o.Run != 0 || o.Err != nil { // the submission has its result already
			continue
		}
		o.Err = fmt.Errorf("submit %q: %w", b.all[x.n].Workflow, err)
		if unsure {
			o.Submitted = x.submitted()
		}
	}
}

// toResults turns the store's answers into results. It returns the submissions that the method
// `land` must send again: each of them gets a new row with another id. A submission must be sent
// again if the id of its run was in use, or if the run must replace another run, or need not
// replace one any more. toResults returns an error if it cannot read from the store whether an
// earlier try committed a row that is refused now.
func (b *batch) toResults(ctx context.Context, batch []entry, outcomes []store.Outcome, unsure bool) (again []entry, err error) {
	for i, x := range batch {
		o, res := outcomes[i], &b.out[x.n]
		mine := false
		if unsure && o.Err != nil { // an earlier try may have committed the row that is refused now
			if mine, err = b.landed(ctx, x.t); err != nil {
				return batch, err
			}
		}
		switch {
		case mine, o.Err == nil && o.Submitted.Run == x.t.Run:
			res.Submitted, res.Err = x.submitted(), nil
		case errors.Is(o.Err, naming.ErrFree), o.Err == nil && x.t.Replaces == nil && replaces(x.st.Flow, b.all[x.n].Name, x.t.Names, o.Submitted):
			// Submit the run again: as a replacement if another run holds the unique key, or as an
			// ordinary run if the unique key is free now.
			failpoint.Hit("key.held")
			t, err := b.transition(b.all[x.n], *x.st, o.Err == nil)
			if err != nil {
				res.Err = err
				continue
			}
			again = append(again, entry{n: x.n, st: x.st, t: t})
		case o.Err == nil && (o.Landed || o.Submitted.Exists):
			if res.Err = heldKey(ctx, b.cfg.Store, x.st.Flow, b.all[x.n].Name, x.t.Names, o.Submitted); res.Err != nil {
				res.Err = fmt.Errorf("submit %q: %w", b.all[x.n].Workflow, res.Err)
				continue
			}
			res.Submitted = o.Submitted
		case o.Err == nil, errors.Is(o.Err, store.ErrExists): // another run has the id
			t, err := b.transition(b.all[x.n], *x.st, x.t.Replaces != nil)
			if err != nil {
				res.Err = err
				continue
			}
			again = append(again, entry{n: x.n, st: x.st, t: t})
		case errors.Is(o.Err, naming.ErrFull):
			res.Err = fmt.Errorf("submit %q: %w", b.all[x.n].Workflow, fullError(ctx, b.cfg.Store, x.st, false, o.Err))
		default:
			res.Err = fmt.Errorf("submit %q: %w", b.all[x.n].Workflow, o.Err)
		}
	}
	return again, nil
}

// landed reports whether the store has exactly the row of the transition t as the first row of its
// run.
func (b *batch) landed(ctx context.Context, t store.Transition) (bool, error) {
	rows, err := b.cfg.Store.Rows(ctx, t.Run, 0, 1)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("read run %s: %w", naming.RunName(t.Run), err)
	}
	return err == nil && len(rows) == 1 && t.Wrote(rows[0]), nil
}

// transition returns the first row of a run without an owner. This row starts no step of the run.
// An engine that looks for runs without an owner finds the run at once. If the parameter
// `replaced` is true, the run replaces the run that holds its unique key.
func (b *batch) transition(s Request, st owner.Start, replaced bool) (store.Transition, error) {
	now := b.clock.Now()
	run, err := b.AssignID(s, &st, now)
	if err == nil && replaced {
		st.Replaces, err = replacement(s, &st)
	}
	if err != nil {
		return store.Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	t, err := b.Unowned(&st, s.started(run, &st, st.Flow.Concurrency != nil && !st.Flow.Concurrency.Reject), now)
	if err != nil {
		return store.Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return t, nil
}
