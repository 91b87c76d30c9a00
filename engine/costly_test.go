package engine_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// costlyFlow has a workflow whose second step has a costly input, and one without
// anything costly.
const costlyFlow = `
workflow "costly" {
  deadline = "1h"
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
  step "charge" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    input {
      name = "charge"
      note = format("%d", length([for i in range(50) : [for j in range(50) : sha512("${step.reserve.output.id}-${i}-${j}")]]))
    }
  }
}
workflow "order" {
  step "book" {
    action = agent.shop.book
    input { name = "book" }
  }
}
`

// A gate stands before the costly decisions of a node: each waits at it until it is
// open.
type gate struct {
	open chan struct{}

	mu   sync.Mutex
	came int
}

// guardPool has the costly decisions of a node wait at a gate.
func guardPool(n *testNode) *gate {
	g := &gate{open: make(chan struct{})}
	n.DecideCostly(func(wf *dsl.Workflow, s *machine.State, in machine.Input) machine.Record {
		g.mu.Lock()
		g.came++
		over := g.came > 100
		g.mu.Unlock()
		if over {
			panic("decisions are made again and again")
		}
		<-g.open
		return machine.Decide(wf, s, in)
	})
	return g
}

// costlyWorld starts a node with one run whose costly decision waits at the gate.
func costlyWorld(t *testing.T) (*world, *testNode, *gate, status.RunID) {
	t.Helper()
	w := newWorld(t, costlyFlow)
	n := w.start()
	g := guardPool(n)
	run := w.submit(n, "costly", nil)
	synctest.Wait()
	if g.count() != 1 {
		t.Fatalf("%d decisions are being made, want 1", g.count())
	}
	return w, n, g, run
}

// finishedBy checks that another node finishes the run, and calls each step once.
func (w *world) finishedBy(n *testNode, run status.RunID) {
	w.t.Helper()
	w.wait(n, run, status.RunSucceeded)
	w.shop.wantEffects(w.t, map[string]string{"reserve": "done", "charge": "done"})
}

// count returns how many decisions came to the gate.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came
}

// Runs with costly expressions do not hold up another run, not even on the same
// shard, and end well themselves.
func TestCostlyDecisionsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, costlyFlow)
		w.opts.Shards = 1
		n := w.start()
		g := guardPool(n)
		var costly []status.RunID
		for range 3 {
			costly = append(costly, w.submit(n, "costly", nil))
		}
		synctest.Wait()
		if g.count() == 0 {
			t.Fatal("no decision was costly enough for the pool")
		}
		w.wait(n, w.submit(n, "order", nil), status.RunSucceeded)
		for _, run := range costly {
			if s := w.check(run); s.Status() != status.RunRunning {
				t.Errorf("a run whose decision is being made is %v", s.Status())
			}
		}
		close(g.open)
		for _, run := range costly {
			w.wait(n, run, status.RunSucceeded)
		}
		if got := g.count(); got != 3 {
			t.Errorf("the pool made %d decisions, want one for each run", got)
		}
		n.drain(t)
	})
}

// A verb that comes while a decision is being made is obeyed right after it.
func TestCancelDuringCostlyDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n, g, run := costlyWorld(t)
		cancelled := make(chan error, 1)
		go func() { cancelled <- n.Deliver(t.Context(), run, machine.CancelRequested{By: "ann"}) }()
		synctest.Wait()
		close(g.open)
		if err := <-cancelled; err != nil {
			t.Errorf("cancel: %v", err)
		}
		w.wait(n, run, status.RunCancelled)
		w.shop.wantEffects(t, map[string]string{"reserve": "undone", "charge": "undone"})
		if got := g.count(); got != 1 {
			t.Errorf("%d decisions were made by the pool, want 1", got)
		}
		n.drain(t)
	})
}

// An engine that stops while a decision is being made leaves the run to another one,
// which finishes it. Decisions that still wait in the pool are not made.
func TestEngineEndsDuringCostlyDecision(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *testNode){
		"drain": func(t *testing.T, n *testNode) { n.drain(t) },
		"kill":  func(t *testing.T, n *testNode) { n.kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, a, g, run := costlyWorld(t)
				for range 2 * runtime.GOMAXPROCS(0) { // more than the pool makes at once
					w.submit(a, "costly", nil)
				}
				synctest.Wait()
				end(t, a)
				begun := g.count() // while it stopped it may have begun more
				b := w.start()
				w.wait(b, run, status.RunSucceeded)
				close(g.open)
				synctest.Wait()
				w.check(run)
				if got := g.count(); got != begun {
					t.Errorf("the engine that ended made %d decisions more", got-begun)
				}
				b.drain(t)
			})
		})
	}
}

// An engine that is told to stop while a decision is being made starts nothing that
// the decision asks for.
func TestNothingStartsAfterCostlyDecisionOfAStoppingEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, g, run := costlyWorld(t)
		a.stop()
		synctest.Wait()
		close(g.open)
		if err := <-a.done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if calls := w.shop.called("charge"); len(calls) > 0 {
			t.Errorf("charge was called %d times by an engine that stops", len(calls))
		}
		b := w.start()
		w.finishedBy(b, run)
		b.drain(t)
	})
}

// An engine that lost its runs while a decision was being made does nothing with it.
func TestRunIsLostDuringCostlyDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, g, run := costlyWorld(t)
		if err := w.mem.Leave(t.Context(), a.Engine()); err != nil {
			t.Fatal(err)
		}
		b := w.start()
		w.wait(b, run, status.RunSucceeded)
		close(g.open)
		synctest.Wait()
		w.check(run)
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done"})
		if calls := w.shop.called("charge"); len(calls) != 1 {
			t.Errorf("charge was called %d times, want once: by the engine that has the run", len(calls))
		}
		a.drain(t)
		b.drain(t)
	})
}

