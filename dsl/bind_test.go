package dsl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

const bindText = `
variable "region" {
  type    = string
  default = "eu"
}
workflow "w" {
  deadline = "1h"
  variable "name" {
    type        = string
    description = "Who it is for."
  }
  variable "count" {
    type    = number
    default = 2
    validation {
      condition     = var.count > 0 && length(var.name) > 1
      error_message = "count ${var.count} is too small for ${var.region}."
    }
  }
  variable "guess" { default = 5 }
  variable "tags" {
    type     = object({ a = optional(string, "x"), b = optional(list(number)) })
    default  = {}
    nullable = false
  }
  variable "pin" {
    type      = number
    sensitive = true
    default   = null
    validation {
      condition     = var.pin == null || var.pin != 1234
      error_message = "pin ${coalesce(var.pin, 0)} is too simple"
    }
  }
}
workflow "other" {
  deadline = "1h"
  variable "else" { default = 1 }
}`

func flag1(name, text string) Assignment {
	return Assignment{Name: name, Text: text, Source: "--var"}
}

// TestBind: values of variables, their precedence, and what is refused.
func TestBind(t *testing.T) {
	wf := linked(t, bindText).Workflow("w")
	vars, diags := ParseVars("x.vars.hcl", []byte("name = \"file\"\ntags = { b = [1, 2.50] }\n"))
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	for _, tt := range []struct {
		name string
		in   []Assignment
		want string // JSON, or with "error:" parts of the message
	}{
		{"defaults", []Assignment{flag1("name", "ann")}, `{"count":2,"guess":5,"name":"ann","pin":null,"region":"eu","tags":{"a":"x","b":null}}`},
		{"later wins", append(vars, flag1("name", `"quoted"`), flag1("count", "9007199254740993"), flag1("guess", "7"), flag1("region", "us")),
			`{"count":9007199254740993,"guess":7,"name":"\"quoted\"","pin":null,"region":"us","tags":{"a":"x","b":[1,2.5]}}`},
		{"not of the default's type", []Assignment{flag1("name", "ann"), flag1("guess", "many")}, "error:does not fit its type number"},
		{"null is the default", []Assignment{flag1("name", "ann"), flag1("tags", "null")}, `{"count":2,"guess":5,"name":"ann","pin":null,"region":"eu","tags":{"a":"x","b":null}}`},
		{"another workflow's, from a file", []Assignment{flag1("name", "ann"), {Name: "else", Text: "1", Source: "ENGINE_VAR_else"}}, `{"count":2,"guess":5,"name":"ann","pin":null,"region":"eu","tags":{"a":"x","b":null}}`},
		{"another workflow's, by flag", []Assignment{flag1("name", "ann"), flag1("else", "1")}, "error:undeclared variable|else"},
		{"missing", nil, "error:No value for required variable|Who it is for|ENGINE_VAR_name"},
		{"undeclared", []Assignment{flag1("nam", "ann")}, `error:undeclared variable|--var|Did you mean "name"?`},
		{"wrong type", []Assignment{flag1("name", "ann"), flag1("count", "many")}, "error:does not fit its type number"},
		{"wrong attribute type", []Assignment{flag1("name", "ann"), flag1("tags", "{ b = 1 }")}, "error:does not fit its type object"},
		{"not an expression", []Assignment{flag1("name", "ann"), flag1("tags", "{ b = ")}, "error:Invalid value for variable|tags"},
		{"no functions", []Assignment{flag1("name", "ann"), flag1("tags", `{ a = upper("x") }`)}, "error:only plain values"},
		{"validation", []Assignment{flag1("name", "ann"), flag1("count", "-1")}, "error:count -1 is too small for eu.|--var"},
		{"sensitive validation", []Assignment{flag1("name", "ann"), flag1("pin", "1234")}, "error:hidden"},
		{"sensitive type", []Assignment{flag1("name", "ann"), flag1("pin", "hunter2")}, "error:does not fit its type number"},
		{"too many digits", []Assignment{flag1("name", "ann"), flag1("count", "1e2000")}, "error:1000 digits"},
		{"deep", []Assignment{flag1("name", "ann"), flag1("tags", strings.Repeat("[", 100_000))}, "error:nested at most 200 deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, diags := wf.Bind(tt.in)
			message := ""
			if err := diags.Err(); err != nil {
				message = err.Error()
			}
			parts, isError := strings.CutPrefix(tt.want, "error:")
			if !isError {
				if message != "" || string(v.JSON()) != tt.want {
					t.Errorf("%s %s; want %s", v.JSON(), message, tt.want)
				}
				return
			}
			for _, part := range strings.Split(parts, "|") {
				if !strings.Contains(message, part) {
					t.Errorf("message %q; want %q in it", message, part)
				}
			}
			if strings.Contains(message, "hunter2") || strings.Contains(message, "1234") {
				t.Errorf("message shows a sensitive value: %s", message)
			}
		})
	}
}

