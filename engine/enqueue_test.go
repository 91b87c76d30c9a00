package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// orders are n submissions; those at a place in bad are refused.
func (w *world) orders(n int, bad ...int) []engine.Submission {
	all := make([]engine.Submission, n)
	for i := range all {
		all[i] = engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil)}
		if slices.Contains(bad, i) {
			all[i].Workflow = "no_such"
		}
	}
	return all
}

// kept returns the runs that the world's store holds.
func (w *world) kept() map[status.RunID]bool {
	w.t.Helper()
	rows, err := w.mem.Runs(w.t.Context(), store.RunFilter{Limit: 1 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	runs := map[status.RunID]bool{}
	for _, r := range rows {
		runs[r.Run] = true
	}
	return runs
}

// tally checks that there is one result for each submission, and that the results
// say what the store holds: every run that is stored, and no other.
func (w *world) tally(all []engine.Submission, out []engine.Enqueued, stored int) {
	w.t.Helper()
	if len(out) != len(all) {
		w.t.Fatalf("%d results for %d submissions", len(out), len(all))
	}
	runs, told := w.kept(), map[status.RunID]bool{}
	for i, o := range out {
		switch {
		case o.Err == nil && (!runs[o.Run] || told[o.Run]):
			w.t.Errorf("result %d: %+v, and it is not stored, or another one's", i, o)
		case o.Err == nil:
			told[o.Run] = true
		case o.Run != 0:
			w.t.Errorf("result %d: %+v, want it to be known", i, o)
		}
	}
	if len(told) != stored || len(runs) != stored {
		w.t.Errorf("%d runs are told and %d are stored, want %d", len(told), len(runs), stored)
	}
}

// A caller knows of each submission what became of it: one that is refused hides
// none after it, and what is stored is told.
func TestEnqueueAllTellsOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		all := w.orders(854, 0, 255, 700)
		out, err := engine.EnqueueAll(t.Context(), engine.Config{Store: w.mem, Options: engine.Options{Writers: 2}}, all)
		w.tally(all, out, 851)
		for _, i := range []int{0, 255, 700} {
			if out[i].Err == nil || out[i].Run != 0 {
				t.Errorf("result %d: %+v, want it refused", i, out[i])
			}
		}
		if err == nil || err != out[0].Err {
			t.Errorf("err = %v, want that of the first result", err)
		}
	})
}

// A writer that cannot be opened leaves its work to the others; where none can be,
// and where the store cannot be used at all, each result says so.
func TestEnqueueAllWithoutWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		far, all := w.faulty(), w.orders(600)
		far.opens = func(n int) bool { return n == 1 }
		cfg := engine.Config{Store: far, Options: engine.Options{Writers: 3}}
		out, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil {
			t.Error(err)
		}
		w.tally(all, out, 600)
		for name, spoil := range map[string]func(){
			"no writer":  func() { far.opens = func(int) bool { return false } },
			"no member":  func() { far.noJoin.Store(true) },
			"no options": func() { cfg.Options.Lease = -1 },
			"no store":   func() { cfg.Store = nil },
		} {
			spoil()
			out, err := engine.EnqueueAll(t.Context(), cfg, all[:3])
			if err == nil || len(out) != 3 {
				t.Fatalf("%s: %d results, %v, want three and an error", name, len(out), err)
			}
			for i, o := range out {
				if o.Err == nil || o.Run != 0 {
					t.Errorf("%s: result %d: %+v, want an error", name, i, o)
				}
			}
		}
		if n := len(w.kept()); n != 600 {
			t.Errorf("%d runs are stored, want 600", n)
		}
	})
}

