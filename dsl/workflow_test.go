package dsl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/functions"
)

// TestDefaults: what a step that says nothing gets, and how retry merges.
func TestDefaults(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  retry {
    max_attempts = 9
    jitter       = "none"
    max_interval = "10s"
  }
  variable "n" { default = 2 }
  step "once" {
    action       = agent.mock.call_once
    compensation = "none"
  }
  step "again" {
    action       = agent.mock.call
    compensation = "none"
    retry { max_interval = "1m" }
  }
  step "promised" {
    action       = agent.mock.call_once
    compensation = "none"
    idempotent   = true
  }
  step "lowered" {
    action       = agent.mock.call
    compensation = "none"
    idempotent   = false
  }
  step "dynamic" {
    for_each     = toset(["a"])
    action       = agent.mock.call_once
    compensation = "none"
    max_parallel = var.n
    max_failures = "${var.n * 10}%"
    deadline     = "2030-01-31T18:00:00Z"
    retry {
      max_attempts = var.n
      on_exhausted = "cool_down"
    }
  }
}
workflow "plain" {
  deadline = "36h"
  step "read" {
    action = agent.sql.query
    input {
      sql  = "select $1, $2"
      args = ["a", 1]
    }
  }
}
`).Workflow("w")
	scope := &Scope{Vars: bindAll(t, wf)}
	attempts := map[string]int{"once": 1, "again": 9, "promised": 9, "lowered": 1, "dynamic": 2}
	for _, s := range wf.Steps {
		st, err := s.Settings(scope)
		if err != nil || st.Retry.MaxAttempts != attempts[s.Name] || st.Timeout != 30*time.Second || st.Retry.Jitter {
			t.Errorf("%s: %+v, %v", s.Name, st, err)
		}
		again, _ := s.Settings(scope)
		if constant := st == again; constant == (s.Name == "dynamic") {
			t.Errorf("%s: constant settings %t", s.Name, constant)
		}
	}
	if st := settingsNow(t, stepNamed(t, wf, "again")); st.Retry.MaxInterval != time.Minute || st.Retry.Strategy != Exponential || st.Retry.Multiplier != 2 {
		t.Errorf("merged retry %+v", st.Retry)
	}
	st, err := stepNamed(t, wf, "dynamic").Settings(scope)
	if err != nil || st.MaxParallel != 2 || st.MaxFailures(19) != 3 || st.Deadline.At.Year() != 2030 || st.Retry.OnExhausted != ExhaustedCoolDown || st.Retry.CoolDowns != 3 || st.Retry.CoolDown != 15*time.Minute {
		t.Errorf("dynamic settings %+v, %v", st, err)
	}
	if wf.Shortest != 0 {
		t.Errorf("shortest %v with settings that depend on the run", wf.Shortest)
	}
	if limit, err := wf.Deadline(scope); err != nil || limit.After != time.Hour {
		t.Errorf("deadline %v, %v", limit, err)
	}
}

// TestOrderGraph: dependencies come from references. S4, S8.
func TestOrderGraph(t *testing.T) {
	wf := linked(t, orderText(t)).Workflow("order")
	if got := fmt.Sprint(wf.Order, wf.Steps[0].Before, wf.Steps[2].After); got != "[0 1 2 3] [1 2] [0 1]" {
		t.Errorf("graph %s", got)
	}
	if wf.Shortest != 500*time.Millisecond {
		t.Errorf("shortest %v", wf.Shortest)
	}
}

// TestPivotWaitsForAll: the pivot waits for every step that does not wait for
// it, so nothing runs beside it.
func TestPivotWaitsForAll(t *testing.T) {
	wf := linked(t, `