// The refusal of a sensitive variable does not quote the value, as the refusal of
// a type can do: it names the key below which the value does not fit.
func TestBindHidesKeys(t *testing.T) {
	for _, hidden := range []bool{true, false} {
		wf := linked(t, fmt.Sprintf("workflow \"w\" {\n deadline = \"1h\"\n variable \"v\" {\n  type = map(list(any))\n  sensitive = %t\n }\n output \"o\" {\n  value = var.v\n  sensitive = true\n }\n}\n", hidden)).Workflow("w")
		_, diags := wf.Bind([]Assignment{flag1("v", "{ hunter2 = 5 }")})
		err := diags.Err()
		if err == nil {
			t.Fatal("a number is no list, but it was taken for one")
		}
		if got := strings.Contains(err.Error(), "hunter2"); got == hidden {
			t.Errorf("sensitive = %t: %v", hidden, err)
		}
	}
}

// Quotes and brackets in the texts of a JSON file of values are no nesting.
func TestVarsJSONTexts(t *testing.T) {
	text := strings.Repeat(`\\\"[{`, 300)
	vars, diags := ParseVars("x.vars.json", []byte(`{"v": "`+text+`"}`))
	if diags.HasErrors() || len(vars) != 1 {
		t.Errorf("%d values, %.300v", len(vars), diags.Err())
	}
}

// TestVarsFiles: values files hold plain values; those named auto load by
// themselves, in order of name.
func TestVarsFiles(t *testing.T) {
	m, diags := Parse(fstest.MapFS{
		"main.hcl":             {Data: []byte(bindText)},
		"a.auto.vars.hcl":      {Data: []byte("name = \"a\"\ncount = 3\n")},
		"b.auto.vars.hcl":      {Data: []byte("name = \"bb\"\n")},
		"c.vars.hcl":           {Data: []byte("name = ")},
		"d.auto.vars.hcl.json": {Data: []byte(`{"region": "d"}`)},
	}, ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	def, diags := Link(m, nil)
	if def == nil {
		t.Fatal(diags.Err())
	}
	v, diags := def.Workflow("w").Bind(m.AutoVars())
	if want := `{"count":3,"guess":5,"name":"bb","pin":null,"region":"d","tags":{"a":"x","b":null}}`; string(v.JSON()) != want {
		t.Errorf("%s, %v", v.JSON(), diags.Err())
	}
	bad := append(m.AutoVars(), Assignment{Name: "count", Text: "0", Source: "--var"})
	if _, diags = def.Workflow("w").Bind(bad); !diags.HasErrors() {
		t.Error("validation passed")
	}
	_, diags = ParseVars("x.vars.hcl", []byte("a = var.b\nc = upper(\"x\")\nd {\n}\n"))
	if len(diags.Errors()) != 3 {
		t.Errorf("diagnostics %v", diags)
	}
	more, diags := ParseVars("x.vars.hcl", []byte("\n\ncount = -5\n"))
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if _, diags = def.Workflow("w").Bind(append(m.AutoVars(), more...)); len(diags) != 1 || diags[0].Range.String() != "x.vars.hcl:3" || diags[0].Snippet.Code != "count = -5" {
		t.Errorf("the place of a refused value: %+v", diags)
	}
}
