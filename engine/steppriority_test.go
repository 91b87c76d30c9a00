package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// urgentFlow has a workflow whose steps call an agent with one slot, with a priority from a variable.
const urgentFlow = `
workflow "urgent" {
  variable "p" { type = number }
  variable "names" { type = list(string) }
  step "first" {
    action   = agent.shop.reserve
    priority = var.p
    input { name = var.names[0] }
  }
  step "second" {
    action     = agent.shop.reserve
    when       = length(var.names) > 1
    depends_on = [step.first]
    priority   = var.p
    input { name = var.names[1] }
  }
}
workflow "whole" {
  variable "name" { type = string }
  priority = 90
  step "first" {
    action = agent.shop.reserve
    input { name = var.name }
  }
}
workflow "grouped" {
  variable "name" { type = string }
  priority = 80
  group "g" {
    step "first" {
      action = agent.shop.reserve
      input { name = var.name }
    }
  }
}`

// An urgentWorld has an agent with one slot. Each call takes a time.
type urgentWorld struct {
	*world
	n     *testNode
	seats *seats
	runs  []status.RunID
}

func newUrgentWorld(t *testing.T) *urgentWorld {
	w := &urgentWorld{world: newWorld(t, urgentFlow), seats: &seats{limit: 1}}
	w.cfg = func(c *engine.Config) { c.Capacity = w.seats }
	w.n = w.start()
	return w
}

// add submits a run, and waits until it has a slot or is in line.
func (w *urgentWorld) add(priority int, takes time.Duration, names ...string) {
	for _, name := range names {
		w.shop.on(name, func(context.Context, int) error { time.Sleep(takes); return nil })
	}
	w.runs = append(w.runs, w.submit(w.n, "urgent", map[string]string{"p": strconv.Itoa(priority), "names": `["` + strings.Join(names, `", "`) + `"]`}))
	synctest.Wait()
}

// order waits for the ends of all runs, and returns the names of the calls in their order.
func (w *urgentWorld) order() []string {
	for _, run := range w.runs {
		w.wait(w.n, run, status.RunSucceeded)
	}
	w.n.drain(w.t)
	if w.seats.taken != 0 || w.seats.most != 1 {
		w.t.Errorf("most taken = %d, left taken = %d, want 1 and 0", w.seats.most, w.seats.taken)
	}
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	var names []string
	for _, c := range w.shop.calls {
		names = append(names, c.name)
	}
	return names
}

// S71: a free slot goes to the waiting step with the highest priority, also if its run is the latest. A
// step without a priority has that of its run, also in a group. Steps with the same priority start first come, first
// served.
func TestStepWithAHigherPriorityStartsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUrgentWorld(t)
		w.add(50, 5*time.Second, "holder")
		w.add(10, time.Second, "a")
		w.add(10, time.Second, "b")
		for _, name := range []string{"grouped", "whole"} {
			w.runs = append(w.runs, w.submit(w.n, name, map[string]string{"name": name}))
			synctest.Wait()
		}
		w.add(10, time.Second, "c")
		w.add(95, time.Second, "urgent")
		if got := fmt.Sprint(w.order()); got != "[holder urgent whole grouped a b c]" {
			t.Errorf("the calls are %s", got)
		}
	})
}

// S71: a step with priority 0 is overtaken by steps with priority 100 that began to wait up to 10
// minutes after it, and by no later one.
func TestStepIsNotOvertakenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUrgentWorld(t)
		w.add(100, 10*time.Second, "u-0")
		w.add(0, time.Second, "old")
		for n := 1; n <= 80; n++ { // one step with priority 100 always waits
			w.add(100, 10*time.Second, fmt.Sprintf("u-%d", n))
			time.Sleep(10 * time.Second)
		}
		got := w.order()
		// u-60 began to wait 590 seconds after the old step, and u-61 began to wait 600 seconds after it.
		if k := slices.Index(got, "old"); k != slices.Index(got, "u-60")+1 || k != slices.Index(got, "u-61")-1 {
			t.Errorf("the old step is call %d of %v", k, got)
		}
	})
}

// A run keeps its slot from step to step, except that it leaves the slot to a waiting step with a higher
// priority than its next step.
func TestRunLeavesItsSlotToAHigherPriority(t *testing.T) {
	for _, c := range []struct {
		waits int
		want  string
	}{{90, "[one urgent two]"}, {51, "[one urgent two]"}, {50, "[one two urgent]"}, {10, "[one two urgent]"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newUrgentWorld(t)
			w.add(50, time.Second, "one", "two")
			w.add(c.waits, time.Second, "urgent")
			if got := fmt.Sprint(w.order()); got != c.want {
				t.Errorf("the calls with a step of priority %d in line are %s, want %s", c.waits, got, c.want)
			}
		})
	}
}

// A priority that is out of range in the run fails the step, with the place of its line.
func TestStepPriorityOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUrgentWorld(t)
		run := w.submit(w.n, "urgent", map[string]string{"p": "101", "names": `["a"]`})
		s := w.wait(w.n, run, status.RunFailed)
		if f := s.Failure(); f.Code != "expression_error" || !strings.Contains(f.Message, "priority: a whole number from 0 to 100 is required") || !strings.Contains(f.Message, "main.hcl:7") {
			t.Errorf("the run failed with %+v", f)
		}
		w.n.drain(t)
	})
}
