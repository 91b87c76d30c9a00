package dsl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// S90: an on_event block says which events start a run, and which values the run gets.
func TestOnEvent(t *testing.T) {
	def := linked(t, files{"main.hcl": `
variable "region" { type = string }
workflow "w" {
  deadline = "1h"
  variable "order" { type = string }
  variable "total" { type = number }
  variable "at" { default = "" }
  on_event "placed" {
    type      = "com.example.order.placed"
    when      = event.data.total > 10
    variables = { order = event.data.order.id, total = event.data.total, at = "${event.type} ${event.id} ${event.at}" }
  }
  on_event "whole" { variables = event.data }
  unique {
    key = var.order
    reset_on "annulled" {
      when = event.data.refund
      key  = event.data.order
    }
  }
  step "a" { value = var.total }
}`})
	w := def.Workflow("w")
	if len(w.OnEvents) != 3 || w.OnEvents[0].Type != "com.example.order.placed" || w.OnEvents[1].Type != "whole" {
		t.Fatalf("on_event = %+v", w.OnEvents)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		block       int
		data        string
		starts      bool
		vars, wrong string
	}{
		{0, `{"total": 11, "order": {"id": "o-1"}}`, true, `{"at":"com.example.order.placed e-1 2026-01-02T03:04:05Z","order":"o-1","region":"eu","total":11}`, ""},
		{0, `{"total": 10, "order": {"id": "o-1"}}`, false, "", ""},
		{0, `{"total": 10}`, false, "", ""},
		{0, `{"total": 11}`, false, "", "order"},
		{0, `{"order": {"id": "o-1"}}`, false, "", "total"},
		{0, `null`, false, "", "null"},
		{0, `{"total": "many"}`, false, "", "number"},
		{1, `{"total": 1, "order": "o-2"}`, true, `{"at":"","order":"o-2","region":"eu","total":1}`, ""},
		{1, `[1]`, false, "", "an object with a value for each variable"},
	} {
		block := w.OnEvents[c.block]
		given, starts, err := block.Given("e-1", at, dsl.NewValue([]byte(c.data), nil, nil))
		if starts != c.starts || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: starts = %t, %v; want %t, %q", c.data, starts, err, c.starts, c.wrong)
		}
		if !starts {
			continue
		}
		vars, diags := w.Bind(append(given, dsl.Assignment{Name: "region", Text: "eu", Source: "--var"}))
		if diags.HasErrors() {
			t.Errorf("%s: %v", c.data, diags.Err())
		} else if got := string(vars.JSON()); got != c.vars {
			t.Errorf("%s: variables = %s, want %s", c.data, got, c.vars)
		}
	}
}
