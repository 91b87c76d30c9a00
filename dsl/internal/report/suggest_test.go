package report

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// failed evaluates an expression that fails, and returns its first finding.
func failed(t *testing.T, expr string, vars map[string]cty.Value) (detail string, values []string) {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte(expr), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	_, diags = e.Value(&hcl.EvalContext{Variables: vars})
	if !diags.HasErrors() {
		t.Fatalf("%s has a value", expr)
	}
	r := &Reporter{}
	r.HCL(diags)
	if s := r.List[0].Snippet; s != nil {
		for _, v := range s.Values {
			values = append(values, v.Traversal+" "+v.Statement)
		}
	}
	return r.List[0].Detail, values
}

// attributes returns an object with attributes of these names.
func attributes(names ...string) cty.Value {
	out := map[string]cty.Value{}
	for _, n := range names {
		out[n] = cty.StringVal("x")
	}
	return cty.ObjectVal(out)
}

// For a missing attribute the similar one is suggested. Otherwise all are named, if they are few.
func TestSuggestedAttribute(t *testing.T) {
	many := make([]string, 13)
	for i := range many {
		many[i] = fmt.Sprintf("attribute_%02d", i)
	}
	vars := map[string]cty.Value{
		"var": cty.ObjectVal(map[string]cty.Value{
			"few": attributes("charge_id", "status"), "twelve": attributes(many[:12]...), "many": attributes(many...), "none": cty.EmptyObjectVal,
			"list": cty.TupleVal([]cty.Value{attributes("amount")}),
		}),
	}
	for expr, want := range map[string]string{
		"var.few.charge_di":       `Did you mean "charge_id"?`,
		"var.few.zzz":             "It has: charge_id, status.",
		"var.twelve.zzz":          "It has: " + strings.Join(many[:12], ", ") + ".",
		"var.many.zzz":            `"zzz".`,
		"var.none.zzz":            `"zzz".`,
		"var.list[0].amont":       `Did you mean "amount"?`,
		"(var.few).charge_di":     `Did you mean "charge_id"?`,
		"[var.few][0].zzz":        "It has: charge_id, status.",
		"var.few.status.zzz":      "(string).",
		"var.list[*].amount.zzz":  "(string).",
		`var.few["status"]["zz"]`: "",
	} {
		if detail, _ := failed(t, expr, vars); !strings.HasSuffix(detail, want) {
			t.Errorf("%s: %q, want it to end with %q", expr, detail, want)
		}
	}
}

// The values in a failed expression are described, each once and by name.
func TestSnippetValues(t *testing.T) {
	vars := map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"z": cty.StringVal("gold"), "a": cty.NumberFloatVal(2.5), "l": cty.TupleVal([]cty.Value{cty.True, cty.NullVal(cty.String)}),
		"m": cty.MapVal(map[string]cty.Value{"a b": cty.Zero}), "u": cty.UnknownVal(cty.String), "d": cty.DynamicVal,
		"pin":  cty.StringVal("1234").Mark(value.SensitiveMark{}),
		"part": cty.TupleVal([]cty.Value{cty.StringVal("1234").Mark(value.SensitiveMark{})}),
	})}
	for expr, want := range map[string]string{
		"-(var.z)":               `var.z is "gold"`,
		"-[var.z, var.a, var.z]": `var.a is 2.5; var.z is "gold"`,
		"-[var.l[0], var.l[1]]":  "var.l[0] is true; var.l[1] is null",
		`-[var.m["a b"], var.l]`: `var.l is tuple with 2 elements; var.m["a b"] is 0`,
		"-[var.u, var.d]":        "",
		"-[var.pin, var.part]":   "var.part has a sensitive value; var.pin has a sensitive value",
	} {
		_, values := failed(t, expr, vars)
		if got := strings.Join(values, "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// A description is short, is a valid text, and never has the digits of a huge number.
func TestDescribe(t *testing.T) {
	for _, n := range []int{59, 60, 61, 200} {
		for _, unit := range []string{"x", "é", "€"} {
			s := strings.Repeat(unit, n/len(unit)) + strings.Repeat("x", n%len(unit))
			got := describe(cty.StringVal(s))
			if !utf8.ValidString(got) || strings.Contains(got, `\x`) || strings.Contains(got, "\uFFFD") {
				t.Errorf("%d bytes of %q: %q is no valid text", n, unit, got)
			}
			if whole := strings.HasSuffix(got, `..."`); whole == (n <= 60) {
				t.Errorf("%d bytes of %q: %q", n, unit, got)
			}
		}
	}
	huge := new(big.Float).SetMantExp(big.NewFloat(1), 100_000)
	if got := describe(cty.NumberVal(huge)); got != "is a number with too many digits" {
		t.Errorf("a huge number: %.100s", got)
	}
}

// A reference is shown as it is written.
func TestTraversalText(t *testing.T) {
	for _, src := range []string{"var.plan", "step.a.output.l[0].x", `var.m["a b"].c`, "var.l[12]", "each.value"} {
		tr, diags := hclsyntax.ParseTraversalAbs([]byte(src), "a.hcl", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if got := traversalText(tr); got != src {
			t.Errorf("%s is shown as %s", src, got)
		}
	}
	odd := hcl.Traversal{hcl.TraverseRoot{Name: "var"}, hcl.TraverseIndex{Key: cty.UnknownVal(cty.String)}}
	if got := traversalText(odd); got != "var[...]" {
		t.Errorf("an unknown key is shown as %s", got)
	}
}
