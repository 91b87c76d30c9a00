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
