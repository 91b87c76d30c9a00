package dsl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// evaluateBoth evaluates an expression as the engine does, and the tree as it
// was parsed, by the library alone. The reference is left out where it would
// take too long: it has no limits.
func evaluateBoth(t testing.TB, src string, vars map[string]cty.Value) (got, want cty.Value, gotErr, wantErr error, ok bool) {
	t.Helper()
	if syntax.Prescan([]byte(src), "x.hcl") != nil {
		return got, want, nil, nil, false
	}
	syn, diags := hclsyntax.ParseExpression([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() || len(eval.Calls(syn, "file", "env", "secret")) > 0 {
		return got, want, nil, nil, false
	}
	funcs := functions.Table(&functions.Reads{})
	ctx := metered.ConstantContext(funcs, NewAllowance(20_000_000)) // what the reference can do as well
	for name, v := range vars {
		ctx.Variables[name] = v
	}
	got, diags = metered.Evaluate(metered.Of(syn), ctx)
	if gotErr = diagnosticsError(diags); metered.MeterOf(ctx).Over != nil {
		return got, want, gotErr, nil, false
	}
	want, diags = syn.Value(&hcl.EvalContext{Functions: funcs, Variables: vars})
	return got, want, gotErr, diagnosticsError(diags), true
}

func diagnosticsError(diags hcl.Diagnostics) error {
	if !diags.HasErrors() {
		return nil
	}
	return errors.New(diags.Error())
}

func compareBoth(t testing.TB, src string, vars map[string]cty.Value) bool {
	t.Helper()
	got, want, gotErr, wantErr, ok := evaluateBoth(t, src, vars)
	switch {
	case !ok:
		return false
	case (gotErr == nil) != (wantErr == nil):
		t.Fatalf("%s:\n metered   %v\n reference %v", src, gotErr, wantErr)
	case gotErr == nil && !got.RawEquals(want):
		t.Fatalf("%s:\n metered   %#v\n reference %#v", src, got, want)
	}
	return gotErr == nil
}

// seenVars is what the generated expressions can refer to.
func seenVars() map[string]cty.Value {
	return map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{
		"s": cty.StringVal("text é"), "n": cty.NumberIntVal(3), "b": cty.True, "none": cty.NullVal(cty.String),
		"l": cty.ListVal([]cty.Value{cty.StringVal("b"), cty.StringVal("a"), cty.StringVal("b")}),
		"t": cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.StringVal("2"), cty.True, cty.NullVal(cty.DynamicPseudoType)}),
		"m": cty.MapVal(map[string]cty.Value{"k": cty.NumberIntVal(1), "j": cty.NumberIntVal(2)}),
		"o": cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "in": cty.ObjectVal(map[string]cty.Value{"z": cty.Zero})}),
		"e": cty.SetVal([]cty.Value{cty.NumberIntVal(2), cty.NumberIntVal(10)}),
		"h": cty.StringVal("hidden").Mark(value.SensitiveMark{}), "u": cty.UnknownVal(cty.List(cty.String)), "d": cty.DynamicVal,
	})}
}

// A composer writes random expressions with everything that the language has.
type composer struct{ *rand.Rand }

func (c composer) pick(words ...string) string { return words[c.IntN(len(words))] }

