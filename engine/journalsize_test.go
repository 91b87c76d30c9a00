package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// written returns the bytes of a run's journal.
func (w *world) written(run status.RunID) (sum int64) {
	w.t.Helper()
	_, rows, err := store.LoadRun(w.t.Context(), w.mem, run)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		sum += int64(len(r.Data))
	}
	return sum
}

// The ceiling of a run's journal counts every row: those that this engine writes, and
// those that another one wrote before.
func TestJournalIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		n := w.start()
		whole := w.submit(n, "order", nil)
		w.wait(n, whole, status.RunSucceeded)
		n.drain(t)

		w.opts.Ceilings.Journal = w.written(whole) / 2
		n = w.start()
		run := w.submit(n, "order", nil)
		if s := w.wait(n, run, status.RunCompensated); s.Failure().Code != machine.CodeLimit {
			t.Errorf("with a ceiling of half its journal the run failed with %+v", s.Failure())
		}
		n.drain(t)

		w.opts.Ceilings.Journal = 0
		hangs := true
		w.shop.on("charge", func(ctx context.Context, _ int) error {
			if hangs {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		first := w.start()
		run = w.submit(first, "order", nil)
		synctest.Wait()
		first.kill(t)
		hangs = false
		w.opts.Ceilings.Journal = w.written(run)
		second := w.start()
		if s := w.wait(second, run, status.RunCompensated); s.Failure().Code != machine.CodeLimit {
			t.Errorf("with a ceiling that the first engine reached the run failed with %+v", s.Failure())
		}
		second.drain(t)
	})
}

// What a run takes of the engine's memory grows with its values, and is given back at
// its end.
func TestMemoryOfARunIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large = 100_000
		w := newWorld(t, orderFlow)
		w.inv.around = func(_ context.Context, call invoke.Call) (sdk.Reply, bool) {
			if call.Request.Step != "reserve" || call.Request.Purpose != sdk.PurposeDo {
				return sdk.Reply{}, false
			}
			return sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":"` + strings.Repeat("x", large) + `"}`)}, true
		}
		w.shop.on("charge", func(ctx context.Context, _ int) error { return pause(ctx, 5*time.Second) })
		n := w.start()
		run := w.submit(n, "order", nil)
		synctest.Wait()
		if held := n.Status().Memory; held < large || held > 2*large {
			t.Errorf("a run with an output of %d bytes takes %d", large, held)
		}
		w.wait(n, run, status.RunSucceeded)
		synctest.Wait()
		if held := n.Status().Memory; held != 0 {
			t.Errorf("without runs %d bytes are taken", held)
		}
		n.drain(t)
	})
}
