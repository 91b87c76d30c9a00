package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A bareStore has the required methods of a store and no optional role.
type bareStore struct{ store.Store }

// An engine works on a store that has no optional role: a run finishes, an engine takes
// over the runs of one that died, and verbs are answered.
func TestStoreWithoutOptionalRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.store = bareStore{w.mem}
		first := w.start()
		w.wait(first, w.submit(first, "order", nil), status.RunSucceeded)

		w.shop.on("charge", block)
		left := w.submit(first, "order", nil)
		time.Sleep(time.Second)
		first.kill(t)
		w.shop.on("charge", nil)
		second := w.start()
		w.wait(second, left, status.RunSucceeded)

		w.shop.on("charge", block)
		run := w.submit(second, "order", nil)
		time.Sleep(time.Second)
		op := w.operator()
		op.Store = w.store
		id, err := op.Ask(t.Context(), run, machine.CancelRequested{By: "ann"}, "ann")
		if err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, "answer", func(ctx context.Context) error { return op.Answer(ctx, run, id) })
		second.drain(t)
		if rows, err := store.Complete(w.store).StepRows(t.Context(), run); err != nil || len(rows) != 0 {
			t.Errorf("%d steps are shown, err = %v, want none: the store has no views", len(rows), err)
		}
	})
}
