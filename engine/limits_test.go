package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	"github.com/saga-engine/engine/sdk"
)

// limitedShop is a workflow with one step, whose agent has the given limits.
func limitedShop(limits string) string {
	return fmt.Sprintf("agent \"shop\" {\n%s\n}\n%s", limits, oneStep)
}

// A gauge counts calls in flight.
type gauge struct {
	mu        sync.Mutex
	now, most int
	starts    []time.Time
}

// during counts one call that takes the time d.
func (g *gauge) during(ctx context.Context, d time.Duration) {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.starts = append(g.starts, time.Now())
	g.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
}

// counts returns how many calls are in flight, and how many have been at most.
func (g *gauge) counts() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.most
}

// roomy gives each node a Capacity that limits nothing itself.
func (w *world) roomy() {
	w.cfg = func(c *engine.Config) { c.Capacity = &seats{limit: 1 << 20} }
}

// S72: max_concurrency holds over all engines of a database, every engine gets its part, and no attempt
// is spent by waiting.
func TestMaxConcurrencyOverEngines(t *testing.T) {
	for _, most := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, limitedShop(fmt.Sprintf("max_concurrency = %d", most)))
			w.roomy()
			g := &gauge{}
			w.shop.on("reserve", func(ctx context.Context, _ int) error {
				g.during(ctx, time.Second)
				return nil
			})
			nodes := []*testNode{w.start(), w.start(), w.start()}
			const each = 12
			runs := map[status.RunID]*testNode{}
			for _, n := range nodes {
				for range each {
					runs[w.submit(n, "one", nil)] = n
				}
			}
			start := time.Now()
			last := map[*testNode]time.Time{}
			for run, n := range runs {
				st := w.wait(n, run, status.RunSucceeded)
				if node := story.Node(st, nil, 0); node.Failures != 0 || node.Attempt != 1 {
					t.Errorf("run %d: attempt %d, failures %d: waiting for a slot must cost nothing", run, node.Attempt, node.Failures)
				}
				if end := st.Run().Finished.Time(); end.After(last[n]) {
					last[n] = end
				}
			}
			if _, got := g.counts(); got != most {
				t.Errorf("%d calls were in flight, max_concurrency is %d", got, most)
			}
			ideal := time.Duration(3*each/most) * time.Second
			if took := time.Since(start); took > ideal*2 {
				t.Errorf("%d calls of 1 s took %s with max_concurrency = %d", 3*each, took, most)
			}
			// All engines have the same work, so they end it at about the same time.
			for _, end := range last {
				if d := end.Sub(start); d < ideal/2 {
					t.Errorf("an engine was ready after %s, and all together need at least %s: it took the part of others", d, ideal)
				}
			}
			for _, n := range nodes {
				n.drain(t)
			}
		})
	}
}

// The slots of an engine that died come back when its calls are over, and not before.
func TestSlotsOfADeadEngineComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limitedShop("max_concurrency = 2")+`
workflow "long" {
  deadline = "1h"
  step "reserve" {
    action  = agent.shop.reserve
    timeout = "2m"
    input { name = "long" }
  }
}`)
		w.roomy()
		g := &gauge{}
		w.shop.on("reserve", func(ctx context.Context, _ int) error {
			g.during(ctx, time.Second)
			return nil
		})
		w.shop.on("long", func(ctx context.Context, _ int) error {
			g.during(context.WithoutCancel(ctx), 110*time.Second) // the service goes on, although the engine is gone
			return nil
		})
		first := w.start()
		w.submit(first, "long", nil)
		w.submit(first, "long", nil)
		time.Sleep(5 * time.Second)
		if now, _ := g.counts(); now != 2 {
			t.Fatalf("%d calls are in flight, want 2", now)
		}
		died := time.Now()
		first.kill(t)
		second := w.start()
		w.wait(second, w.submit(second, "one", nil), status.RunSucceeded)
		if _, most := g.counts(); most > 2 {
			t.Errorf("%d calls were in flight, max_concurrency is 2", most)
		}
		if took := time.Since(died); took > 4*time.Minute {
			t.Errorf("the slots came back after %s", took)
		}
		second.drain(t)
	})
}

// S89: rate_limit holds over all engines of a database: in no period more calls start.
func TestRateLimitOverEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limitedShop(`rate_limit = "10/s"`))
		w.roomy()
		g := &gauge{}
		w.shop.on("reserve", func(ctx context.Context, n int) error {
			g.during(ctx, 10*time.Millisecond)
			if n <= 10 && n%2 == 0 {
				return context.DeadlineExceeded // a retry counts, too
			}
			return nil
		})
		nodes := []*testNode{w.start(), w.start()}
		runs := map[status.RunID]*testNode{}
		begin := time.Now()
		for i := range 80 {
			n := nodes[i%2]
			runs[w.submit(n, "one", nil)] = n
		}
		for run, n := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		slices.SortFunc(g.starts, time.Time.Compare)
		for i := 10; i < len(g.starts); i++ {
			if d := g.starts[i].Sub(g.starts[i-10]); d < time.Second {
				t.Fatalf("11 calls started within %s, the limit is 10 in a second", d)
			}
		}
		if took, calls := time.Since(begin), len(g.starts); took > time.Duration(calls)*time.Second/5 {
			t.Errorf("%d calls took %s: less than half of the limit was used", calls, took)
		}
		for _, n := range nodes {
			n.drain(t)
		}
	})
}

