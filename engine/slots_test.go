package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// seats is a Capacity with one limit for every agent.
type seats struct {
	mu       sync.Mutex // protects the fields below
	limit    int
	taken    int
	most     int
	until    time.Time
	free     []func(string)
	key      string
	refuse   int // Reserve calls to refuse although Slot offered room
	reserves int
}

func (s *seats) Slot(spec invoke.AgentSpec) machine.Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = spec.Key
	if time.Now().Before(s.until) {
		return machine.Slot{Until: s.until, Why: "circuit open"}
	}
	return machine.Slot{Free: s.limit - s.taken}
}

func (s *seats) Reserve(_ invoke.AgentSpec, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserves++
	if s.refuse > 0 {
		s.refuse--
		return false
	}
	if s.taken+n > s.limit {
		return false
	}
	s.taken += n
	s.most = max(s.most, s.taken)
	return true
}

func (s *seats) Release(spec invoke.AgentSpec, n int) {
	s.mu.Lock()
	s.taken -= n
	free := slices.Clone(s.free)
	s.mu.Unlock()
	for _, f := range free {
		f(spec.Key)
	}
}

func (s *seats) OnFree(fn func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, fn)
}

const oneStep = `
workflow "one" {
  deadline = "1h"
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
}`

// S65, S89: what an agent cannot take now waits without spending attempts,
// first come, first served, and every slot comes back.
func TestSlotsAreSharedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		w.faulty()
		s := &seats{limit: 3}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		w.shop.on("reserve", func(context.Context, int) error {
			time.Sleep(time.Second)
			return nil
		})
		n := w.start()
		start := time.Now()
		var runs []status.RunID
		for range 12 {
			runs = append(runs, w.submit(n, "one", nil))
			synctest.Wait() // the run has a slot, or is in line: runs of different shards may overtake each other before
		}
		var ends []time.Time
		for _, run := range runs {
			st := w.wait(n, run, status.RunSucceeded)
			ends = append(ends, st.Run().Finished.Time())
			if node := story.Node(st, nil, 0); node.Failures != 0 {
				t.Errorf("run %d: failures = %d", run, node.Failures)
			}
		}
		if !slices.IsSortedFunc(ends, time.Time.Compare) {
			t.Errorf("runs ended out of order: %v", ends)
		}
		if d := ends[11].Sub(start); d < 4*time.Second || d > 4*time.Second+500*time.Millisecond {
			t.Errorf("12 runs at 3 a second took %s, want 4 s", d)
		}
		n.drain(t)
		if s.most != 3 || s.taken != 0 {
			t.Errorf("most taken = %d, left taken = %d, want 3 and 0", s.most, s.taken)
		}
	})
}

// A slot that is snatched between the look and the reservation makes the run
// wait, not fail, and nothing is committed that cannot be sent.
func TestSlotSnatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		s := &seats{limit: 1, refuse: 5}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		n := w.start()
		run := w.submit(n, "one", nil)
		time.Sleep(time.Second)
		w.wait(n, run, status.RunSucceeded)
		if calls := w.shop.called("reserve"); len(calls) != 1 {
			t.Errorf("calls = %d", len(calls))
		}
		n.drain(t)
		if s.taken != 0 {
			t.Errorf("left taken = %d", s.taken)
		}
	})
}

// S34, S40: an agent whose circuit is open holds steps until its next probe.
func TestOpenCircuitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		s := &seats{limit: 5, until: time.Now().Add(7 * time.Second)}
		w.cfg = func(c *engine.Config) { c.Capacity = s }
		n := w.start()
		start := time.Now()
		run := w.submit(n, "one", nil)
		st := w.wait(n, run, status.RunSucceeded)
		if d := time.Since(start); d < 7*time.Second || d > 7500*time.Millisecond {
			t.Errorf("took %s, want until the probe", d)
		}
		if node := story.Node(st, nil, 0); node.Failures != 0 {
			t.Errorf("failures = %d", node.Failures)
		}
		n.drain(t)
	})
}

// One commit carries what queued during the one before; one row of a run
// carries what happened to it meanwhile.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "wide" {
  deadline = "1h"
  step "each" {
    for_each = toset([for i in range(200) : "k${i}"])
    action   = agent.shop.reserve
    input { name = each.key }
  }
}`)
		faults := &faultStore{Full: store.Complete(w.mem)}
		w.store = faults
		faults.plan = func(n int, after bool) error {
			time.Sleep(time.Millisecond) // a commit takes 2 ms
			return nil
		}
		n := w.start()
		run := w.submit(n, "wide", nil)
		w.wait(n, run, status.RunSucceeded)
		_, rows, err := store.LoadRun(t.Context(), w.mem, run)
		if err != nil || len(rows) > 20 {
			t.Errorf("200 instances took %d rows, %v, want a few", len(rows), err)
		}
		n.drain(t)

		w = newWorld(t, oneStep)
		faults = &faultStore{Full: store.Complete(w.mem)}
		w.store = faults
		faults.plan = func(n int, after bool) error { time.Sleep(time.Millisecond); return nil }
		w.opts.Writers = 1
		release := make(chan struct{})
		w.shop.on("reserve", func(context.Context, int) error { <-release; return nil })
		n = w.start()
		var runs []status.RunID
		for range 100 {
			runs = append(runs, w.submit(n, "one", nil))
		}
		faults.mu.Lock()
		faults.batches = nil
		faults.mu.Unlock()
		close(release)
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		faults.mu.Lock()
		batches := slices.Clone(faults.batches)
		faults.mu.Unlock()
		if len(batches) > 10 {
			t.Errorf("100 ends took %d commits %v, want a few", len(batches), batches)
		}
		n.drain(t)
	})
}

// S21: many runs at once on two engines, under the race detector: each run is
// handled by one, and every story is whole.
func TestManyRunsOnTwoEngines(t *testing.T) {
	w := newWorld(t, orderFlow)
	w.opts.Lease = 30 * time.Second
	s := &seats{limit: 16}
	w.cfg = func(c *engine.Config) { c.Capacity = s }
	a, b := w.start(), w.start()
	var wg sync.WaitGroup
	for i := range 100 {
		n := []*testNode{a, b}[i%2]
		wg.Go(func() {
			sub, err := n.Submit(t.Context(), engine.Submission{Definition: w.def, Workflow: "order", Vars: w.vars("order", nil), Name: fmt.Sprintf("o-%d", i)})
			if err != nil {
				t.Error(err)
				return
			}
			st, err := n.Wait(t.Context(), sub.Run)
			if err != nil || st.Status() != status.RunSucceeded {
				t.Errorf("run %d: %v, %v", i, st, err)
			}
		})
	}
	wg.Wait()
	rows, err := w.mem.Runs(t.Context(), store.RunFilter{Limit: 1000})
	if err != nil || len(rows) != 100 {
		t.Fatalf("%d runs, %v", len(rows), err)
	}
	for _, row := range rows {
		w.check(row.Run)
	}
	if len(w.story.gaps) > 0 {
		t.Error(w.story.gaps)
	}
	a.drain(t)
	b.drain(t)
	if s.taken != 0 {
		t.Errorf("left taken = %d", s.taken)
	}
}
