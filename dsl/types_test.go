package dsl

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/span"
	"github.com/saga-engine/engine/sdk/schema"
)

// TestBrokenSchema: a schema that makes no sense is the agent's fault and said
// to be so.
func TestBrokenSchema(t *testing.T) {
	src := "agent \"x\" {}\nworkflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action       = agent.x.do\n    compensation = \"none\"\n  }\n}\n"
	m, diags := Parse(fstest.MapFS{"a.hcl": {Data: []byte(src)}}, ParseOptions{EngineVersion: "0.1.0"})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	odd := schema.Type{Kind: "tensor"}
	for name, schema := range map[string]schema.Schema{
		"input type":  {Actions: map[string]schema.Action{"do": {Inputs: []schema.Field{{Name: "a", Type: odd}}}}},
		"output type": {Actions: map[string]schema.Action{"do": {Outputs: []schema.Field{{Name: "a", Type: schema.Type{Kind: schema.KindList, Elem: &odd}}}}}},
		"no element":  {Actions: map[string]schema.Action{"do": {Outputs: []schema.Field{{Name: "a", Type: schema.Type{Kind: schema.KindMap}}}}}},
		"default":     {Actions: map[string]schema.Action{"do": {Inputs: []schema.Field{num("a", preset(`"x"`))}}}},
		"enum":        {Actions: map[string]schema.Action{"do": {Inputs: []schema.Field{num("a", oneOf(`{`))}}}},
		"config":      {Config: []schema.Field{{Name: "a", Type: odd}}, Actions: map[string]schema.Action{"do": {}}},
	} {
		def, diags := Link(m, map[string]AgentBinary{"x": {Schema: schema}})
		if def != nil || !strings.Contains(diags.Err().Error(), "Invalid agent schema") {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// TestSensitiveBelowLists: a sensitive field below a list or a map marks the
// whole list or map.
func TestSensitiveBelowLists(t *testing.T) {
	inner := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{str("key", hidden), str("name")}}
	fields := []schema.Field{field("list", schema.Type{Kind: schema.KindList, Elem: &inner}), field("one", inner), str("plain")}
	ty, err := value.ObjectFrom(fields)
	if err != nil {
		t.Fatal(err)
	}
	v, err := link.ReplyFunc(fields, ty, ty)([]byte(`{"list":[{"key":"aaaa","name":"bbbb"}],"one":{"key":"cccc","name":"dddd"},"plain":"eeee"}`))
	if err != nil || strings.Join(v.Sensitive(), " ") != "/list /one/key" {
		t.Errorf("sensitive %v, %v", v.Sensitive(), err)
	}
	if got := strings.Join(v.SensitiveStrings(), " "); got != "aaaa bbbb cccc" {
		t.Errorf("sensitive strings %q", got)
	}
}

// TestRetryOrder: one written interval moves the other, two must agree.
func TestRetryOrder(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  step "long_first" {
    action       = agent.mock.call
    compensation = "none"
    retry { initial_interval = "2m" }
  }
  step "short_last" {
    action       = agent.mock.call
    compensation = "none"
    retry {
      max_interval = "100ms"
      strategy     = "linear"
    }
  }
}`).Workflow("w")
	if r := settingsNow(t, wf.Steps[0]).Retry; r.InitialInterval != 2*time.Minute || r.MaxInterval != 2*time.Minute {
		t.Errorf("%+v", r)
	}
	if r := settingsNow(t, wf.Steps[1]).Retry; r.InitialInterval != 100*time.Millisecond || r.Strategy != Linear {
		t.Errorf("%+v", r)
	}
}

// TestFormatJSON: the JSON form has a layout too, and broken source stays as
// it is.
func TestFormatJSON(t *testing.T) {
	out, diags := Format([]byte("{\"locals\":{\"b\":1e3,\n\n\"a\":\"<&>\"}}"), "x.hcl.json")
	if want := "{\n  \"locals\": {\n    \"b\": 1e3,\n    \"a\": \"<&>\"\n  }\n}\n"; string(out) != want || diags.HasErrors() {
		t.Errorf("%q, %v", out, diags.Err())
	}
	for name, src := range map[string]string{"x.json": `{"a":`, "y.json": strings.Repeat("[", 1000), "x.hcl": "a = ", "y.hcl": strings.Repeat("[", 1000)} {
		if out, diags = Format([]byte(src), name); string(out) != src || !diags.HasErrors() {
			t.Errorf("%s: %q, %v", name, out, diags)
		}
	}
}

// TestFormatJSONLineBreaks: the line breaks of a file stay of one kind.
func TestFormatJSONLineBreaks(t *testing.T) {
	out, diags := Format([]byte("{\r\n\"locals\":\r\n{\"a\":1}}\r\n"), "x.hcl.json")
	want := "{\r\n  \"locals\": {\r\n    \"a\": 1\r\n  }\r\n}\r\n"
	if string(out) != want || diags.HasErrors() {
		t.Errorf("%q, %v; want %q", out, diags.Err(), want)
	}
}

// TestFormat: the canonical layout.
func TestFormat(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "\n\n", ""},
		{"alignment", "a {\nx=1\n  long_name   =  [1,2]\n}\n\n\n", "a {\n  x         = 1\n  long_name = [1, 2]\n}\n"},
		{"needless template", "a = \"${ var.x }\"\nb = \"${var.x}!\"\n", "a = var.x\nb = \"${var.x}!\"\n"},
		{"template over lines stays", "a = \"${[\n1]}\"\n", "a = \"${[\n1]}\"\n"},
		{"comments", "# c\na = 1 // d\n/* e */\n", "# c\na = 1 // d\n/* e */\n"},
		{"heredoc", "a = <<-EOT\n    x\n  ${var.y}\nEOT\n", "a = <<-EOT\n    x\n  ${var.y}\nEOT\n"},
		{"no new line at the end", "a = 1", "a = 1\n"},
		{"lines that end in CR LF", "a {\r\nx=1\r\n}\r\n", "a {\r\n  x = 1\r\n}\r\n"},
		{"CR LF, but none at the end", "a=1\r\nb=2", "a = 1\r\nb = 2\r\n"},
		{"CR LF, blank lines at the end", "a=1\r\n\r\n\r\n", "a = 1\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, diags := Format([]byte(tt.in), "x.hcl")
			if string(out) != tt.want || diags.HasErrors() {
				t.Errorf("%q, %v; want %q", out, diags.Err(), tt.want)
			}
		})
	}
}

// TestLists: what the lists of diagnostics say about themselves.
func TestLists(t *testing.T) {
	src := "workflow \"b\" {\n}\nworkflow \"a\" {\n  deadline = \"x\"\n}\n"
	m, _ := Parse(fstest.MapFS{"a.hcl": {Data: []byte(src)}}, ParseOptions{EngineVersion: "odd"})
	if got := strings.Join(m.Workflows(), " "); got != "b a" {
		t.Errorf("workflows %q", got)
	}
	_, diags := Link(m, nil)
	if len(diags.Errors()) != 1 || len(diags.Warnings()) != 1 || len(diags) != 4 {
		t.Errorf("diagnostics %v", diags)
	}
	if diag.Diagnostics(diags.Warnings()).Err() != nil {
		t.Error("warnings are no errors")
	}
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond: "1.5s", 57500 * time.Millisecond: "57s", 90 * time.Second: "1m30s",
		3 * time.Hour: "3h", 26 * time.Hour: "1d2h",
	} {
		if got := span.Text(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// TestValueEqual: marks are part of a value.
func TestValueEqual(t *testing.T) {
	a := NewValue([]byte(`{"a":1}`), []string{"/a"}, nil)
	if !a.Equal(NewValue([]byte(`{"a":1}`), []string{"/a"}, nil)) || a.Equal(jsonValue(`{"a":1}`)) || a.Equal(Value{}) || !(Value{}).Equal(jsonValue("null")) {
		t.Error("equality")
	}
	if _, err := json.Marshal(diag.Diagnostics{}); err != nil {
		t.Error(err)
	}
}

// TestLimitFrom: a deadline is relative to a start, absolute, or none. S10.
func TestLimitFrom(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := start.Add(5 * time.Hour)
	for _, tt := range []struct {
		limit Limit
		want  time.Time
		ok    bool
	}{
		{Limit{}, time.Time{}, false}, {Limit{After: time.Hour}, start.Add(time.Hour), true}, {Limit{At: at}, at, true},
	} {
		if got, ok := tt.limit.From(start); !got.Equal(tt.want) || ok != tt.ok {
			t.Errorf("%+v: %v, %t", tt.limit, got, ok)
		}
	}
}
