package dsl_test

import (
	"slices"
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

// A schedule with a select block computes the values of variables from a row. Without a strategy it
// reads the rows in the order of the key (S106).
func TestSelections(t *testing.T) {
	def := linked(t, files{"main.hcl": `
workflow "w" {
  deadline = "1h"
  variable "order" { type = string }
  variable "total" { type = number }
  unique { key = var.order }
  schedule "nightly" {
    cron      = "30 2 * * *"
    variables = { order = "o-${row.id}", total = row.total }
    select {
      sql       = "SELECT id, total, paid FROM shop.orders WHERE status = $status AND n > $n AND x IS NOT DISTINCT FROM $x AND at < $tick"
      args      = { status = upper("open"), n = 1.5, x = null }
      key       = row.id
      filter    = !row.paid
      page_size = 20
    }
  }
  step "a" { value = var.order }
}`})
	s := def.Workflow("w").Schedules[0].Select
	if s == nil || s.Key != "id" || s.PageSize != 20 || s.Strategy.String() != "keyset" || s.Parallel != 1 {
		t.Fatalf("selection = %+v", s)
	}
	if got, want := s.Query.Text, "SELECT id, total, paid FROM shop.orders WHERE status = $1 AND n > $2 AND x IS NOT DISTINCT FROM $3 AND at < $4"; got != want {
		t.Errorf("query = %s, want %s", got, want)
	}
	if *s.Args["status"] != "OPEN" || *s.Args["n"] != "1.5" || s.Args["x"] != nil || len(s.Args) != 3 {
		t.Errorf("args = %v", s.Args)
	}
	if want := []string{"id", "paid", "total"}; !slices.Equal(s.Columns, want) {
		t.Errorf("columns = %v, want %v", s.Columns, want)
	}
	row := []byte(`{"id": 7, "total": 12.50, "paid": false}`)
	list, err := s.Assign(row)
	if err != nil {
		t.Fatal(err)
	}
	vars, diags := def.Workflow("w").Bind(list)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if got, want := string(vars.JSON()), `{"order":"o-7","total":12.5}`; got != want {
		t.Errorf("variables = %s, want %s", got, want)
	}
	if keep, err := s.Keep(row); !keep || err != nil {
		t.Errorf("Keep = %t, %v", keep, err)
	}
	if keep, err := s.Keep([]byte(`{"id": 7, "paid": true}`)); keep || err != nil {
		t.Errorf("Keep of a paid order = %t, %v", keep, err)
	}
	for _, row := range []string{`{"id": 7, "paid": null}`, `{"id": 7}`} {
		if _, err := s.Keep([]byte(row)); err == nil {
			t.Errorf("row %s has no error", row)
		}
	}
	if _, err := s.Assign([]byte(`{"id": 7}`)); err == nil {
		t.Error("a row without a column has values")
	}
}

// TestTickInTheKey: the unique key of a workflow with a schedule uses run.tick, directly or through
// locals, with dots or with brackets.
func TestTickInTheKey(t *testing.T) {
	body := func(key string) string {
		return "locals {\n tick = run[\"tick\"]\n id = run.id\n}\nschedule \"d\" { cron = \"@daily\" }\nunique { key = " + key + " }\n" + step("s", "")
	}
	missing := func(key string) []finding { return finds(fails("Unique key without run.tick", key, "")) }
	checkRules(t, []rule{
		{"run.tick", body(`run.tick`), nil},
		{"in brackets", body(`run["tick"]`), nil},
		{"a local", body(`local.tick`), nil},
		{"a local in brackets", body(`local["tick"]`), nil},
		{"another attribute in brackets", body(`run["id"]`), missing(`run["id"]`)},
		{"another local in brackets", body(`local["id"]`), missing(`local["id"]`)},
	})
}
