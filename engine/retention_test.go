package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A ledger collects what retention is said to have removed.
type ledger struct {
	*factLog
	mu     sync.Mutex // protects the fields below
	passes int
	sum    store.RetainStats
}

func (k *ledger) Retained(s store.RetainStats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passes++
	k.sum.Runs += s.Runs
}

func (k *ledger) told() (passes, runs int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.passes, k.sum.Runs
}

// Runs go when they have been over for as long as they are kept, once, whichever
// of the engines does it; an engine that keeps them for ever removes none (S45).
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		k := &ledger{factLog: w.story}
		w.cfg = func(c *engine.Config) { c.Observer = k }
		keeps := w.start()
		w.opts.Retention = time.Hour
		a, b := w.start(), w.start()
		old := w.submit(a, "order", nil)
		w.wait(a, old, status.RunSucceeded)
		time.Sleep(40 * time.Minute)
		young := w.submit(keeps, "order", nil)
		w.wait(keeps, young, status.RunSucceeded)
		time.Sleep(15 * time.Minute)
		w.check(old)
		time.Sleep(15 * time.Minute)
		if _, _, err := store.LoadRun(t.Context(), w.store, old); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a run that has been over for 70 minutes: err = %v, want ErrNotFound", err)
		}
		w.check(young)
		passes, runs := k.told()
		if runs != 1 {
			t.Errorf("%d runs were removed, want 1", runs)
		}
		if passes < 5 || passes > 22 { // two of them of the engine that keeps runs for ever
			t.Errorf("%d passes in 70 minutes of two engines, want one in about four minutes", passes)
		}
		// Whoever asks for the run is told that there is none, in order.
		if _, err := a.Wait(t.Context(), old); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("waiting for a run that is gone: err = %v, want ErrNotFound", err)
		}
		if err := a.Deliver(t.Context(), old, machine.CancelRequested{By: "test"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a verb for a run that is gone: err = %v, want ErrNotFound", err)
		}
		for _, n := range []*testNode{a, b, keeps} {
			n.drain(t)
		}
	})
}

// A store that does not answer costs a pass, not the engine; one that is through
// only in part goes on at once.
func TestRetentionOfAStoreInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		s := &partsStore{Full: store.Complete(w.mem), fail: 2, parts: 5}
		w.store = s
		k := &ledger{factLog: w.story}
		w.cfg = func(c *engine.Config) { c.Observer = k }
		w.opts.Retention = time.Hour
		n := w.start()
		time.Sleep(30 * time.Minute)
		if passes, runs := k.told(); passes < 3 || runs != 5 {
			t.Errorf("%d passes removed %d runs, want 5 in the third", passes, runs)
		}
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}

// An engine that was cut off for longer than runs are kept finds those of its
// runs gone that others ended meanwhile. It has lost nothing, and goes on (S49).
func TestRemovedWhileCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orderFlow)
		w.shop.on("charge", block)
		faults := w.faulty()
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		faults.down.Store(true)
		w.store, w.opts.Retention = w.mem, time.Minute
		w.shop.on("charge", nil)
		other := w.start()
		time.Sleep(5 * time.Minute)
		if _, _, err := store.LoadRun(t.Context(), w.mem, run); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("the run: err = %v, want ErrNotFound", err)
		}
		faults.down.Store(false)
		time.Sleep(time.Minute)
		select {
		case err := <-n.done:
			t.Fatalf("Run = %v, want the engine to go on", err)
		default:
		}
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		n.drain(t)
		other.drain(t)
	})
}

// A partsStore fails at first, and then has one run to remove at a time.
type partsStore struct {
	store.Full
	mu          sync.Mutex // protects the fields below
	fail, parts int
}

// Retained knows of no run that was removed.
func (s *partsStore) Retained(context.Context) (status.RunID, error) { return 0, nil }

func (s *partsStore) Retain(context.Context, time.Time, int) (store.RetainStats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return store.RetainStats{}, errors.New("no answer")
	}
	if s.parts == 0 {
		return store.RetainStats{}, nil
	}
	s.parts--
	return store.RetainStats{Runs: 1, More: s.parts > 0}, nil
}

// The ids of runs tell when they were submitted.
func TestRunTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 123_000_000, time.UTC)
	id := naming.FirstRunOf(at)
	if got := naming.TimeOfRun(id); !got.Equal(at) {
		t.Errorf("the first run of %v is of %v", at, got)
	}
	if got := naming.TimeOfRun(id - 1); !got.Equal(at.Add(-time.Millisecond)) {
		t.Errorf("the run before is of %v", got)
	}
	if got := naming.FirstRunOf(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)); got != 0 {
		t.Errorf("the first run of before there were any is %d", got)
	}
}

// A workflow keeps its runs for its own time, whatever the engine says: an engine that keeps runs for
// ever removes them, and so does one that keeps runs for longer. Others of the engine's runs stay.
func TestWorkflowKeepsItsRuns(t *testing.T) {
	for name, keep := range map[string]time.Duration{"for ever": 0, "for longer": 100 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orderFlow+`
workflow "probe" {
  deadline  = "1h"
  retention = "3h"
  step "reserve" {
    action       = agent.shop.reserve
    compensation = "none"
    input { name = "probe" }
  }
}
`)
				w.opts.Retention = keep
				n := w.start()
				probe, order := w.submit(n, "probe", nil), w.submit(n, "order", nil)
				w.wait(n, probe, status.RunSucceeded)
				w.wait(n, order, status.RunSucceeded)
				time.Sleep(2*time.Hour + 55*time.Minute)
				w.check(probe)
				time.Sleep(70 * time.Minute)
				if _, _, err := store.LoadRun(t.Context(), w.store, probe); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("a run that has been over for more than 4 hours: err = %v, want ErrNotFound", err)
				}
				w.check(order)
				n.drain(t)
			})
		})
	}
}
