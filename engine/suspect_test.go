package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// A deadly Capacity ends its engine when it is asked about agent "bad" for the
// n-th time: the decision that asks never comes back, and the engine is killed.
type deadly struct {
	after int           // how often it may be asked before
	kill  func()        // ends the engine
	over  chan struct{} // closed at the end of the test

	mu   sync.Mutex
	seen int
}

func (c *deadly) Slot(spec invoke.AgentSpec) machine.Slot {
	if spec.Name != "bad" {
		return machine.Slot{Free: 1000}
	}
	c.mu.Lock()
	c.seen++
	dies := c.seen > c.after
	c.mu.Unlock()
	if dies {
		c.kill()
		<-c.over
	}
	return machine.Slot{Free: 1000}
}

func (c *deadly) Reserve(invoke.AgentSpec, int) bool { return true }
func (c *deadly) Release(invoke.AgentSpec, int)      {}
func (c *deadly) OnFree(func(string))                {}

// startDeadly starts an engine with a deadly Capacity.
func (w *world) startDeadly(after int, over chan struct{}, log slog.Handler) *testNode {
	c := &deadly{after: after, over: over}
	w.cfg = func(cfg *engine.Config) { cfg.Capacity, cfg.Logger = c, slog.New(log) }
	var started atomic.Pointer[testNode]
	ready := make(chan struct{})
	c.kill = func() {
		<-ready
		started.Load().StopNow()
	}
	n := w.start()
	started.Store(n)
	close(ready)
	return n
}

// poisonFlow has a run that is like the others and one that ends its engine.
const poisonFlow = `
agent "bad" {
  plugin = "shop"
}
workflow "order" {
  step "charge" {
    action  = agent.shop.charge
    timeout = "1h"
    retry {
      max_attempts = 20
    }
    input { name = "charge" }
  }
  step "book" {
    action     = agent.shop.charge
    depends_on = [step.charge]
    timeout    = "1h"
    retry {
      max_attempts = 20
    }
    input { name = "book" }
  }
}
workflow "poison" {
  step "a" {
    action  = agent.bad.charge
    timeout = "1h"
    retry {
      max_attempts = 20
    }
    input { name = "a" }
  }
  step "b" {
    action     = agent.bad.charge
    depends_on = [step.a]
    timeout    = "1h"
    retry {
      max_attempts = 20
    }
    input { name = "b" }
  }
}
`

// A run whose decision ends every engine that makes it is parked after three such
// deaths, whether it is the takeover that kills or what comes later. The other runs
// end well, and one of them that only waits is not suspected of anything. A person
// can have the run tried again.
func TestPoisonousRunIsParked(t *testing.T) {
	for after := range 3 { // later it has got on
		t.Run(fmt.Sprintf("deadly after %d", after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, poisonFlow)
				over, book := make(chan struct{}), &logBook{Handler: slog.DiscardHandler}
				w.shop.on("charge", func(ctx context.Context, _ int) error { return pause(ctx, 4*time.Second) })
				w.shop.on("a", func(ctx context.Context, _ int) error { return pause(ctx, time.Second) }) // the takeover is over by then
				start := func(after int) *testNode { return w.startDeadly(after, over, book) }
				defer func() {
					if t.Failed() {
						t.Log(strings.Join(book.taken(), "\n"), w.transcript(0))
					}
				}()
				first := start(1) // it lives to see the run begin
				innocent := w.submit(first, "order", nil)
				poison := w.submit(first, "poison", nil)
				deaths := 0
				for n := first; ; n = start(after) {
					timer := time.NewTimer(time.Minute)
					select {
					case err := <-n.done:
						timer.Stop()
						if deaths++; !errors.Is(err, engine.ErrStopping) || deaths > store.MaxDeaths+1 {
							close(over)
							t.Fatalf("engine %d ended: %v", deaths, err)
						}
						n.stop()
						continue
					case <-timer.C:
					}
					w.wait(n, innocent, status.RunSucceeded)
					head, _, err := store.LoadRun(t.Context(), w.mem, poison)
					if err != nil || head.State != status.RunParked {
						t.Fatalf("after %d deaths the run is %v, %v, want parked\n%s", deaths, head.State, err, w.transcript(poison))
					}
					if deaths <= store.MaxDeaths-1 {
						t.Errorf("it was parked after %d deaths", deaths)
					}
					state := w.check(poison)
					if !state.Run().Lost() || state.Failure().Code != machine.CodeEngineLost {
						t.Errorf("the journal says %+v", state.Failure())
					}
					alerts, err := w.mem.Alerts(t.Context(), 0, 10)
					if err != nil || len(alerts) != 1 || alerts[0].Run != poison || alerts[0].Code != machine.CodeEngineLost {
						t.Errorf("the alerts are %+v, %v", alerts, err)
					}
					if text := strings.Join(book.taken(), "\n"); !strings.Contains(text, "run is parked") {
						t.Errorf("the log does not say so:\n%s", text)
					}
					n.kill(t)
					break
				}
				suspects, err := w.mem.Suspects(t.Context(), 0, []status.RunID{innocent, poison})
				if err != nil || suspects[innocent].Deaths != 0 || suspects[poison].Deaths != store.MaxDeaths {
					t.Errorf("the suspects are %v, %v", suspects, err)
				}

				// Nobody looks at it again by itself, also where an answer waits; once a
				// person has spoken an engine that can decide it goes on.
				w.cfg = nil
				healthy := w.start()
				time.Sleep(time.Minute)
				if head, _, err := store.LoadRun(t.Context(), w.mem, poison); err != nil || head.State != status.RunParked {
					t.Errorf("an engine touched the run: it is %v, %v", head.State, err)
				}
				if err := healthy.Adopt(t.Context(), poison); err == nil || !strings.Contains(err.Error(), "engine explain") {
					t.Errorf("Adopt = %v, want that it refuses and says where to look", err)
				}
				operator := &operator.Operator{Store: w.mem, Defs: journal.NewDefinitions(w.mem, nil)}
				id, err := operator.Ask(t.Context(), poison, machine.RetryRequested{By: "ann"}, "ann")
				if err != nil {
					t.Fatalf("retry: %v", err)
				}
				if err := operator.Answer(t.Context(), poison, id); err != nil {
					t.Fatalf("retry: %v", err)
				}
				w.wait(healthy, poison, status.RunSucceeded)
				if suspects, err := w.mem.Suspects(t.Context(), 0, []status.RunID{poison}); err != nil || len(suspects) > 0 {
					t.Errorf("the suspects are %v, %v", suspects, err)
				}
				close(over)
				healthy.drain(t)
			})
		})
	}
}
