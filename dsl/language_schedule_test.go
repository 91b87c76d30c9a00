package dsl_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
)

// A schedule has a timetable, and gives values to the variables of its runs.
func TestSchedules(t *testing.T) {
	def := linked(t, files{"main.hcl": `
variable "region" { type = string }
workflow "w" {
  deadline = "1h"
  variable "tenant" { type = string }
  variable "size" { type = number }
  unique { key = local.key }
  locals { key = "${var.tenant}/${run.tick}" }
  schedule "nightly" {
    cron      = "30 2 * * *"
    time_zone = "Europe/Paris"
    overlap   = "queue"
    catch_up  = "all"
    variables = { tenant = "demo", size = 1 + 2 }
  }
  schedule "plain" {
    cron      = "@hourly"
    variables = { tenant = "demo", size = 1 }
  }
  step "a" { value = run.tick }
}`})
	w := def.Workflow("w")
	if len(w.Schedules) != 2 {
		t.Fatalf("%d schedules, want 2", len(w.Schedules))
	}
	s := w.Schedules[0]
	if s.Name != "nightly" || s.Overlap.String() != "queue" || s.CatchUp.String() != "all" || s.Zone != "Europe/Paris" || s.Cron != "30 2 * * *" {
		t.Errorf("schedule = %+v", s)
	}
	if d := w.Schedules[1]; d.Overlap.String() != "skip" || d.CatchUp.String() != "latest" || d.Zone != "" {
		t.Errorf("defaults = %s, %s, zone %q", d.Overlap, d.CatchUp, d.Zone)
	}
	tick := s.Timetable.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if want := time.Date(2026, 1, 1, 1, 30, 0, 0, time.UTC); !tick.Equal(want) {
		t.Errorf("first tick = %s, want %s", tick, want)
	}
	vars, diags := w.Bind(append(s.Variables, dsl.Assignment{Name: "region", Text: "eu", Source: "--var"}))
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if got, want := string(vars.JSON()), `{"region":"eu","size":3,"tenant":"demo"}`; got != want {
		t.Errorf("variables = %s, want %s", got, want)
	}
	key, err := w.UniqueKey(&dsl.Scope{Run: dsl.RunInfo{Trigger: cron.Trigger("nightly", tick)}, Vars: vars})
	if want := "demo/2026-01-01T01:30:00Z"; err != nil || key != want {
		t.Errorf("key = %q, %v, want %q", key, err, want)
	}
	if _, err := w.UniqueKey(&dsl.Scope{Vars: vars}); err == nil {
		t.Error("a template with a null tick has a value")
	}
}
