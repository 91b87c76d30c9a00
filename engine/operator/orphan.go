package operator

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// orphaned refuses to retry an open child run whose parent has ended and whose undo has not begun.
// The parent does not need the result of the child any more, so the child may only be undone. For
// all other runs and verbs, orphaned does not refuse.
func (o *Operator) orphaned(ctx context.Context, state *machine.State, verb machine.Event) error {
	r := state.Run()
	if _, retry := verb.(machine.RetryRequested); !retry || r.Parent.Run == 0 || r.UndoStarted != 0 || r.State.Final() {
		return nil
	}
	rows, err := o.Store.Runs(ctx, store.RunFilter{IDs: []status.RunID{r.Parent.Run}})
	if err != nil {
		return fmt.Errorf("look for the parent %s: %w", r.Parent.Name, err)
	}
	if len(rows) == 0 || !rows[0].State.Final() {
		return nil
	}
	return &RefusedError{Verb: "retry", Reason: fmt.Sprintf("the parent %s has ended: it is %s; compensate or cancel the run", r.Parent.Name, rows[0].State)}
}
