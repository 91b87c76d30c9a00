package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// parcelsFlow has a group for two keys, a group whose failure is caught, and a loop over a child run.
const parcelsFlow = `
workflow "pace" {
  group "parcel" {
    for_each = toset(["a", "b"])
    step "pick" {
      action = agent.shop.reserve
      input { name = "pick-${each.key}" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      input { name = "box-${each.key}" }
    }
    output "id" { value = step.box.output.id }
  }
  step "end" {
    value      = join(" ", [for k, g in group.parcel : g.output.id])
    depends_on = [group.parcel]
  }
  output "ids" { value = step.end.output }
}
workflow "caught" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  group "parcel" {
    depends_on = [step.first]
    catch {
      errors = ["card_declined"]
      output = { id = "none: ${self.error.code}" }
    }
    step "pick" {
      action = agent.shop.reserve
      input { name = "pick" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      input { name = "box" }
    }
    output "id" { value = step.box.output.id }
  }
  step "last" {
    action = agent.shop.charge
    input {
      name = "last"
      note = group.parcel.output.id
    }
  }
  output "id" { value = group.parcel.output.id }
}
workflow "page" {
  variable "number" { type = number }
  step "read" {
    action = agent.shop.charge
    input { name = "page-${var.number}" }
  }
  output "id" { value = step.read.output.id }
}
workflow "pages" {
  step "read" {
    workflow     = workflow.page
    compensation = "none"
    input { number = length(self.collected) }
    repeat {
      until          = length(self.collected) == 3
      interval       = "1m"
      max_iterations = 9
      collect        = self.output.id
    }
  }
  step "end" { value = join(" ", step.read.collected) }
  output "ids" { value = step.end.output }
}
`

// The keys of a group go on each at its own pace: one ends while another is in its first step.
func TestGroupKeysAtTheirOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parcelsFlow)
		proceed := make(chan struct{})
		w.shop.on("pick-a", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "pace", nil)
		time.Sleep(10 * time.Second)        // pick-a may take 30 s
		states := map[status.RunState]int{} // the keys have started in any order
		for _, r := range w.children(run) {
			states[r.State]++
		}
		if states[status.RunRunning] != 1 || states[status.RunSucceeded] != 1 {
			t.Errorf("the child runs are %v, want one that is running and one that has succeeded", states)
		}
		if s := w.check(run).Status(); s != status.RunRunning {
			t.Errorf("the run is %v, want running until its last key has ended", s)
		}
		w.shop.wantEffects(t, map[string]string{"box-a": "nothing", "box-b": "done"})
		close(proceed)
		if ids := output(t, w.wait(n, run, status.RunSucceeded), "ids"); ids != "id-box-a id-box-b" {
			t.Errorf("output ids = %s, want those of both keys", ids)
		}
		n.drain(t)
	})
}

// A group that fails undoes itself, and then its code can be caught. Another code turns the run.
func TestCatchOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parcelsFlow)
		w.shop.on("box", refuse("card_declined"))
		n := w.start()
		run := w.submit(n, "caught", nil)
		s := w.wait(n, run, status.RunSucceeded)
		if id := output(t, s, "id"); id != "none: card_declined" {
			t.Errorf("output id = %s, want that of the catch block", id)
		}
		if v := story.Node(s, nil, 1); v.State != status.StepCaught {
			t.Errorf("the group is %s, want caught", v.State)
		}
		w.wantChildren(run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"first": "done", "pick": "undone", "box": "nothing", "last": "done"})

		w = newWorld(t, parcelsFlow)
		w.shop.on("box", refuse("busy"))
		m := w.start()
		run = w.submit(m, "caught", nil)
		if f := w.wait(m, run, status.RunCompensated).Failure(); f.Step != "parcel" || f.Code != "busy" {
			t.Errorf("the run failed with %+v, want the code of the group, which catch does not name", f)
		}
		w.wantChildren(run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"first": "undone", "pick": "undone", "last": "nothing"})
		n.drain(t)
		m.drain(t)
	})
}

// Each iteration of a loop over a child run starts a new child, also if the engine dies between them.
func TestLoopOfChildRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parcelsFlow)
		n := w.start()
		run := w.submit(n, "pages", nil)
		time.Sleep(90 * time.Second) // the second child has ended
		w.wantChildren(run, status.RunSucceeded, status.RunSucceeded)
		n.kill(t)
		n = w.start()
		if ids := output(t, w.wait(n, run, status.RunSucceeded), "ids"); ids != "id-page-0 id-page-1 id-page-2" {
			t.Errorf("output ids = %s, want those of three child runs", ids)
		}
		names := map[string]bool{}
		for _, c := range w.wantChildren(run, status.RunSucceeded, status.RunSucceeded, status.RunSucceeded) {
			names[c.Name] = true
		}
		if len(names) != 3 {
			t.Errorf("the child runs have the names %v, want three", names)
		}
		w.shop.wantEffects(t, map[string]string{"page-0": "done", "page-1": "done", "page-2": "done"})
		n.drain(t)
	})
}
