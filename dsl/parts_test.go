package dsl_test

import "testing"

// Parts describes every kind of step: those that migrate compares.
func TestPartsOfEveryKindOfStep(t *testing.T) {
	def := linked(t, files{"main.hcl": `
workflow "order" {
  deadline = "1h"
  step "child" {
    workflow = workflow.inner
    input { n = 1 }
  }
  step "kept" {
    workflow     = workflow.inner
    compensation = "none"
    input { n = 2 }
  }
  group "both" {
    for_each = toset(["a"])
    step "value" { value = each.key }
    output "key" { value = step.value.output }
  }
  step "timer" {
    timer { duration = "1m" }
  }
  step "signal" {
    wait { signal = "go" }
  }
}
workflow "inner" {
  deadline = "1h"
  variable "n" { type = number }
  step "charge" {
    action = agent.shop.reserve
    input { sku = "a${var.n}" }
    compensate {
      action = agent.shop.release
      input { sku = "a" }
    }
  }
}`})
	for _, name := range []string{"order", "inner"} {
		for _, s := range def.Workflow(name).Steps {
			if parts := s.Aspects(); len(parts) == 0 {
				t.Errorf("step %s has no parts", s.Name)
			}
		}
	}
	of := func(workflow, step string) map[string]string {
		return stepOf(t, def.Workflow(workflow), step).Aspects()
	}
	if child, kept := of("order", "child"), of("order", "kept"); child["undo"] == kept["undo"] || child["action"] != kept["action"] {
		t.Errorf("child = %v, kept = %v: want the same action and another undo", child, kept)
	}
}

// Layout and comments do not change the parts of a step. A text inside quotes does.
func TestPartsIgnoreLayoutOnly(t *testing.T) {
	of := func(input string) map[string]string {
		wf := linkedWorkflow(t, "step \"a\" {\n  value = "+input+"\n}\n")
		return stepOf(t, wf, "a").Aspects()
	}
	want := of(`{ a = "x  y", b = [1, 2] }`)["value"]
	for input, same := range map[string]bool{
		"{\n  a   = \"x  y\", # why\n  b = [1,\n 2]\n}": true,
		`{ a = "x y", b = [1, 2] }`:                     false,
		`{ a = "x  y", b = [12] }`:                      false,
	} {
		if got := of(input)["value"]; (got == want) != same {
			t.Errorf("%s: %q, want it equal to %q: %t", input, got, want, same)
		}
	}
}