// Beyond the byte limit the rest goes in further batches, not one by one.
func TestEnqueueAllKeepsToBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		far, all := w.faulty(), w.orders(200)
		cfg := engine.Config{Store: far, Options: engine.Options{Writers: 1}}
		if _, err := engine.EnqueueAll(t.Context(), cfg, all[:1]); err != nil {
			t.Fatal(err)
		}
		runs, err := w.mem.Runs(t.Context(), store.RunFilter{})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.mem.Rows(t.Context(), runs[0].Run, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Options.MaxBatchBytes = 10*len(rows[0].Data) + 9 // ten of them, if they are as large as this one
		far.batches = nil
		out, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if o.Err != nil || o.Run == 0 {
				t.Fatalf("result %d: %+v", i, o)
			}
		}
		if len(far.batches) > 30 {
			t.Errorf("200 submissions went in %d batches: %v", len(far.batches), far.batches)
		}
	})
}

// If the membership is declared dead before the runs are stored, as by an engine that opens an embedded
// state, EnqueueAll joins again. If this happens each time, each result says so.
func TestEnqueueAllJoinsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		far, all := w.faulty(), w.orders(600)
		far.plan = func(n int, after bool) error {
			if n == 2 && !after {
				return store.ErrFenced
			}
			return nil
		}
		cfg := engine.Config{Store: far, Options: engine.Options{Writers: 1}}
		out, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil {
			t.Error(err)
		}
		w.tally(all, out, 600)
		far.plan = func(int, bool) error { return store.ErrFenced }
		out, err = engine.EnqueueAll(t.Context(), cfg, all[:3])
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("err = %v", err)
		}
		for i, o := range out {
			if o.Err == nil || o.Run != 0 {
				t.Errorf("result %d: %+v, want an error", i, o)
			}
		}
	})
}

// An answer that is lost doubles no run, also of those without a name; where no
// answer comes at all the results say that the runs may be stored, and which.
func TestEnqueueAllWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		far, all := w.faulty(), w.orders(20)
		all[7].Name = "seven"
		far.plan = func(n int, after bool) error {
			if n <= 2 && after {
				return errDown
			}
			return nil
		}
		cfg := engine.Config{Store: far, Options: engine.Options{Writers: 1}}
		out, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil {
			t.Error(err)
		}
		w.tally(all, out, 20)
		if out[7].Name != "seven" || out[7].Exists {
			t.Errorf("result 7: %+v, want a new run of that name", out[7])
		}

		sent := 0
		far.plan = func(_ int, after bool) error {
			if after {
				sent++
				return errDown
			}
			return nil
		}
		all = w.orders(300)
		out, err = engine.EnqueueAll(t.Context(), cfg, all)
		if !errors.Is(err, errDown) {
			t.Errorf("err = %v", err)
		}
		if sent != commit.SubmitTries {
			t.Errorf("the batch was sent %d times, want %d", sent, commit.SubmitTries)
		}
		stored := w.kept()
		if len(stored) != 20+256 {
			t.Errorf("%d runs are stored, want those of one batch more", len(stored))
		}
		for i, o := range out {
			sent := i < 256
			if o.Err == nil || sent != (o.Run != 0) || sent && (!stored[o.Run] || o.Name != naming.RunName(o.Run)) {
				t.Fatalf("result %d: %+v", i, o)
			}
		}
		if sub, err := engine.Enqueue(t.Context(), cfg, all[0]); err == nil || !w.kept()[sub.Run] {
			t.Errorf("Enqueue = %+v, %v, want the run that may be stored and an error", sub, err)
		}
	})
}

// An end of the context leaves nothing without a result.
func TestEnqueueAllInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		far, all := w.faulty(), w.orders(600)
		ctx, cancel := context.WithCancel(t.Context())
		far.plan = func(n int, after bool) error {
			if after && n == 1 {
				cancel()
			}
			return nil
		}
		out, err := engine.EnqueueAll(ctx, engine.Config{Store: far, Options: engine.Options{Writers: 1}}, all)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		w.tally(all, out, 256)
		if fmt.Sprint(out[256].Err) != fmt.Sprint(out[599].Err) {
			t.Errorf("%v, then %v", out[256].Err, out[599].Err)
		}
	})
}