workflow "w" {
  deadline = "1h"
  step "a" {
    action       = agent.mock.call
    compensation = "none"
  }
  step "go" {
    pivot  = true
    action = agent.mock.call
  }
  step "b" {
    action       = agent.mock.call
    compensation = "none"
    depends_on   = [step.a]
  }
  step "after" {
    action     = agent.mock.call
    depends_on = [step.go]
    retry { max_attempts = "unbounded" }
  }
  step "c" {
    action       = agent.mock.call
    compensation = "none"
  }
}`).Workflow("w")
	if got := fmt.Sprint(wf.Pivot, wf.Steps[1].After, wf.Order); got != "1 [2 4] [0 2 4 1 3]" {
		t.Errorf("pivot %s", got)
	}
	if wf.Steps[1].NoUndo || wf.Steps[1].Undo != nil {
		t.Error("a pivot that says nothing is not declared as never undone")
	}
}

// TestDiagnosticJSON pins the shape, which is that of Terraform's validate.
func TestDiagnosticJSON(t *testing.T) {
	d := diag.Diagnostic{
		Severity: diag.SeverityWarning, Summary: "S", Detail: "D.", Context: `in workflow "w"`,
		Range:   diag.Range{File: "a.hcl", Start: diag.Pos{Line: 2, Column: 3, Byte: 20}, End: diag.Pos{Line: 2, Column: 5, Byte: 22}},
		Snippet: &diag.Snippet{Context: `in workflow "w"`, Code: "  x = 1", StartLine: 2, HighlightStart: 2, HighlightEnd: 4},
	}
	got, err := json.Marshal(d)
	want := `{"severity":"warning","summary":"S","detail":"D.","range":{"filename":"a.hcl","start":{"line":2,"column":3,"byte":20},"end":{"line":2,"column":5,"byte":22}},` +
		`"snippet":{"context":"in workflow \"w\"","code":"  x = 1","start_line":2,"highlight_start_offset":2,"highlight_end_offset":4,"values":[]}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	if got, err = json.Marshal(diag.Diagnostic{Severity: diag.SeverityError, Summary: "S"}); err != nil || string(got) != `{"severity":"error","summary":"S","detail":""}` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestRender: colour underlines the place, and nothing from a file can steer
// the terminal.
func TestRender(t *testing.T) {
	d := diag.Diagnostic{
		Severity: diag.SeverityError, Summary: "Bad\x1b[2J", Detail: "one two three four five",
		Range:   diag.Range{File: "a.hcl", Start: diag.Pos{Line: 120}, End: diag.Pos{Line: 120}},
		Snippet: &diag.Snippet{Code: "x = \x1b[31m\u202eevil", StartLine: 120, HighlightStart: 0, HighlightEnd: 1, Values: []diag.SnippetValue{{Traversal: "var.x", Statement: `is "y"`}}},
	}
	for _, tt := range []struct {
		o    diag.RenderOptions
		want string
	}{
		{diag.RenderOptions{Width: 12}, "Error: Bad\ufffd[2J\n  on a.hcl line 120:\n 120: x = \ufffd[31m\ufffdevil\n      ^\n      # var.x is \"y\"\none two\nthree four\nfive\n"},
		{diag.RenderOptions{Color: true}, "\x1b[1;31mError:\x1b[0m \x1b[1mBad\ufffd[2J\x1b[0m\n  on a.hcl line 120:\n 120: \x1b[4mx\x1b[0m = \ufffd[31m\ufffdevil\n      # var.x is \"y\"\none two three four five\n"},
	} {
		var out bytes.Buffer
		if err := diag.Render(&out, diag.Diagnostics{d}, tt.o); err != nil || out.String() != tt.want {
			t.Errorf("%q, %v\nwant %q", out.String(), err, tt.want)
		}
	}
}

// TestRenderMarks: without colour a line of marks stands under the place, also
// after tabs and characters that are wide or have no width.
func TestRenderMarks(t *testing.T) {
	for name, tt := range map[string]struct {
		code, marked string
		line         int
		want         string
	}{
		"word":      {"a = bcd", "bcd", 7, "   7: a = bcd\n          ^^^\n"},
		"nothing":   {"a = bcd", "", 7, "   7: a = bcd\n      ^\n"},
		"long line": {"a = bcd", "bcd", 123456, "123456: a = bcd\n            ^^^\n"},
		"tab":       {"\ta = b", "a", 7, "   7: \ta = b\n      \t^\n"},
		"wide":      {"\"日本\" + x", "x", 7, "   7: \"日本\" + x\n               ^\n"},
		"combining": {"\"e\u0301\" + x", "x", 7, "   7: \"e\u0301\" + x\n            ^\n"},
	} {
		from := max(0, strings.LastIndex(tt.code, tt.marked))
		if tt.marked == "" {
			from = 0
		}
		d := diag.Diagnostic{
			Severity: diag.SeverityError, Summary: "S",
			Snippet: &diag.Snippet{Code: tt.code, StartLine: tt.line, HighlightStart: from, HighlightEnd: from + len(tt.marked)},
		}
		var out bytes.Buffer
		if err := diag.Render(&out, diag.Diagnostics{d}, diag.RenderOptions{}); err != nil || out.String() != "Error: S\n"+tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, out.String(), tt.want)
		}
	}
}