func (c composer) expr(depth int, bound []string) string {
	if depth <= 0 {
		leaves := append([]string{
			"1", "2.5", "-3", "1e30", "true", "null", `"x"`, `"12"`, `"a,b"`, `"{\"a\":[1]}"`, `"a: [1, 2]"`, `"/b+/"`, `""`, "[]", "{}", "range(3)",
			"var.s", "var.n", "var.b", "var.none", "var.l", "var.t", "var.m", "var.o", "var.o.a", "var.e", "var.h", "var.u", "var.d", "var.o.in.z", "var.l[0]", "var.missing",
		}, bound...)
		return leaves[c.IntN(len(leaves))]
	}
	sub := func() string { return c.expr(depth-1-c.IntN(2), bound) }
	name := fmt.Sprintf("x%d", len(bound))
	in := func() string { return c.expr(depth-1, append(bound[:len(bound):len(bound)], name)) }
	switch c.IntN(16) {
	case 0:
		return fmt.Sprintf("[for %s in %s : %s]", name, sub(), in())
	case 1:
		return fmt.Sprintf("[for %s in %s : %s if %s]", name, sub(), in(), in())
	case 2:
		return fmt.Sprintf("{for k, %s in %s : %s => %s%s}", name, sub(), c.pick("k", name, `"c"`, `"${k}-"`), in(), c.pick("", "..."))
	case 3:
		return fmt.Sprintf("{ a = %s, (%s) = %s }", sub(), c.pick(`"b"`, sub()), sub())
	case 4:
		return fmt.Sprintf("[%s, %s, %s]", sub(), sub(), sub())
	case 5:
		return fmt.Sprintf("(%s) %s (%s)", sub(), c.pick("==", "!=", "<", ">=", "&&", "||", "+", "-", "*", "/", "%"), sub())
	case 6:
		return fmt.Sprintf("(%s) ? %s : %s", c.pick("true", "false", "var.b", sub()), sub(), sub())
	case 7:
		return fmt.Sprintf(`"a${%s}b%%{ for %s in %s }${%s}%%{ endfor }"`, sub(), name, sub(), in())
	case 8:
		return fmt.Sprintf(`"${%s}%%{ if %s }y%%{ else }n%%{ endif }"`, sub(), c.pick("true", "var.b", sub()))
	case 9:
		return fmt.Sprintf("(%s)%s", sub(), c.pick("[0]", `["a"]`, ".a", "[*]", "[*].a", ".*.a", "["+sub()+"]"))
	case 10:
		return c.pick("!", "-") + "(" + sub() + ")"
	case 11:
		return fmt.Sprintf("%s(%s)", c.pick("try", "can"), sub())
	case 12:
		return fmt.Sprintf("try(%s, %s)", sub(), sub())
	case 13:
		return fmt.Sprintf("%s(%s...)", c.pick("concat", "merge", "max", "coalesce", "setunion", "format", "join"), sub())
	}
	names := functions.Names()
	args := make([]string, c.IntN(4))
	for i := range args {
		args[i] = sub()
	}
	return fmt.Sprintf("%s(%s)", names[c.IntN(len(names))], strings.Join(args, ", "))
}

// TestMeteredAgrees: an expression that pays for its work gives the value that
// the library gives, or fails where it fails.
func TestMeteredAgrees(t *testing.T) {
	c := composer{rand.New(rand.NewPCG(3, 5))}
	vars, values := seenVars(), 0
	for range 30_000 {
		if compareBoth(t, c.expr(1+c.IntN(3), nil), vars) {
			values++
		}
	}
	if values < 3_000 {
		t.Errorf("only %d of the expressions have a value: the test compares too little", values)
	}
}

// TestLoopsSeeVariables: what stands directly in a loop may refer to what is
// outside of it.
func TestLoopsSeeVariables(t *testing.T) {
	for expr, want := range map[string]string{
		`[for i in range(3) : var.v]`:                           `["a","a","a"]`,
		`[for x in ["a", "b"] : x if var.v == x]`:               `["a"]`,
		`[for x in [true, false] : 1 if x]`:                     `[1]`,
		`{for x in ["k"] : var.v => var.v}`:                     `{"a":"a"}`,
		`[for i in range(2) : [for j in range(2) : var.v]]`:     `[["a","a"],["a","a"]]`,
		`[for x in ["a", "b"] : x if try(var.v, "") == x]`:      `["a"]`,
		`"%{ for x in [1, 2] }${var.v}%{ endfor }"`:             `"aa"`,
		`[for x in [{ n = 1 }, { n = 2 }] : x.n]`:               `[1,2]`,
		`[for x in [[1, 2], [3]] : x[*]]`:                       `[[1,2],[3]]`,
		`true ? [for x in range(200) : var.v][0] : [][0]`:       `"a"`,
		`length(var.v == "a" ? [for x in range(200) : x] : [])`: `200`,
	} {
		v, err := evalWith(t, expr, "a")
		if err != nil || string(v.JSON()) != want {
			t.Errorf("%s = %s, %v, want %s", expr, v.JSON(), err, want)
		}
	}
}

