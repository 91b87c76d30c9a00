package dsl

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/internal/value"
)

const untyped = `
workflow "w" {
  deadline = "1h"
  variable "open" { default = null }
  variable "text" { default = "eu" }
  variable "count" { default = 5 }
  variable "flag" { default = false }
  variable "names" { default = ["a"] }
  variable "many" { default = [] }
  variable "mixed" { default = ["a", 1] }
  variable "labels" { default = { team = "x" } }
  variable "set" { default = toset(["a"]) }
  step "s" {
    action       = agent.mock.call
    compensation = "none"
    for_each     = var.set
    input { value = var.open }
  }
}
`

// A variable without type has the type of its default; without default either,
// a text that is a list or an object is taken as one.
func TestTypeOfDefault(t *testing.T) {
	wf := linked(t, untyped).Workflow("w")
	for _, c := range []struct{ name, text, want string }{
		{"open", `["a"]`, `["a"]`},
		{"open", ` { a = 1 }`, `{"a":1}`},
		{"open", `{"a": [true]}`, `{"a":[true]}`},
		{"open", `[draft] hello`, `"[draft] hello"`},
		{"open", `[var.x]`, `"[var.x]"`},
		{"open", `5`, `"5"`},
		{"open", `true`, `"true"`},
		{"open", `"q"`, `"\"q\""`},
		{"text", `["a"]`, `"[\"a\"]"`},
		{"count", `7`, `7`},
		{"flag", `true`, `true`},
		{"names", `["b", "c"]`, `["b","c"]`},
		{"names", `[1]`, `["1"]`},
		{"names", `[]`, `[]`},
		{"many", `[1, { a = 2 }]`, `[1,{"a":2}]`},
		{"mixed", `[1]`, `[1]`},
		{"labels", `{ owner = "y" }`, `{"owner":"y"}`},
		{"set", `["c", "b"]`, `["b","c"]`},
	} {
		if got := string(attributeJSON(t, bindAll(t, wf, c.name, c.text), c.name)); got != c.want {
			t.Errorf("--var '%s=%s' gives %s, want %s", c.name, c.text, got, c.want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"count", `abc`, "type number: a number is required"},
		{"flag", `maybe`, "type bool"},
		{"names", `b`, "type list(string)"},
		{"names", `{ a = 1 }`, "a list is required, as its default is one"},
		{"labels", `["a"]`, "an object is required, as its default is one"},
	} {
		_, diags := wf.Bind([]Assignment{{Name: c.name, Text: c.text, Source: "--var"}})
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--var '%s=%s': %v, want %q", c.name, c.text, err, c.want)
		}
	}
}

// The type of a default holds in the run too: a set stays one.
func TestTypeOfDefaultInRun(t *testing.T) {
	def := linked(t, untyped)
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	wf := back.Workflow("w")
	each, err := wf.Steps[0].ForEach(&Scope{Vars: bindAll(t, wf, "set", `["c", "b"]`)})
	if err != nil || strings.Join(each.Keys, " ") != "b c" {
		t.Errorf("keys %q, %v; want b c", each.Keys, err)
	}
	want := map[string]string{
		"open": "any", "text": "string", "count": "number", "flag": "bool", "names": "list(string)", "many": "list(any)",
		"mixed": "list(any)", "labels": "object", "set": "set(string)",
	}
	for _, v := range wf.Variables {
		if v.Type != want[v.Name] {
			t.Errorf("variable %s has type %s, want %s", v.Name, v.Type, want[v.Name])
		}
	}
}

func attributeJSON(t *testing.T, v Value, name string) []byte {
	t.Helper()
	x, err := value.Decode(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := value.Encode(x.GetAttr(name), false)
	if err != nil {
		t.Fatal(err)
	}
	return out.JSON()
}
