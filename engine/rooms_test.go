package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

const limitedFlow = `
workflow "limited" {
  deadline = "10h"
  priority = var.priority
  concurrency {
    limit     = var.limit
    key       = var.region
    when_full = "WHEN"
  }
  variable "priority" { default = 50 }
  variable "limit" { default = 3 }
  variable "region" { default = "eu" }
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
}`

// A meter counts how many calls are under way, and the largest number.
type meter struct {
	mu        sync.Mutex // protects the fields below
	now, most int
}

// enter counts a call that takes a second.
func (m *meter) enter(context.Context, int) error {
	m.mu.Lock()
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	time.Sleep(time.Second)
	m.mu.Lock()
	m.now--
	m.mu.Unlock()
	return nil
}

// limited returns a world with a limited workflow, and the meter of its calls.
func limited(t *testing.T, when string) (*world, *meter) {
	w, m := newWorld(t, strings.Replace(limitedFlow, "WHEN", when, 1)), &meter{}
	w.shop.on("reserve", m.enter)
	return w, m
}

func (w *world) submission(assigned map[string]string) engine.Submission {
	return engine.Submission{Definition: w.def, Workflow: "limited", Vars: w.vars("limited", assigned), By: "test"}
}

// Two engines and 50 runs with a limit of 3: never more than 3 are admitted, and all end. Half of
// the runs are submitted to an engine, half are queued in the store.
func TestConcurrencyOfTwoEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := limited(t, "queue")
		a, b := w.start(), w.start()
		var runs []status.RunID
		for n := range 50 {
			node := []*testNode{a, b}[n%2]
			if n%4 < 2 {
				runs = append(runs, w.submit(node, "limited", nil))
				continue
			}
			s, err := engine.Enqueue(t.Context(), engine.Config{Store: w.store, Options: w.opts}, w.submission(nil))
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, s.Run)
		}
		start := time.Now()
		for _, run := range runs {
			for w.check(run).Status() != status.RunSucceeded {
				time.Sleep(100 * time.Millisecond)
				if time.Since(start) > time.Hour {
					t.Fatalf("run %d is %v\n%s", run, w.check(run).Status(), w.transcript(run))
				}
			}
		}
		if m.most != 3 {
			t.Errorf("%d calls at the same time, want 3", m.most)
		}
		a.drain(t)
		b.drain(t)
	})
}

// Each key has its own limit.
func TestConcurrencyOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := limited(t, "queue")
		n := w.start()
		var runs []status.RunID
		for i := range 8 {
			runs = append(runs, w.submit(n, "limited", map[string]string{"limit": "1", "region": []string{"eu", "us"}[i%2]}))
		}
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		if m.most != 2 {
			t.Errorf("%d calls at the same time, want 2", m.most)
		}
		n.drain(t)
	})
}

// S71: of the runs in line, the one with the highest priority is admitted first, and then the
// oldest one.
func TestS71LineIsInOrderOfPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := limited(t, "queue")
		n := w.start()
		runs := map[string]status.RunID{}
		var order []string
		for _, p := range []string{"50", "10", "90", "40", "100", "0"} {
			runs[p] = w.submit(n, "limited", map[string]string{"limit": "1", "priority": p})
			time.Sleep(time.Millisecond)
		}
		for p, run := range runs {
			w.wait(n, run, status.RunSucceeded)
			order = append(order, p)
		}
		slices.SortFunc(order, func(x, y string) int {
			return w.check(runs[x]).Run().Finished.Time().Compare(w.check(runs[y]).Run().Finished.Time())
		})
		if got := strings.Join(order, " "); got != "50 100 90 40 10 0" {
			t.Errorf("the runs ended in the order %s", got)
		}
		n.drain(t)
	})
}

