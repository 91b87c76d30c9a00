package dsl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A function of the library that panics is an error with its cause and without
// its stack, before a run and in one.
func TestFunctionThatPanics(t *testing.T) {
	_, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte("locals {\n  x = log(0, 0)\n}\n")}})
	text := fmt.Sprint(diags.Err())
	if !diags.HasErrors() || !strings.Contains(text, "the function cannot compute it") || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
		t.Errorf("before a run: %s", text)
	}
	def, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(`workflow "w" {
  deadline = "1h"
  variable "n" { type = number }
  output "o" { value = log(var.n, var.n) }
}
`)}})
	if def == nil {
		t.Fatal(diags.Err())
	}
	wf := def.Workflow("w")
	_, err := wf.Outputs[0].Value(&Scope{Vars: NewValue([]byte(`{"n":0}`), nil, nil)})
	if err == nil || !strings.Contains(err.Error(), "the function cannot compute it") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("in a run: %v", err)
	}
}

// A validation block without error_message is reported. The check goes on, and evaluates the
// condition of the block for a schedule, or for a library from which only a workflow is used.
func TestValidationWithoutMessage(t *testing.T) {
	const block = "variable \"n\" {\n  default = 1\n  validation { condition = var.n > 5 }\n}\n"
	for name, fsys := range map[string]fstest.MapFS{
		"a schedule": {"m/a.hcl": {Data: []byte(block + `workflow "w" {
  deadline = "1h"
  schedule "d" { cron = "@daily" }
  unique { key = run.tick }
  step "s" { value = 1 }
}
`)}},
		"a library": {
			"m/a.hcl": {Data: []byte(`library "l" { source = "../l" }
workflow "w" {
  deadline = "1h"
  step "s" { workflow = library.l.workflow.inner }
}
`)},
			"l/b.hcl": {Data: []byte(block + "workflow \"inner\" {\n  step \"s\" { value = var.n }\n}\n")},
		},
	} {
		def, text := parseHome(t, fsys, "m")
		if def != nil || !strings.Contains(text, `"error_message"`) {
			t.Errorf("%s: linked %t, findings:\n%s", name, def != nil, text)
		}
		// The rules of a library with an error are not checked.
		if wrong := strings.Contains(text, "The condition is not met."); wrong != (name == "a schedule") {
			t.Errorf("%s: the condition was checked: %t, findings:\n%s", name, wrong, text)
		}
	}
}