// A run that must wait long for its rate_limit is held until a time, which people see, and costs no
// attempt. It continues at that time.
func TestRateLimitHoldsUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limitedShop(`rate_limit = "1/m"`))
		w.roomy()
		n := w.start()
		w.wait(n, w.submit(n, "one", nil), status.RunSucceeded)
		begin := time.Now()
		run := w.submit(n, "one", nil)
		time.Sleep(5 * time.Second)
		st := w.check(run)
		held := st.Held()
		if len(held) != 1 || held[0].Why != "rate_limit 1/m lets no call start" || held[0].Until.Before(begin.Add(50*time.Second)) {
			t.Fatalf("held %+v", held)
		}
		if text := fmt.Sprint(story.Explain(st, w.def.Workflow("one"), time.Now())); !strings.Contains(text, "rate_limit 1/m lets no call start") {
			t.Errorf("explain does not name the limit: %s", text)
		}
		end := w.wait(n, run, status.RunSucceeded)
		if node := story.Node(end, nil, 0); node.Attempt != 1 {
			t.Errorf("attempt %d, want 1", node.Attempt)
		}
		if took := time.Since(begin); took < 59*time.Second || took > 2*time.Minute {
			t.Errorf("the second call of a minute came after %s", took)
		}
		n.drain(t)
	})
}

// The second step of a run, too, is held until a time if its rate_limit is used up.
func TestRateLimitHoldsALaterStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limitedShop(`rate_limit = "1/m"`)+`
workflow "two" {
  deadline = "1h"
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
  step "more" {
    action     = agent.shop.reserve
    depends_on = [step.reserve]
    input { name = "more" }
  }
}`)
		w.roomy()
		n := w.start()
		run := w.submit(n, "two", nil)
		time.Sleep(5 * time.Second)
		if held := w.check(run).Held(); len(held) != 1 || time.Until(held[0].Until) < 50*time.Second {
			t.Errorf("held %+v", held)
		}
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}

// A brokenSeats is a Capacity of an engine whose agent does not start.
type brokenSeats struct{ seats }

func (s *brokenSeats) Slot(invoke.AgentSpec) machine.Slot {
	return machine.Slot{Until: time.Now().Add(5 * time.Second), Why: "the agent ends at its start", Down: true}
}

// An engine whose agent does not work leaves its runs to an engine whose agent works. Without such
// an engine it keeps them.
func TestRunIsLeftToAnEngineWhoseAgentWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneStep)
		w.cfg = func(c *engine.Config) { c.Capacity = &brokenSeats{} }
		sick := w.start()
		run := w.submit(sick, "one", nil)
		time.Sleep(5 * time.Minute)
		st := w.check(run)
		if held := st.Held(); len(held) != 1 || held[0].Why != "the agent ends at its start" {
			t.Errorf("held %+v", held)
		}
		head, _, err := store.LoadRun(t.Context(), store.Complete(w.mem), run)
		if err != nil || head.Owner == 0 {
			t.Errorf("the only engine has left the run: owner %d, err %v", head.Owner, err)
		}
		w.roomy()
		well := w.start()
		begin := time.Now()
		w.wait(well, run, status.RunSucceeded)
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the run went to the other engine after %s", took)
		}
		sick.drain(t)
		well.drain(t)
	})
}

// A step in backoff has no slot: another run uses it meanwhile.
func TestSlotIsFreeDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, limitedShop("max_concurrency = 1")+`
workflow "slow" {
  deadline = "1h"
  step "reserve" {
    action = agent.shop.reserve
    retry {
      max_attempts     = 2
      initial_interval = "10m"
      max_interval     = "10m"
      jitter           = "none"
    }
    input { name = "slow" }
  }
}`)
		w.roomy()
		w.shop.on("slow", func(_ context.Context, n int) error {
			if n == 1 {
				return &sdk.Failure{Code: "unavailable"}
			}
			return nil
		})
		n := w.start()
		slow := w.submit(n, "slow", nil)
		time.Sleep(time.Minute)
		begin := time.Now()
		w.wait(n, w.submit(n, "one", nil), status.RunSucceeded)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a run waited %s for the slot of a step in backoff", took)
		}
		w.wait(n, slow, status.RunSucceeded)
		n.drain(t)
	})
}
