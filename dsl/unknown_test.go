package dsl

import (
	"fmt"
	"testing"
)

// What follows an unknown outcome: the ladder, rung by rung.
func TestAfterUnknown(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  step "reads" {
    action = agent.inventory.peek
    input { sku = "a" }
  }
  step "lookup" {
    action = agent.payment.charge
    input { amount = 1 }
    compensate {
      action = agent.payment.refund
      input { charge_id = self.output.charge_id }
    }
  }
  step "by_key" {
    action = agent.inventory.reserve
    input { sku = "a" }
  }
  step "once" {
    action = agent.shipping.book
    input { reference = "r" }
    compensate {
      action = agent.shipping.cancel
      input { booking_id = self.output.booking_id }
    }
  }
  step "once_blind" {
    action = agent.shipping.book
    input { reference = "r" }
    retry { max_attempts = 3 }
    compensate {
      action = agent.shipping.cancel
      input { booking_id = self.input.reference }
    }
  }
  step "undo_first" {
    action   = agent.shipping.book
    on_rerun = "undo_first"
    input { reference = "r" }
    retry { max_attempts = 3 }
    compensate {
      action = agent.shipping.cancel
      input { booking_id = self.input.reference }
    }
  }
  step "no_undo" {
    action       = agent.shipping.book
    compensation = "none"
    input { reference = "r" }
  }
  step "caught" {
    action       = agent.shipping.book
    compensation = "none"
    input { reference = "r" }
    catch { errors = ["*"] }
  }
  step "go" {
    action = agent.dns.publish
    pivot  = true
    input {
      name   = "n"
      target = "t"
    }
  }
  step "later" {
    action     = agent.payment.subscribe
    depends_on = [step.go]
    retry { max_attempts = "unbounded" }
    input { plan = "free" }
  }
}
`).Workflow("w")
	want := map[string]string{
		"reads": "[]", "lookup": "[ask repeat learn_and_undo]", "by_key": "[repeat undo_by_key]", "once": "[park]",
		"once_blind": "[undo]", "undo_first": "[undo_and_repeat undo]", "no_undo": "[fail]", "caught": "[catch]",
		"go": "[repeat park]", "later": "[repeat park]",
	}
	for _, s := range wf.Steps {
		settings, err := s.Settings(&Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(wf.AfterUnknown(s, settings.Retry)); got != want[s.Name] {
			t.Errorf("step %s: %s, want %s", s.Name, got, want[s.Name])
		}
	}
	wf.CompensationMode = ModeManual
	if got := fmt.Sprint(wf.AfterUnknown(stepNamed(t, wf, "by_key"), Retry{MaxAttempts: 1})); got != "[park]" {
		t.Errorf("with mode manual: %s", got)
	}
}
