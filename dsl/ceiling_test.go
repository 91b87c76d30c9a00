package dsl

import "testing"

// S78: how often a step is tried is said by what is closest to it: the step
// itself, then its workflow, then what the action promises.
func TestCeilingPrecedence(t *testing.T) {
	for name, tt := range map[string]struct {
		workflow, step, action string
		want                   int
	}{
		"nothing is said, repeatable":                         {"", "", "call", 3},
		"nothing is said, not repeatable":                     {"", "", "call_once", 1},
		"the workflow":                                        {"max_attempts = 7", "", "call", 7},
		"the step":                                            {"", "max_attempts = 5", "call", 5},
		"the step over the workflow":                          {"max_attempts = 7", "max_attempts = 5", "call", 5},
		"the step says something else":                        {"max_attempts = 7", `jitter = "none"`, "call", 7},
		"a workflow makes nothing repeatable that is not":     {"max_attempts = 7", "", "call_once", 1},
		"the step may, though its action is not":              {"max_attempts = 7", "max_attempts = 2", "call_once", 2},
		"a step that is unbounded, in a workflow that is not": {"max_attempts = 7", `max_attempts = "unbounded"`, "call", Unbounded},
		"a step that is bounded, in a workflow that is not":   {`max_attempts = "unbounded"`, "max_attempts = 4", "call", 4},
	} {
		t.Run(name, func(t *testing.T) {
			wf := linked(t, `
workflow "w" {
  deadline = "1h"
  retry {
    `+tt.workflow+`
  }
  step "s" {
    action       = agent.mock.`+tt.action+`
    compensation = "none"
    retry {
      `+tt.step+`
    }
  }
}`).Workflow("w")
			st, err := wf.Steps[0].Settings(&Scope{Vars: bindAll(t, wf)})
			if err != nil || st.Retry.MaxAttempts != tt.want {
				t.Errorf("got %+v, %v, want %d attempts", st, err, tt.want)
			}
		})
	}
}
