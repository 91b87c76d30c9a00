package dsl_test

import (
	"reflect"
	"strings"
	"sync"
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

// S91: an on_event block with for_each gives values to a run of each key. Keys have an order, and a key
// that is there twice counts once.
func TestOnEventForEach(t *testing.T) {
	w := linked(t, files{"main.hcl": `
workflow "w" {
  deadline = "1h"
  variable "order" { type = string }
  variable "from" { default = "" }
  on_event "keys" {
    when      = event.data.live
    for_each  = event.data.orders
    variables = { order = each.value, from = "${event.id}/${each.key}" }
  }
  on_event "objects" {
    for_each  = { for o in event.data : o.id => o }
    variables = { order = each.value.name }
  }
  on_event "default" {
    for_each  = toset(event.data)
    variables = { order = "x" }
  }
  step "a" { value = var.order }
}`}).Workflow("w")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		block       int
		data, want  string
		wrong, each string
	}{
		{0, `{"live": true, "orders": ["b", 7, "a", "b"]}`, `7 {"from":"e/7","order":"7"} a {"from":"e/a","order":"a"} b {"from":"e/b","order":"b"}`, "", ""},
		{0, `{"live": true, "orders": {"x": "y"}}`, `x {"from":"e/x","order":"y"}`, "", ""},
		{0, `{"live": true, "orders": []}`, ``, "", ""},
		{0, `{"live": false}`, "none", "", ""},
		{0, `{"live": true}`, "", "orders", ""},
		{0, `{"live": true, "orders": "a"}`, "", "for_each", ""},
		{0, `{"live": true, "orders": null}`, "", "for_each", ""},
		{0, `{"live": true, "orders": [{"id": "a"}]}`, "", "for x in", ""},
		{0, `{"live": true, "orders": ["a", ""]}`, "", "empty text", ""},
		{0, `{"live": true, "orders": ["` + strings.Repeat("k", 1001) + `"]}`, "", "more than the 1000 allowed", ""},
		{1, `[{"id": "2", "name": "n2"}, {"id": "1", "name": "n1"}]`, `1 {"from":"","order":"n1"} 2 {"from":"","order":"n2"}`, "", ""},
		{1, `[{"id": "2", "name": "n2"}, {"id": "1"}]`, ``, "", `1`},
		{2, `["b", "a"]`, `a {"from":"","order":"x"} b {"from":"","order":"x"}`, "", ""},
	} {
		block := w.OnEvents[c.block]
		data := dsl.NewValue([]byte(c.data), nil, nil)
		list, starts, err := block.List("e", at, data)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v, want %q", c.data, err, c.wrong)
		}
		if err != nil || !starts {
			if err == nil && c.want != "none" {
				t.Errorf("%s starts no runs", c.data)
			}
			continue
		}
		given := block.GivenEach("e", at, data)
		var got []string
		for i, key := range list.Keys {
			vars, err := given(key, list.Values[i])
			if err != nil {
				if c.each != key {
					t.Errorf("%s: key %s: %v", c.data, key, err)
				}
				continue
			}
			bound, diags := w.Bind(vars)
			if diags.HasErrors() {
				t.Errorf("%s: key %s: %v", c.data, key, diags.Err())
				continue
			}
			got = append(got, key+" "+string(bound.JSON()))
		}
		if c.each == "" && strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", c.data, strings.Join(got, " "), c.want)
		}
	}
}

// S91: an on_event block with a select block gives values to the parameters of its query.
func TestOnEventSelect(t *testing.T) {
	w := linked(t, files{"main.hcl": `
workflow "w" {
  deadline = "1h"
  variable "order" { type = string }
  on_event "closed" {
    when      = event.data.day != "never"
    variables = { order = row.id }
    select {
      sql    = "SELECT id FROM shop.orders WHERE day = $day AND n > $n AND ($who IS NULL OR who = $who)"
      args   = { day = event.data.day, n = event.data.n, who = try(event.data.who, null) }
      key    = row.id
      filter = row.id != "x"
    }
  }
  step "a" { value = var.order }
}`}).Workflow("w")
	on := w.OnEvents[0]
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		data   string
		starts bool
		args   map[string]*string
		wrong  string
	}{
		{`{"day": "2026-01-02", "n": 1.5}`, true, map[string]*string{"day": text("2026-01-02"), "n": text("1.5"), "who": nil}, ""},
		{`{"day": "never", "n": 1}`, false, nil, ""},
		{`{"day": "2026-01-02"}`, false, nil, "n"},
		{`{"day": ["2026-01-02"], "n": 1}`, false, nil, "the value of day must be a string"},
	} {
		args, starts, err := on.Fires("e", time.Now(), dsl.NewValue([]byte(c.data), nil, nil))
		if starts != c.starts || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %t, %v", c.data, starts, err)
		}
		if c.starts && !reflect.DeepEqual(args, c.args) {
			t.Errorf("%s: args = %v, want %v", c.data, args, c.args)
		}
	}
	if on.Select.Key != "id" || len(on.Select.Columns) != 1 || len(on.Select.Query.Params) != 3 {
		t.Errorf("select = %+v", on.Select)
	}
	list, err := on.Select.Assign([]byte(`{"id": "o-1"}`))
	if err != nil || len(list) != 1 || list[0].Name != "order" || list[0].Source != `on_event "closed"` {
		t.Errorf("assigned %+v, %v", list, err)
	}
}

// TestLinkTwice: a Module is immutable, so it can be linked by two goroutines at the same time, and
// no definition has parts of another one. The race detector finds a link that changes the module.
func TestLinkTwice(t *testing.T) {
	m, diags := dsl.Parse(files{"main.hcl": workflow(`
variable "order" { default = "" }
on_event "placed" {
  when      = event.data.total > 10
  for_each  = event.data.orders
  variables = { order = each.key }
}
schedule "d" { cron = "@daily" }
unique {
  key   = "${var.order}/${run.tick}"
  scope = "goal"
  reset_on "annulled" { key = event.data.order }
}
` + step("s", ""))}.fs(), dsl.ParseOptions{})
	wantFindings(t, diags)
	defs := make([]*dsl.Definition, 2)
	var both sync.WaitGroup
	for i := range defs {
		both.Go(func() { defs[i], _ = dsl.Link(m, map[string]dsl.AgentBinary{"echo": agents()["echo"]}) })
	}
	both.Wait()
	if defs[0] == nil || defs[1] == nil {
		t.Fatal("the module cannot be linked")
	}
	a, b := defs[0].Workflow("w").OnEvents, defs[1].Workflow("w").OnEvents
	if len(a) != 2 || len(b) != 2 {
		t.Fatalf("%d and %d blocks, want 2", len(a), len(b))
	}
	for i := range a {
		if a[i] == b[i] {
			t.Errorf("both definitions have the same OnEvent %q", a[i].Name)
		}
	}
}
