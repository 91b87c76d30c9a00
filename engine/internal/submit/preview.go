package submit

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Preview returns an error with which a submission would be refused now, and writes nothing. It
// evaluates the limit, the unique key, the checks and the deadline of the run. If another run holds
// the unique key, it returns a *refusal.KeyError, also if a submission would attach to that run. If
// the limit has no place, and the workflow says when_full = "reject", it returns the same error as
// a submission.
func Preview(ctx context.Context, s store.Store, r Request) error {
	wf := r.flow()
	l, err := lineOf(wf, r.Vars, r.Priority)
	if err != nil {
		return err
	}
	st := &owner.Start{Flow: wf, Names: r.names(), Line: l}
	if _, err := New(Config{Store: s}).AssignID(r, st, time.Now()); err != nil {
		return err
	}
	if err := keyTaken(ctx, s, wf.Name, st.Names.Key); err != nil {
		return err
	}
	if l.Limit == 0 || !wf.Concurrency.Reject {
		return nil
	}
	p, err := store.Complete(s).Places(ctx, wf.Name, l.Key, int(l.Limit))
	if err != nil {
		return fmt.Errorf("ask for the places of the limit: %w", err)
	}
	if len(p.Open) < int(l.Limit) {
		return nil
	}
	return fullError(ctx, s, st, false, naming.ErrFull)
}
