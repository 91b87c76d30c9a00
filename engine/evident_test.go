package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// S28: an answer that landed while nobody could know it, and so was handed over
// once more, is not one that came late: it raises no alert. Another answer of
// the same call is.
func TestAnswerHandedOverTwiceIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := importer(t, nil)
		store := w.faulty()
		var lost atomic.Bool
		store.plan = func(_ int, after bool) error {
			if after && lost.Load() {
				return errors.New("the connection is lost")
			}
			return nil
		}
		n := w.start()
		w.inv.after = func(_ invoke.Call, r sdk.Reply) (sdk.Reply, bool) {
			store.noTick.Store(true) // the lease runs out while the commit is out
			lost.Store(true)
			return r, true
		}
		run := w.submit(n, "once", nil)
		time.Sleep(10 * time.Second)
		lost.Store(false)
		store.noTick.Store(false)
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(time.Minute)
		if late, err := w.mem.LateReplies(t.Context(), run); err != nil || len(late) > 0 {
			t.Errorf("late replies: %+v, %v, want none", late, err)
		}
		if messages, err := w.mem.Messages(t.Context(), run, 0, 10); err != nil || len(messages) > 0 {
			t.Errorf("inbox: %+v, %v, want it empty", messages, err)
		}
		if got := w.story.lateReplies(); got != 0 {
			t.Errorf("counted %d, want none", got)
		}
		n.drain(t)
	})
}
