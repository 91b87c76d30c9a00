package engine_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/operator"
)

// parkedFlow has a step that fails, so that the run is parked, next to a group and a child run.
const parkedFlow = `
workflow "kid" {
  step "pick" {
    action = agent.shop.reserve
    input { name = "kid-pick" }
  }
  step "box" {
    action     = agent.shop.charge
    depends_on = [step.pick]
    input { name = "kid-box" }
  }
}
workflow "w" {
  deadline = "1h"
  compensation { mode = "manual" }
  step "kid" { workflow = workflow.kid }
  step "bad" {
    action  = agent.shop.book
    timeout = "3h"
    input { name = "bad" }
  }
  group "g" {
    step "pick" {
      action = agent.shop.reserve
      input { name = "pick" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      timeout    = "3h"
      input { name = "box" }
    }
  }
}
`

// No step of a group starts while the run around the group is parked, and the deadline of the run does
// not pass for the group. When a person lets the run go on, the group goes on, too. A child run of
// another step is not paused.
func TestParkedRunHoldsItsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parkedFlow)
		proceed, failed := make(chan struct{}), false
		slow := func(context.Context, int) error { <-proceed; return nil }
		w.shop.on("pick", slow)
		w.shop.on("kid-pick", slow)
		w.shop.on("bad", func(ctx context.Context, n int) error {
			if !failed {
				failed = true
				return declined("no_carrier")(ctx, n)
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "w", nil)
		w.wait(n, run, status.RunParked)
		time.Sleep(10 * time.Second)
		close(proceed)
		time.Sleep(2 * time.Hour) // longer than the deadline of the run
		group := w.childOf(run, ".g.")
		if s := w.check(group); s.Status() != status.RunPaused || !strings.HasSuffix(s.Run().PauseWhy, "is parked") {
			t.Errorf("the group is %v because of %q, want paused with its run", s.Status(), s.Run().PauseWhy)
		}
		w.shop.wantEffects(t, map[string]string{"pick": "done", "box": "nothing", "kid-pick": "done", "kid-box": "done"})
		w.verb(n, run, machine.RetryRequested{By: "ann", Extend: time.Hour})
		w.wait(n, run, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"box": "done"})
		n.drain(t)
	})
}

// A run with mode = "manual" is parked when its deadline passes, and its groups turn back. Their undos do
// not wait for a person.
func TestParkedRunLetsItsGroupTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parkedFlow)
		never := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		w.shop.on("bad", never)
		w.shop.on("box", never)
		n := w.start()
		run := w.submit(n, "w", nil)
		w.wait(n, run, status.RunParked)
		time.Sleep(time.Hour)
		if s := w.check(w.childOf(run, ".g.")); s.Status() != status.RunCancelled {
			t.Errorf("the group is %v, want cancelled", s.Status())
		}
		w.shop.wantEffects(t, map[string]string{"pick": "undone"})
		n.drain(t)
	})
}

// childOf returns the child run whose name has the given text.
func (w *world) childOf(run status.RunID, text string) status.RunID {
	w.t.Helper()
	for _, r := range w.children(run) {
		if strings.Contains(r.Name, text) {
			return r.Run
		}
	}
	w.t.Fatalf("no child run has %q in its name", text)
	return 0
}

// lostFlow has a run that ends its engines, with a group.
const lostFlow = `
agent "bad" {
  plugin = "shop"
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
  group "g" {
    step "pick" {
      action  = agent.shop.reserve
      timeout = "1h"
      retry {
        max_attempts = 20
      }
      input { name = "pick" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      timeout    = "1h"
      input { name = "box" }
    }
  }
}
`

// A run that is parked because engines died does not hold its groups: no engine reads the run, so no
// engine knows its groups. They go on, and their results count when a person lets the run go on.
func TestGroupOfALostRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, lostFlow)
		over, proceed := make(chan struct{}), make(chan struct{})
		defer close(over)
		w.shop.on("a", func(ctx context.Context, _ int) error { return pause(ctx, time.Second) })
		w.shop.on("pick", func(ctx context.Context, _ int) error {
			select {
			case <-proceed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		n := w.startDeadly(1, over, slog.DiscardHandler)
		run := w.submit(n, "poison", nil)
		for lost := false; !lost; {
			select {
			case <-n.done:
				n.stop()
				n = w.startDeadly(0, over, slog.DiscardHandler)
			case <-time.After(time.Minute):
				lost = true
			}
		}
		group := w.childOf(run, ".g.")
		if s := w.check(run); !s.Run().Lost() {
			t.Fatalf("the run is %v, want parked because engines died", s.Status())
		}
		w.shop.wantEffects(t, map[string]string{"box": "nothing"})
		close(proceed)
		w.wait(n, group, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"pick": "done", "box": "done"})
		if s := w.check(run); !s.Run().Lost() {
			t.Errorf("an engine touched the run: it is %v", s.Status())
		}
		n.kill(t)
		w.cfg = nil
		healthy := w.start()
		person := &operator.Operator{Store: w.mem, Defs: journal.NewDefinitions(w.mem, nil)}
		id, err := person.Ask(t.Context(), run, machine.RetryRequested{By: "ann"}, "ann")
		if err == nil {
			err = person.Answer(t.Context(), run, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.wait(healthy, run, status.RunSucceeded)
		healthy.drain(t)
	})
}