// TestFunctions evaluates every function of the table at least once.
func TestFunctions(t *testing.T) {
	cases := map[string]string{
		`abs(-1)`: "1", `ceil(1.2)`: "2", `floor(1.8)`: "1", `log(8, 2)`: "3", `max(1, 3)`: "3", `min(1, 3)`: "1",
		`parseint("ff", 16)`: "255", `pow(2, 10)`: "1024", `signum(-5)`: "-1", `sum([1, 2.5])`: "3.5",
		`chomp("a\n")`: `"a"`, `format("%s-%03d", "a", 7)`: `"a-007"`, `formatlist("%s!", ["a"])`: `["a!"]`, `indent(2, "a\nb")`: `"a\n  b"`,
		`join("-", ["a", "b"])`: `"a-b"`, `lower("A")`: `"a"`, `upper("a")`: `"A"`, `regex("[0-9]+", "a12")`: `"12"`, `regexall("[0-9]", "a12")`: `["1","2"]`,
		`replace("aba", "a", "c")`: `"cbc"`, `replace("a12", "/[0-9]+/", "x")`: `"ax"`, `split(",", "a,b")`: `["a","b"]`, `strrev("abc")`: `"cba"`,
		`substr("hello", 1, 3)`: `"ell"`, `title("ab")`: `"Ab"`, `trim("?a?", "?")`: `"a"`, `trimprefix("ab", "a")`: `"b"`, `trimsuffix("ab", "b")`: `"a"`, `trimspace(" a ")`: `"a"`,
		`startswith("ab", "a")`: "true", `endswith("ab", "a")`: "false", `strcontains("abc", "b")`: "true", `basename("a/b")`: `"b"`, `dirname("a/b")`: `"a"`,
		`alltrue([true, false])`: "false", `anytrue([true, false])`: "true", `alltrue([])`: "true", `chunklist([1, 2, 3], 2)`: "[[1,2],[3]]",
		`coalesce("", null, "x")`: `"x"`, `coalescelist([], ["a"])`: `["a"]`, `compact(["", "a"])`: `["a"]`, `concat([1], ["a"])`: `[1,"a"]`,
		`contains(["a"], "a")`: "true", `distinct([1, 1])`: "[1]", `element([1, 2], 3)`: "2", `flatten([[1], [2]])`: "[1,2]", `index(["a", "b"], "b")`: "1",
		`keys({ b = 1, a = 2 })`: `["a","b"]`, `length("äb")`: "2", `length({ a = 1 })`: "1", `length([1, 2])`: "2", `lookup({ a = 1 }, "b", 2)`: "2", `lookup({ a = 1 }, "a")`: "1",
		`matchkeys(["x", "y"], ["a", "b"], ["b"])`: `["y"]`, `merge({ a = 1 }, { b = 2 })`: `{"a":1,"b":2}`, `one([])`: "null", `one(["a"])`: `"a"`,
		`range(3)`: "[0,1,2]", `reverse([1, 2])`: "[2,1]", `setintersection(["a", "b"], ["b"])`: `["b"]`, `setproduct(["a"], ["b"])`: `[["a","b"]]`,
		`setsubtract(["a", "b"], ["b"])`: `["a"]`, `setunion(["a"], ["b"])`: `["a","b"]`, `slice([1, 2, 3], 1, 2)`: "[2]", `sort(["b", "a"])`: `["a","b"]`,
		`transpose({ a = ["1", "2"], b = ["1"] })`: `{"1":["a","b"],"2":["a"]}`, `values({ a = 1 })`: "[1]", `zipmap(["a"], [1])`: `{"a":1}`,
		`base64decode("YQ==")`: `"a"`, `base64encode("a")`: `"YQ=="`, `csvdecode("a,b\n1,2")`: `[{"a":"1","b":"2"}]`, `jsondecode("[1]")`: "[1]", `jsonencode([1])`: `"[1]"`,
		`urlencode("a b&")`: `"a+b%26"`, `yamldecode("a: 1")`: `{"a":1}`, `yamlencode({ a = 1 })`: `"\"a\": 1\n"`,
		`md5("")`: `"d41d8cd98f00b204e9800998ecf8427e"`, `sha1("")`: `"da39a3ee5e6b4b0d3255bfef95601890afd80709"`,
		`sha256("")`:               `"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		`substr(sha512(""), 0, 8)`: `"cf83e135"`, `base64sha256("")`: `"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="`, `substr(base64sha512(""), 0, 8)`: `"z4PhNX7v"`,
		`uuidv5("dns", "example.com")`:               `"cfbff0d1-9375-5685-968c-48ce8b15ae17"`,
		`formatdate("YYYY", "2030-01-31T18:00:00Z")`: `"2030"`, `timeadd("2030-01-31T18:00:00Z", "1h")`: `"2030-01-31T19:00:00Z"`,
		`timecmp("2030-01-31T18:00:00Z", "2031-01-31T18:00:00Z")`: "-1",
		`cidrhost("10.0.0.0/8", 5)`:                               `"10.0.0.5"`, `cidrnetmask("10.0.0.0/8")`: `"255.0.0.0"`, `cidrsubnet("10.0.0.0/8", 8, 2)`: `"10.2.0.0/16"`,
		`cidrsubnets("10.0.0.0/8", 8, 8)`: `["10.0.0.0/16","10.1.0.0/16"]`,
		`can(tonumber("x"))`:              "false", `try(tonumber("x"), 1)`: "1", `nonsensitive(sensitive(1))`: "1", `issensitive(sensitive(1))`: "true",
		`tobool("true")`: "true", `tonumber("1")`: "1", `tostring(1)`: `"1"`, `tolist([1])`: "[1]", `tomap({ a = 1 })`: `{"a":1}`, `toset(["a", "a"])`: `["a"]`,
		`env("REGION")`: `"eu"`, `env("NO")`: "null",
		`timediff("2030-01-31T18:00:00Z", "2030-01-31T17:00:00Z")`: "3600", `durationseconds("1m")`: "60",
		`base64urlencode("a")`: `"YQ"`, `base64urldecode("YQ")`: `"a"`, `urldecode("a%26")`: `"a&"`, `substr(base64gzip("a"), 0, 4)`: `"H4sI"`, `textencodebase64("a", "UTF-8")`: `"YQ=="`, `textdecodebase64("YQ==", "UTF-8")`: `"a"`,
		`sort_by([{ n = 2 }, { n = 1 }], "n")`: `[{"n":1},{"n":2}]`, `deepmerge({ a = { b = 1 } }, { a = { c = 2 } })`: `{"a":{"b":1,"c":2}}`, `type(1)`: `"number"`, `cidrcontains("10.0.0.0/8", "10.0.0.1")`: "true",
		`templatestring("$${a}!", { a = 1 })`: `"1!"`,
	}
	used := map[string]bool{"secret": true} // tested with what they read
	for name := range functions.Literal {
		used[name] = true
	}
	for expr, want := range cases {
		v, err := evalText(t, expr)
		if err != nil || string(v.JSON()) != want {
			t.Errorf("%s = %s, %v; want %s", expr, v.JSON(), err, want)
		}
		for _, name := range functions.Names() {
			if strings.Contains(expr, name+"(") {
				used[name] = true
			}
		}
	}
	for _, name := range functions.Names() {
		if !used[name] {
			t.Errorf("function %s is not tested", name)
		}
	}
}

// settingsNow returns the settings of a step that do not depend on the run.
func settingsNow(t *testing.T, s *Step) *Settings {
	t.Helper()
	st, err := s.Settings(nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
