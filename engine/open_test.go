package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A refusal after an open outcome does not prove that the row is not there: it had
// landed, and the run goes on instead of being quarantined.
func TestRefusalAfterAnOpenOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		store := w.faulty()
		n := w.start()
		refused := 0
		store.mu.Lock()
		store.plan = func(k int, after bool) error {
			if k > 1 && k%2 == 0 && after && refused < 3 { // it landed, its answer is lost, and the next sending is refused
				refused++
				store.bad.Store(1)
				return errDown
			}
			return nil
		}
		store.mu.Unlock()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		if refused != 3 || store.bad.Load() != 0 {
			t.Errorf("%d answers were lost, %d refusals are left, want 3 and none", refused, store.bad.Load())
		}
		if len(n.Quarantined()) > 0 {
			t.Errorf("troubles: %v", n.Quarantined())
		}
		n.drain(t)
	})
}

// Only a fenced engine is sure that nothing landed.
func TestNothingLanded(t *testing.T) {
	for _, err := range []error{errDown, store.ErrStale, store.ErrLapsed, &store.LossError{}, t.Context().Err()} {
		if store.NothingLanded(err) {
			t.Errorf("%v promises that nothing landed", err)
		}
	}
	if !store.NothingLanded(store.ErrFenced) {
		t.Error("ErrFenced promises nothing")
	}
}
