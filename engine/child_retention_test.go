package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// Retention keeps a child run as long as its parent, which may still undo it. The age of both
// counts from the end of the parent.
func TestRetentionKeepsFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "kid" {
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve" }
  }
}
workflow "slow" {
  step "kid" { workflow = workflow.kid }
  step "pause" {
    depends_on = [step.kid]
    timer { duration = "30h" }
  }
  step "last" {
    depends_on = [step.pause]
    action     = agent.shop.charge
    input { name = "last" }
  }
}`)
		w.shop.on("last", refuse("card_declined"))
		w.opts.Retention = 24 * time.Hour
		n := w.start()
		run := w.submit(n, "slow", nil)
		time.Sleep(29 * time.Hour)
		w.wantChildren(run, status.RunSucceeded)
		time.Sleep(2 * time.Hour)
		w.wantChildren(run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"reserve": "undone"})
		time.Sleep(50 * time.Hour)
		if rows := w.children(run); len(rows) > 0 {
			t.Errorf("%d child runs are left two days after the end of their parent", len(rows))
		}
		n.drain(t)
	})
}

// The retention of a workflow also holds for its groups, at any depth. It does not hold for the child
// run of another workflow.
func TestRetentionOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "kid" {
  step "v" { value = 1 }
}
workflow "probe" {
  retention = "3h"
  group "outer" {
    group "inner" {
      step "v" { value = 1 }
    }
  }
  step "kid" { workflow = workflow.kid }
}`)
		n := w.start()
		run := w.submit(n, "probe", nil)
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(7 * time.Hour)
		rows, err := w.store.Runs(t.Context(), store.RunFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].WorkflowName != "kid" {
			t.Errorf("these runs are left: %v; want only the run of the workflow kid", rows)
		}
		n.drain(t)
	})
}