// TestUsualExpressionsAreCheap: what the documentation, the examples and the
// test data say costs next to nothing.
func TestUsualExpressionsAreCheap(t *testing.T) {
	seen := 0
	look := func(name string, src []byte) {
		f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
		if diags.HasErrors() {
			return
		}
		_ = hclsyntax.VisitAll(f.Body.(*hclsyntax.Body), func(n hclsyntax.Node) hcl.Diagnostics {
			e, ok := n.(hclsyntax.Expression)
			if !ok || len(eval.Calls(e, "file", "env", "secret")) > 0 {
				return nil
			}
			ctx := metered.ConstantContext(functions.Table(&functions.Reads{}), nil)
			for k, v := range seenVars() {
				ctx.Variables[k] = v
			}
			_, _ = metered.Evaluate(metered.Of(e), ctx) // most refer to what is not there
			if m := metered.MeterOf(ctx); m.Cost > metered.MaxCost/100 || m.Memory > metered.MaxMemory/20 {
				t.Errorf("%s: %s costs %d units and %d bytes", name, src[e.Range().Start.Byte:e.Range().End.Byte], m.Cost, m.Memory)
			}
			seen++
			return nil
		})
	}
	for _, pattern := range []string{"testdata/*/*.txtar", "../cmd/engine/testdata/*/*.txtar"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			if strings.Contains(p, "budget") {
				continue
			}
			a, err := txtar.ParseFile(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files {
				if strings.HasSuffix(f.Name, ".hcl") {
					look(p+"/"+f.Name, f.Data)
				}
			}
		}
	}
	if seen < 2_000 {
		t.Errorf("%d expressions were found", seen)
	}
}

// evalWith evaluates an output with a value for var.v.
func evalWith(t testing.TB, expr, v string) (Value, error) {
	t.Helper()
	wf := linked(t, fmt.Sprintf("workflow \"w\" {\n  deadline = \"1h\"\n  variable \"v\" { type = string }\n  output \"o\" { value = %s }\n}\n", expr)).Workflow("w")
	return wf.Outputs[0].Value(&Scope{Vars: bindAll(t, wf, "v", v), Memo: &Memo{}})
}

// TestLargeAgrees: what is done in another way for large values gives what the
// library gives.
func TestLargeAgrees(t *testing.T) {
	numbers, texts := "range(200)", "[for i in range(200) : \"k${i}\"]"
	named := "{for i in range(200) : \"k${i}\" => i}"
	for _, src := range []string{
		"true ? " + texts + " : []", "false ? " + texts + " : []", "true ? " + texts + " : [1, true]", "false ? " + texts + " : [1, \"x\"]",
		"true ? [for i in range(200) : i] : [\"x\"]", "true ? [for i in range(200) : { a = i }] : [{ a = \"x\" }]", "false ? [for i in range(200) : { a = i }] : [{ b = \"x\" }]",
		"true ? [for i in range(200) : i % 2 == 0 ? [i] : [i, i]] : []", "true ? [for i in range(200) : null] : [1]",
		"true ? " + named + " : {}", "false ? " + named + " : {}", "true ? " + named + " : { x = \"y\" }", "false ? " + named + " : { x = [1] }", "true ? " + named + " : { x = 1, y = 2 }",
		"true ? {for i in range(200) : \"k${i}\" => { a = i }} : { x = { a = \"y\" } }", "false ? {for i in range(200) : \"k${i}\" => [i]} : {}",
		"tolist(concat([true], " + texts + "))", "toset(concat([1], " + texts + "))", "tomap(" + named + ")", "tomap(merge(" + named + ", { x = \"y\" }))",
		"setunion(" + numbers + ", " + texts + ")", "setunion(" + texts + ")", "setsubtract(" + texts + ", [\"k1\", \"k2\"])", "setintersection(" + texts + ", [\"k1\", \"k999\"])",
		"setintersection(" + texts + ", [\"k1\", \"k2\"], [\"k2\"])", "setsubtract([], [])", "setunion([[1]], [[\"a\"]])", "setsubtract([1], [1])", "setunion([], [null, \"a\"])",
		"distinct(concat(" + texts + ", " + texts + "))", "join(\",\", " + texts + ")", "sort(concat([1], " + texts + "))", "coalescelist([], " + texts + ")",
	} {
		plain := strings.NewReplacer("setunion", "plainunion", "setsubtract", "plainsubtract", "setintersection", "plainintersection", "distinct", "plaindistinct").Replace(src)
		got, diags := metered.EvaluateOnce(parsed(t, src), functions.Table(&functions.Reads{}), nil)
		funcs := functions.Table(&functions.Reads{})
		funcs["plainunion"], funcs["plainsubtract"], funcs["plainintersection"] = stdlib.SetUnionFunc, stdlib.SetSubtractFunc, stdlib.SetIntersectionFunc
		funcs["plaindistinct"] = stdlib.DistinctFunc
		want, wantDiags := parsed(t, plain).Value(&hcl.EvalContext{Functions: funcs})
		if diags.HasErrors() != wantDiags.HasErrors() || !diags.HasErrors() && !got.RawEquals(want) {
			t.Errorf("%s:\n got  %#v, %v\n want %#v, %v", src, got, diags, want, wantDiags)
		}
	}
}

func parsed(t testing.TB, src string) hclsyntax.Expression {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte(src), "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return e
}
