package dsl_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// childModule has workflow w with this body, and workflow user, which w can start as a child.
func childModule(body string) files {
	return files{"main.hcl": workflow(body), "user.hcl": `
variable "region" { default = "eu" }
workflow "user" {
  deadline = "1h"
  variable "name" { type = string }
  variable "age" {
    type    = number
    default = 18
    validation {
      condition     = var.age >= 18
      error_message = "A user has at least 18 years, this one has ${var.age}."
    }
  }
  variable "pass" {
    type      = string
    default   = ""
    sensitive = true
  }
  step "make" {
    action       = agent.echo.call
    compensation = "none"
    input { value = var.name }
  }
  output "id" { value = "${var.region}-${var.name}" }
  output "open" { value = step.make.output.value }
  output "word" {
    value     = var.pass
    sensitive = true
  }
}
`}
}

// callUser is a step that starts the child, with this input.
func callUser(input string) string {
	return "step \"s\" {\n  workflow = workflow.user\n  input {\n" + input + "\n}\n}\n"
}

// A step with a child run calls the agent of the engine. The values of all variables of the child
// are its input.
func TestChildStep(t *testing.T) {
	wf := linked(t, childModule(`variable "n" {}
`+callUser("name = \"ann-${var.n}\"\nage = \"30\""))).Workflow("w")
	s := stepOf(t, wf, "s")
	if s.Child == nil || s.Child.Workflow.Name != "user" || s.Do.Agent != "workflow" || s.Do.Name != "user" {
		t.Fatalf("child %+v, action %+v", s.Child, s.Do)
	}
	if !s.Calls() || !s.Do.Idempotent || !s.Do.Cancellable || s.Do.ReadOnly || wf.Agents["workflow"] != nil {
		t.Errorf("action %+v, agents %v", s.Do, wf.Agents)
	}
	if st := settingsOf(t, s, nil); st.Retry.MaxAttempts != 1 || st.Timeout.Hours() < 24*365*9 {
		t.Errorf("settings %+v", st)
	}
	v, err := s.Input(scopeOf(bound(t, wf, "n", "1", "region", "us")))
	wantValue(t, v, err, `{"age":30,"name":"ann-1","pass":"","region":"us"}`)
	if p := v.Sensitive(); len(p) != 1 || p[0] != "/pass" {
		t.Errorf("sensitive parts %v", p)
	}
	if u := s.Undo; u == nil || u.Do.Agent != "workflow" || u.Do.Name != "user" || !u.Do.ByKey || !u.Do.Idempotent {
		t.Fatalf("undo %+v", s.Undo)
	}
	v, err = s.Undo.Input(&dsl.Scope{Self: &dsl.Self{Input: document(`{"name":"x"}`)}})
	wantValue(t, v, err, `{"name":"x"}`)
	v, err = s.Do.Output([]byte(`{"id":"a","open":[1],"word":"w"}`))
	wantValue(t, v, err, `{"id":"a","open":[1],"word":"w"}`)
	if p := v.Sensitive(); len(p) != 1 || p[0] != "/word" {
		t.Errorf("sensitive outputs %v", p)
	}
}