// With when_full = "reject" a submission is refused with the names of the open runs, also if it is
// queued in the store, and accepted again after one of them has ended.
func TestConcurrencyRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := limited(t, "reject")
		n := w.start()
		run := w.submit(n, "limited", map[string]string{"limit": "1"})
		_, err := n.Submit(t.Context(), w.submission(map[string]string{"limit": "1"}))
		var full *engine.FullError
		if !errors.As(err, &full) || !errors.Is(err, naming.ErrFull) || full.Limit != 1 || full.Key != "eu" || len(full.Open) != 1 {
			t.Fatalf("err = %v (%+v)", err, full)
		}
		if !strings.Contains(err.Error(), `1 of 1 runs are open (`+full.Open[0]+`)`) {
			t.Errorf("err = %v", err)
		}
		if _, err := engine.Enqueue(t.Context(), engine.Config{Store: w.store, Options: w.opts}, w.submission(map[string]string{"limit": "1"})); !errors.As(err, &full) {
			t.Errorf("err = %v", err)
		}
		w.wait(n, run, status.RunSucceeded)
		w.wait(n, w.submit(n, "limited", map[string]string{"limit": "1"}), status.RunSucceeded)
		n.drain(t)
	})
}

// A run in line is queued and is cancelled at once; the run behind it does not wait for it.
func TestRunInLineIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := limited(t, "queue")
		n := w.start()
		one := map[string]string{"limit": "1"}
		first, second, third := w.submit(n, "limited", one), w.submit(n, "limited", one), w.submit(n, "limited", one)
		if s := w.check(second); s.Status() != status.RunQueued || !s.Run().Awaits {
			t.Errorf("the second run is %v", s.Status())
		}
		if err := n.Deliver(t.Context(), second, machine.CancelRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, second, status.RunCancelled)
		if s := w.check(first).Status(); s != status.RunRunning {
			t.Errorf("the first run is %v", s)
		}
		w.wait(n, first, status.RunSucceeded)
		w.wait(n, third, status.RunSucceeded)
		n.drain(t)
	})
}

// A takeover keeps the place of a run, and the line goes on with the engines that are left.
func TestTakeoverKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := limited(t, "queue")
		a := w.start()
		var runs []status.RunID
		for range 6 {
			runs = append(runs, w.submit(a, "limited", map[string]string{"limit": "2"}))
		}
		a.kill(t)
		b := w.start()
		start := time.Now()
		for _, run := range runs {
			for !w.check(run).Status().Final() && time.Since(start) < time.Hour {
				time.Sleep(time.Second)
			}
			if s := w.check(run).Status(); s != status.RunSucceeded {
				t.Errorf("run %d is %v\n%s", run, s, w.transcript(run))
			}
		}
		if m.most > 4 { // a call of the dead engine may overlap with its repetition
			t.Errorf("%d calls at the same time", m.most)
		}
		b.drain(t)
	})
}

// A priority or a limit that is out of range refuses the submission and names its line.
func TestLineOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := limited(t, "queue")
		n := w.start()
		for name, c := range map[string]struct{ value, want string }{
			"priority": {"101", "main.hcl:4: priority: a whole number from 0 to 100 is required"},
			"limit":    {"0", "main.hcl:6: concurrency.limit: a whole number from 1 to 1000000 is required"},
			"region":   {"", "main.hcl:7: concurrency.key: a key cannot be empty"},
		} {
			if _, err := n.Submit(t.Context(), w.submission(map[string]string{name: c.value})); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: err = %v, want %q", name, err, c.want)
			}
		}
		n.drain(t)
	})
}

// S72: S71: engines claim queued runs in the order of priority: the store keeps it in next_check.
func TestS71QueuedRunsAreClaimedByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := limited(t, "queue")
		var all []engine.Submission
		for _, p := range []string{"0", "50", "100", "75"} {
			all = append(all, w.submission(map[string]string{"priority": p}))
		}
		cfg := engine.Config{Store: w.store, Options: w.opts}
		out, err := engine.EnqueueAll(t.Context(), cfg, all)
		if err != nil {
			t.Fatal(err)
		}
		id, err := w.store.Join(t.Context(), "test", time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		tick, err := w.store.Tick(t.Context(), id, time.Hour, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []status.RunID
		for _, d := range tick.Unowned {
			got = append(got, d.Run)
		}
		if want := []status.RunID{out[2].Run, out[3].Run, out[1].Run, out[0].Run}; !slices.Equal(got, want) {
			t.Errorf("unowned = %v, want %v", got, want)
		}
	})
}