// A decision that does not end puts its run aside after a limit, with an alert.
// Others are made meanwhile.
func TestDecisionThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, costlyFlow)
		n := w.start()
		open := make(chan struct{})
		var first atomic.Bool
		n.DecideCostly(func(wf *dsl.Workflow, s *machine.State, in machine.Input) machine.Record {
			if !first.Swap(true) {
				<-open
			}
			return machine.Decide(wf, s, in)
		})
		began := time.Now()
		hangs := w.submit(n, "costly", nil)
		synctest.Wait()
		var others []status.RunID
		for range 4 {
			others = append(others, w.submit(n, "costly", nil))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var aside *journal.RunError
		if _, err := n.Wait(ctx, hangs); !errors.As(err, &aside) || !strings.Contains(err.Error(), engine.DecisionLimit.String()) || aside.Hint == "" {
			t.Errorf("Wait = %v, want that the run was quarantined, and what to do", err)
		}
		if took := time.Since(began); took < engine.DecisionLimit || took > engine.DecisionLimit+5*time.Second {
			t.Errorf("it was quarantined after %s, want after %s", took, engine.DecisionLimit)
		}
		for _, run := range others {
			w.wait(n, run, status.RunSucceeded)
		}
		alerts, err := w.mem.Alerts(t.Context(), 0, 10)
		if err != nil || !slices.ContainsFunc(alerts, func(a store.AlertRow) bool { return a.Run == hangs && a.Kind == "quarantined" }) {
			t.Errorf("alerts = %+v, %v, want one that says that the run was quarantined", alerts, err)
		}
		close(open)
		synctest.Wait()
		w.check(hangs)
		n.drain(t)
		w.wait(w.start(), hangs, status.RunSucceeded)
	})
}

// A slot that is taken by another run while a decision is being made has it made
// again.
func TestSlotIsTakenDuringCostlyDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, costlyFlow)
		c := &seats{limit: 4}
		w.cfg = func(cfg *engine.Config) { cfg.Capacity = c }
		n := w.start()
		n.DecideCostly(func(wf *dsl.Workflow, s *machine.State, in machine.Input) machine.Record {
			rec := machine.Decide(wf, s, in)
			c.mu.Lock()
			if c.refuse == 0 && c.reserves < 3 {
				c.refuse = 1
			}
			c.mu.Unlock()
			return rec
		})
		run := w.submit(n, "costly", nil)
		w.wait(n, run, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "charge": "done"})
		n.drain(t)
		if c.taken != 0 {
			t.Errorf("%d slots are still taken", c.taken)
		}
	})
}

// A workflow whose runs wait in a long line for the pool does not hold up those of
// another.
func TestWorkflowsTakeTurnsInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, costlyFlow+strings.Replace(costlyFlow[:strings.Index(costlyFlow, `workflow "order"`)], `"costly"`, `"other"`, 1))
		n := w.start()
		var order []string
		var mu sync.Mutex
		step := make(chan struct{})
		n.DecideCostly(func(wf *dsl.Workflow, s *machine.State, in machine.Input) machine.Record {
			<-step
			mu.Lock()
			order = append(order, wf.Name)
			mu.Unlock()
			return machine.Decide(wf, s, in)
		})
		const many = 8
		var runs []status.RunID
		for range many {
			runs = append(runs, w.submit(n, "costly", nil))
		}
		synctest.Wait()
		runs = append(runs, w.submit(n, "other", nil))
		synctest.Wait()
		close(step)
		for _, run := range runs {
			w.wait(n, run, status.RunSucceeded)
		}
		at := -1
		for i, name := range order {
			if name == "other" {
				at = i
			}
		}
		if at < 0 || at > many/2 {
			t.Errorf("the other workflow's run came at place %d of %d", at, len(order))
		}
		n.drain(t)
	})
}

// A decision that took long is told, once for a run, and shows in the node's status.
func TestSlowDecisionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(costlyFlow, `workflow "order"`, `workflow "twice" {
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
  step "charge" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    input {
      name = "charge"
      note = format("%d", length([for i in range(50) : [for j in range(50) : sha512("${step.reserve.output.id}-${i}-${j}")]]))
    }
  }
  step "book" {
    action     = agent.shop.book
    depends_on = [step.charge]
    input {
      name = "book"
      note = format("%d", length([for i in range(50) : [for j in range(50) : sha512("${step.charge.output.id}-${i}-${j}")]]))
    }
  }
}
workflow "order"`, 1))
		n := w.start()
		pause := 900 * time.Millisecond
		n.DecideCostly(func(wf *dsl.Workflow, s *machine.State, in machine.Input) machine.Record {
			time.Sleep(pause)
			return machine.Decide(wf, s, in)
		})
		w.wait(n, w.submit(n, "twice", nil), status.RunSucceeded)
		if alerts, err := w.mem.Alerts(t.Context(), 0, 10); err != nil || len(alerts) > 0 {
			t.Errorf("alerts = %+v, %v, want none: no decision was slow", alerts, err)
		}
		pause = 1500 * time.Millisecond
		run := w.submit(n, "twice", nil)
		w.wait(n, run, status.RunSucceeded)
		alerts, err := w.mem.Alerts(t.Context(), 0, 10)
		if err != nil || len(alerts) != 1 || alerts[0].Run != run || alerts[0].Kind != engine.AlertSlow || !strings.Contains(alerts[0].Message, "1.5s") {
			t.Errorf("alerts = %+v, %v, want one that says 1.5s", alerts, err)
		}
		if got := n.Status().Slowest; got != pause {
			t.Errorf("the slowest decision took %s, want %s", got, pause)
		}
		n.drain(t)
	})
}
