package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// lostWhy returns the text that says why a run is parked after engines died with it in hand.
func lostWhy(deaths int) string {
	return fmt.Sprintf("%d engines ended one after the other while they had this run in hand: look at their logs for what ended them", deaths)
}

// park parks a run after too many engines died with it in hand. It does not decode the
// run's journal, because that may be what ended them. It needs only the number of rows and
// the time of the last one.
func (t *taker) park(ctx context.Context, run status.RunID, deaths int, how takeoverScope) error {
	head, rows, err := store.LoadRun(ctx, t.n.cfg.Store, run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("park run %s: %w", naming.RunName(run), err)
	case head.State.Final() || !how.from(head) || len(rows) == 0:
		return nil
	}
	before, err := journal.LinkOf(t.n.cfg.Sealer, head, rows)
	var broken *journal.RunError
	if errors.As(err, &broken) {
		t.n.backOff(run, broken)
		return nil
	}
	at := t.n.shared.Clock.Now()
	if last := rows[len(rows)-1].At; at.Before(last) {
		at = last
	}
	event := machine.EngineLost{Deaths: deaths, Why: lostWhy(deaths)}
	answer := make(chan error, 1)
	lost := owner.LostRun{Head: head, Seq: int32(len(rows)), Before: before, At: at, Event: event}
	if !t.runs.ParkLost(lost, func(err error) { answer <- err }) {
		return call.ErrNotOwner
	}
	select {
	case err = <-answer:
	case <-t.ctx.Done():
		return fmt.Errorf("park run %s: %w", naming.RunName(run), context.Cause(t.ctx))
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case errors.Is(err, store.ErrStale):
		return nil // another engine was faster
	case err != nil:
		return fmt.Errorf("park run %s: %w", naming.RunName(run), err)
	}
	return nil
}
