package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

func rangeOnly() map[string]function.Function {
	return map[string]function.Function{"range": stdlib.RangeFunc}
}

// Where a plain string is required, nothing that must be computed is taken for one.
func TestLiteralString(t *testing.T) {
	for src, want := range map[string]string{
		`f("env:A")`: "env:A", `f("a\nb")`: "a\nb", `f("")`: "", `f("$${x}")`: "${x}",
		`f(("a"))`: "a", `f("${"a"}")`: "a",
		`f()`: "-", `f("a", "b")`: "-", `f(["a"]...)`: "-", `f("a"...)`: "-", `f(1)`: "-", `f(null)`: "-", `f(["a"])`: "-", `f(true)`: "-",
		`f(var.a)`: "-", `f("${var.a}")`: "-", `f(g("a"))`: "-", `f("a${g()}")`: "-",
	} {
		got, ok := LiteralString(parsed(t, src).(*hclsyntax.FunctionCallExpr))
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// Calls finds the calls at every depth, and only those with the given names.
func TestCallsInAnExpression(t *testing.T) {
	e := parsed(t, `{ a = f(g("x")), (h()) = [for i in f() : "${g(i)}" if h()] }`)
	for _, c := range []struct {
		only []string
		want int
	}{{nil, 6}, {[]string{"f"}, 2}, {[]string{"g", "h"}, 4}, {[]string{"none"}, 0}} {
		if got := len(Calls(e, c.only...)); got != c.want {
			t.Errorf("%q: %d calls, want %d", c.only, got, c.want)
		}
	}
}

// A reference may be written in HCL, and as a string in JSON. Nothing else is a reference.
func TestTraversalForms(t *testing.T) {
	json := func(raw string, syn string) *Expr { return &Expr{Syntax: parsed(t, syn), Raw: &raw} }
	for _, c := range []struct {
		name, want string
		e          *Expr
	}{
		{"HCL", "agent", &Expr{Syntax: parsed(t, "agent.a.b")}},
		{"a string in HCL", "-", &Expr{Syntax: parsed(t, `"agent.a.b"`)}},
		{"a template in HCL", "-", &Expr{Syntax: parsed(t, `"${agent.a.b}"`)}},
		{"a call in HCL", "-", &Expr{Syntax: parsed(t, "f()")}},
		{"a string in JSON", "agent", json("agent.a.b", `"agent.a.b"`)},
		{"a template in JSON", "agent", json("${agent.a.b}", `"${agent.a.b}"`)},
		{"a sentence in JSON", "-", json("not a reference", `"not a reference"`)},
		{"a call in JSON", "-", json("${f()}", `"${f()}"`)},
		{"a number in JSON", "-", &Expr{Syntax: parsed(t, "1")}},
	} {
		got := "-"
		if tr := c.e.Traversal(); tr != nil {
			got = tr.RootName()
		}
		if got != c.want {
			t.Errorf("%s: the root is %s, want %s", c.name, got, c.want)
		}
	}
}

func secretText(v cty.Value) string {
	enc, err := value.Encode(v, true)
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s %v", enc.JSON(), enc.Secrets())
}

// A secret keeps its place in the value, with the texts before and after it.
func TestSecretPlaces(t *testing.T) {
	vars := map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"s": cty.StringVal("me"), "n": cty.NumberIntVal(5), "none": cty.NullVal(cty.String),
		"other": value.SecretValue([]value.SecretPart{{Ref: "env:Z"}}),
	})}
	for src, want := range map[string]string{
		`secret("env:A")`:                          "null [{ [{ env:A}]}]",
		`"${secret("env:A")}"`:                     "null [{ [{ env:A}]}]",
		`("a${secret("env:A")}")`:                  "null [{ [{a } { env:A}]}]",
		`"${secret("env:A")}${secret("env:B")}"`:   "null [{ [{ env:A} { env:B}]}]",
		`"u:${var.s}-${var.n}:${secret("env:A")}"`: "null [{ [{u:me-5: } { env:A}]}]",
		`"${secret("env:A")}x${var.s}y"`:           "null [{ [{ env:A} {xmey }]}]",
		`{ a = [1, secret("env:A")], b = "x" }`:    `{"a":[1,null],"b":"x"} [{/a/1 [{ env:A}]}]`,
		`{ (var.s) = secret("env:A") }`:            `{"me":null} [{/me [{ env:A}]}]`,
		`{ (var.n) = secret("env:A") }`:            `{"5":null} [{/5 [{ env:A}]}]`,
		`{ (var.none) = secret("env:A") }`:         "refused",
		`{ (var.zz) = secret("env:A") }`:           "refused",
		`{ a = [var.zz, secret("env:A")] }`:        "refused",
		`"${var.other}${secret("env:A")}"`:         "refused",
		`"${var.none}${secret("env:A")}"`:          "refused",
		`"${[1]}${secret("env:A")}"`:               "refused",
		`true ? secret("env:A") : "b"`:             "refused",
	} {
		v, diags := secretTree(parsed(t, src), &hcl.EvalContext{Variables: vars})
		got := "refused"
		if !diags.HasErrors() {
			got = secretText(v)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// A message of a run is about the first error, and has no sensitive text.
func TestRuntimeErrors(t *testing.T) {
	hidden := cty.StringVal("4711").Mark(value.SensitiveMark{})
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"pin": hidden, "short": cty.StringVal("abc").Mark(value.SensitiveMark{}), "id": cty.StringVal("open")})}}
	fault := func(sev hcl.DiagnosticSeverity, summary, detail string, extra any) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: sev, Summary: summary, Detail: detail, EvalContext: ctx, Extra: extra}
	}
	for _, c := range []struct {
		name, want, not string
		diags           hcl.Diagnostics
	}{
		{"a warning before the error", "second", "first", hcl.Diagnostics{fault(hcl.DiagWarning, "w", "first", nil), fault(hcl.DiagError, "e", "second", nil)}},
		{"the first of two errors", "first", "second", hcl.Diagnostics{fault(hcl.DiagError, "e", "first", nil), fault(hcl.DiagError, "e", "second", nil)}},
		{"only a warning", "could not be evaluated", "first", hcl.Diagnostics{fault(hcl.DiagWarning, "w", "first", nil)}},
		{"a sensitive text", "no (sensitive) in open", "4711", hcl.Diagnostics{fault(hcl.DiagError, "e", "no 4711 in open", nil)}},
		{"a short sensitive text", "(sensitive)", "abc", hcl.Diagnostics{fault(hcl.DiagError, "e", "<abc>", nil)}},
		{"an error of a function", "details are hidden", "47", hcl.Diagnostics{fault(hcl.DiagError, "Error in function call", "47 and 11", nil)}},
		{"an error that a function explains", "details are hidden", "47", hcl.Diagnostics{fault(hcl.DiagError, "Invalid argument", "47 and 11", "extra")}},
	} {
		err := runtimeError(c.diags)
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: %q, want %q and not %q", c.name, err, c.want, c.not)
		}
	}
}

// A local value has a limit of size and of digits. The limit of its evaluation is another one.
func TestSizeOfALocal(t *testing.T) {
	for _, c := range []struct {
		name string
		v    cty.Value
		ok   bool
	}{
		{"4 MiB of text", cty.StringVal(strings.Repeat("x", maxText-16)), true},
		{"a byte more", cty.StringVal(strings.Repeat("x", maxText-15)), false},
		{"two texts", cty.TupleVal([]cty.Value{cty.StringVal(strings.Repeat("x", maxText/2)), cty.StringVal(strings.Repeat("x", maxText/2))}), false},
		{"1,000 digits", cty.MustParseNumberVal(strings.Repeat("9", value.MaxDigits)), true},
		{"5,000 digits", cty.MustParseNumberVal("1e5000"), false},
	} {
		if err := checkSize(&metered.Meter{}, c.v); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	m := &metered.Meter{}
	m.Take(metered.MaxCost, 0)
	if err := checkSize(m, cty.StringVal("x")); err != nil || m.Over == nil {
		t.Errorf("an evaluation over its limit: %v, over %v", err, m.Over)
	}
}
