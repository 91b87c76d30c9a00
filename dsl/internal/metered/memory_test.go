package metered_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
)

// priced evaluates an expression. It returns the value, the memory that was paid for, and whether
// there is a value.
func priced(t *testing.T, src string, vars map[string]cty.Value) (v cty.Value, memory int64, ok bool) {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(src, diags)
	}
	ctx := metered.ConstantContext(functions.Table(&functions.Reads{}), nil)
	ctx.Variables["var"] = cty.ObjectVal(vars)
	v, diags = metered.Evaluate(metered.Of(e), ctx)
	return v, metered.MeterOf(ctx).Memory, !diags.HasErrors()
}

// textBytes returns how many bytes of text a value holds.
func textBytes(v cty.Value) (n int64) {
	// The callback returns no error.
	_ = cty.Walk(v, func(_ cty.Path, x cty.Value) (bool, error) {
		if x.Type() == cty.String && x.IsKnown() && !x.IsNull() {
			n += int64(len(x.AsString()))
		}
		return true, nil
	})
	return n
}

// makers are calls that make new texts. Each of them can make a text that is far larger than its
// arguments, or that is nearly as large as them.
var makers = []string{
	`join(var.s, var.l)`, `join(var.s, var.l, var.l)`, `join(var.s, var.many...)`, `replace(var.s, var.c, var.t)`, `replace(var.s, "/./", var.t)`, `replace(var.s, "/(.)/", "$1$1$1$1")`,
	`replace(var.s, "", var.t)`, `format("%s%s%s", var.s, var.s, var.s)`, `format("%999s|%5s", var.s, var.t)`, `format("%5s|%999s", var.t, var.c)`, `format("%v %q %#v", var.l, var.s, var.l)`,
	`formatlist("%s-%s", var.s, var.l)`, `formatlist("%s %s %s", var.l, var.s, var.t)`, `formatlist("%s%s", var.l, "x")`, `formatlist("%999s", var.l)`,
	`indent(var.n, var.s)`, `indent(900, var.lines)`, `jsonencode(var.l)`, `jsonencode(var.o)`, `jsonencode(var.odd)`, `yamlencode(var.o)`, `yamlencode(var.l)`, `yamlencode(var.lines)`, `yamlencode(var.deep)`,
	`urlencode(var.s)`, `urlencode(var.odd)`, `base64encode(var.s)`, `base64encode(var.odd)`, `strrev(var.s)`, `title(var.s)`, `upper(var.odd)`, `lower(var.s)`, `trim(var.s, var.c)`,
	`substr(var.s, 0, 500)`, `split(var.c, var.s)`, `regexall(".", var.s)`, `regex("(.*)(.*)", var.s)`, `chomp(var.lines)`, `tostring(var.big)`,
	`"${var.s}${var.t}"`, `"%{ for x in var.l }${x}${var.s}%{ endfor }"`, `[for x in var.l : "${x}${var.t}"]`, `csvdecode("a\n${var.lines}")`, `jsondecode(jsonencode(var.o))`, `yamldecode(yamlencode(var.o))`,
}

// Before a function makes a text, an evaluation has paid for the memory of this text. Otherwise an
// expression could use more memory than the limit of an evaluation.
func TestTextsArePaidFor(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	text := func(most int, letters string) string {
		out := make([]rune, r.IntN(most+1))
		for i := range out {
			out[i] = []rune(letters)[r.IntN(len([]rune(letters)))]
		}
		return string(out)
	}
	values := map[string]int{}
	for range 12 {
		var list, many []cty.Value
		for range 1 + r.IntN(60) {
			list = append(list, cty.StringVal(text(40, "ab é")))
		}
		for range 1 + r.IntN(20) {
			many = append(many, cty.ListVal(list))
		}
		deep := cty.StringVal("x")
		for range 1 + r.IntN(60) {
			deep = cty.TupleVal([]cty.Value{deep, cty.StringVal("y")})
		}
		vars := map[string]cty.Value{
			"s": cty.StringVal(text(3000, "ab é,")), "t": cty.StringVal(text(3000, "xyz")), "c": cty.StringVal(text(1, "a,é")), "n": cty.NumberIntVal(int64(r.IntN(1000))),
			"l": cty.ListVal(list), "many": cty.ListVal(many), "lines": cty.StringVal(strings.Repeat(text(3, "a ")+"\n", r.IntN(500))),
			"odd": cty.StringVal(text(2000, "\x01\"\\<é€\u2028")), "o": cty.ObjectVal(map[string]cty.Value{"a": cty.ListVal(list), "b\n": cty.StringVal(text(500, "\n'\": "))}), "deep": deep,
			"big": cty.MustParseNumberVal(fmt.Sprintf("%de%d", 1+r.IntN(9), r.IntN(900))),
		}
		for _, src := range makers {
			v, memory, ok := priced(t, src, vars)
			if !ok {
				continue
			}
			values[src]++
			if n := textBytes(v); n > memory {
				t.Errorf("%s makes texts of %d bytes and pays for %d", src, n, memory)
			}
		}
	}
	for _, src := range makers {
		if values[src] == 0 {
			t.Errorf("%s never has a value", src)
		}
	}
}

// A longer argument never makes a call cheaper.
func TestPricesGrow(t *testing.T) {
	for _, src := range []string{
		`join(var.s, var.l)`, `replace(var.s, "a", "bb")`, `replace(var.s, "/a+/", "$0")`, `format("%s", var.s)`, `formatlist("%s%s", var.l, var.s)`, `indent(3, var.s)`, `jsonencode(var.l)`, `yamlencode(var.l)`,
		`urlencode(var.s)`, `split(",", var.s)`, `regexall("a", var.s)`, `sort(var.l)`, `distinct(var.l)`, `toset(var.l)`, `setunion(var.l, var.l)`, `setproduct(var.l, var.l)`, `contains(var.l, "x")`, `flatten([var.l, var.l])`,
		`merge({ a = var.s }, { b = var.s })`, `[for x in var.l : x]`, `{ for i, x in var.l : i => x }`, `"x${var.s}"`, `var.l == var.l`, `tonumber(var.d)`, `parseint(var.d, 10)`, `sum([for x in var.l : 1])`, `length(var.s)`, `range(var.n)`, `range(0, 1000, 1000 / var.n)`,
	} {
		cost, memory := int64(0), int64(0)
		for _, n := range []int{1, 10, 100, 200} {
			list := make([]cty.Value, n)
			for i := range list {
				list[i] = cty.StringVal(fmt.Sprintf("a,%d", i))
			}
			e, _ := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
			ctx := metered.ConstantContext(functions.Table(&functions.Reads{}), nil)
			ctx.Variables["var"] = cty.ObjectVal(map[string]cty.Value{
				"s": cty.StringVal(strings.Repeat("a,", n)), "d": cty.StringVal(strings.Repeat("9", n)), "n": cty.NumberIntVal(int64(n)), "l": cty.ListVal(list),
			})
			if _, diags := metered.Evaluate(metered.Of(e), ctx); diags.HasErrors() {
				t.Fatal(src, n, diags)
			}
			m := metered.MeterOf(ctx)
			if m.Cost < cost || m.Memory < memory {
				t.Errorf("%s: with %d elements it costs %d and %d bytes, with fewer %d and %d bytes", src, n, m.Cost, m.Memory, cost, memory)
			}
			if n == 200 && m.Cost <= cost {
				t.Errorf("%s: 200 elements cost as much as 100: %d", src, m.Cost)
			}
			cost, memory = m.Cost, m.Memory
		}
	}
}
