package metered

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// A broken expression is one that panics or has many diagnostics, as a mistake in the library would.
type broken struct {
	*hclsyntax.ParenthesesExpr
	panics any
	diags  hcl.Diagnostics
}

func (b *broken) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if b.panics != nil {
		panic(b.panics)
	}
	return cty.DynamicVal, b.diags
}

func breaking(p any, diags ...*hcl.Diagnostic) *broken {
	return &broken{&hclsyntax.ParenthesesExpr{Expression: &hclsyntax.LiteralValueExpr{Val: cty.True}, SrcRange: hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 7}}}, p, diags}
}

// A panic of the library is an error of the expression, at its place. It never ends the process.
func TestPanicsAreErrors(t *testing.T) {
	for _, ctx := range []*hcl.EvalContext{nil, ConstantContext(nil, nil)} {
		v, diags := Evaluate(breaking(errors.New("index out of range")), ctx)
		if len(diags) != 1 || diags[0].Subject.Start.Line != 7 || !strings.Contains(diags[0].Detail, "index out of range") || v != cty.DynamicVal {
			t.Errorf("%#v, %v", v, diags)
		}
	}
	ctx := ConstantContext(nil, nil)
	MeterOf(ctx).Take(2*MaxCost, 0)
	if _, diags := Evaluate(breaking("late"), ctx); len(diags) != 1 || diags[0].Summary != "Expression too expensive" {
		t.Errorf("after an overrun: %v", diags)
	}
	if _, diags := Evaluate(breaking(nil), ctx); len(diags) != 1 || diags[0].Summary != "Expression too expensive" {
		t.Errorf("an overrun that the library has caught: %v", diags)
	}
}

// One evaluation gives at most 20 diagnostics, and each has at most 4 KiB of valid text.
func TestDiagnosticsAreShort(t *testing.T) {
	for _, n := range []int{0, 1, 20, 21, 1000} {
		diags := make([]*hcl.Diagnostic, n)
		for i := range diags {
			diags[i] = &hcl.Diagnostic{Severity: hcl.DiagError, Summary: fmt.Sprint(i)}
		}
		_, got := Evaluate(breaking(nil, diags...), ConstantContext(nil, nil))
		if len(got) != min(n, 20) || n > 0 && got[0].Summary != "0" {
			t.Errorf("%d of %d diagnostics are left", len(got), n)
		}
	}
	for _, n := range []int{4095, 4096, 4097, 100_000} {
		for _, unit := range []string{"x", "é", "€"} {
			long := (strings.Repeat(unit, n/len(unit)+1))[:n-n%len(unit)]
			given := &hcl.Diagnostic{Severity: hcl.DiagError, Detail: long}
			_, got := Evaluate(breaking(nil, given), ConstantContext(nil, nil))
			text := got[0].Detail
			if whole := text == long; whole != (len(long) <= 4096) || len(text) > 4100 || !utf8.ValidString(text) {
				t.Errorf("%d bytes of %q become %d bytes", len(long), unit, len(text))
			}
			if given.Detail != long {
				t.Error("the diagnostic of the library has changed")
			}
		}
	}
}

// The stack of a function that has panicked does not get into a message. A text that only looks
// like one stays.
func TestStacksAreRemoved(t *testing.T) {
	for detail, want := range map[string]string{
		"panic in function implementation: oops\ngoroutine 1 [running]:\nruntime/debug.Stack()\n\t/home/builder/x.go": "the function cannot compute it: oops.",
		"the list is\ngoroutine 1 of my own": "the list is\ngoroutine 1 of my own",
		"plain":                              "plain",
	} {
		_, got := Evaluate(breaking(nil, &hcl.Diagnostic{Severity: hcl.DiagError, Detail: detail}), nil)
		if got[0].Detail != want {
			t.Errorf("%q becomes %q, want %q", detail, got[0].Detail, want)
		}
	}
}

// A value may be nested 1,000 levels deep while an expression is evaluated, and no deeper.
func TestNestingIsBounded(t *testing.T) {
	for _, c := range []struct {
		levels int
		over   *overrun
	}{{maxNesting, nil}, {maxNesting + 1, overDepth}} {
		v, ty := cty.True, cty.Bool
		for range c.levels - 1 {
			v, ty = cty.TupleVal([]cty.Value{v}), cty.Tuple([]cty.Type{ty})
		}
		for name, x := range map[string]cty.Value{"known": v, "unknown": cty.UnknownVal(ty), "null": cty.NullVal(ty)} {
			m := &Meter{}
			func() {
				defer func() {
					if p := recover(); p != nil && p != any(overDepth) {
						t.Errorf("panic %v", p)
					}
				}()
				m.Weigh(x)
			}()
			if m.Over != c.over {
				t.Errorf("%d levels, %s: over %v, want %v", c.levels, name, m.Over, c.over)
			}
		}
	}
}

// After a copy of the meter was made, it counts further costs without those of the local values.
func TestSinceLeavesOutLocals(t *testing.T) {
	m := &Meter{}
	m.Take(10, 100)
	m.Locals.Add(Spent{3, 30})
	then := *m
	m.Take(50, 500)
	m.Locals.Add(Spent{20, 200})
	m.Take(7, 70)
	if got := m.Since(then); got != (Spent{37, 370}) {
		t.Errorf("%+v, want 37 and 370", got)
	}
}

// The product is exact, or is the largest number that it can be.
func TestProduct(t *testing.T) {
	for _, c := range []struct {
		want    int64
		factors []int64
	}{
		{1, nil}, {0, []int64{5, 0}}, {0, []int64{0, 1 << 60}}, {0, []int64{-1, -1}}, {0, []int64{1 << 40, -1}}, {30, []int64{2, 3, 5}},
		{1 << 60, []int64{1 << 30, 1 << 30}}, {1 << 60, []int64{1 << 30, 1<<30 + 1}}, {1 << 60, []int64{1 << 62}}, {1 << 60, []int64{3, 1 << 59}}, {1 << 60, []int64{1 << 60, 1 << 60, 2}},
	} {
		if got := product(c.factors...); got != c.want {
			t.Errorf("product%v is %d, want %d", c.factors, got, c.want)
		}
	}
}

// A repetition counts each number of each pair of braces, and together at most 1,000.
func TestRepeated(t *testing.T) {
	for re, want := range map[string]int64{
		"abc": 1, "a{3}": 3, "a{2,5}": 5, "a{7,}": 7, "(a{10}b){20}": 200, "a{3}b{4}": 12, "a{1000}": 1000, "(a{100}){100}": 1000, "a{99999999999999999999}": 1000, "a{": 1, "a{x}": 1, "a{,5}": 5,
	} {
		if got := repeated(re); got != want {
			t.Errorf("%s: %d, want %d", re, got, want)
		}
	}
}

// The size of a value counts each part as often as it occurs, and the types inside of a value that
// has no parts.
func TestWeightOfAValue(t *testing.T) {
	text := cty.StringVal("a \"\n")
	for name, c := range map[string]struct {
		v    cty.Value
		want weight
	}{
		"text":       {text, weight{nodes: 1, bytes: 4, special: 2, breaks: 2, depth: 1, longest: 4}},
		"twice":      {cty.TupleVal([]cty.Value{text, text}), weight{nodes: 3, bytes: 8, special: 4, breaks: 4, depth: 2, longest: 4}},
		"object":     {cty.ObjectVal(map[string]cty.Value{"k": cty.True}), weight{nodes: 2, bytes: 1, depth: 2, longest: 1}},
		"map":        {cty.MapVal(map[string]cty.Value{"key": cty.True}), weight{nodes: 2, bytes: 3, depth: 2, longest: 3}},
		"null list":  {cty.NullVal(cty.List(cty.String)), weight{nodes: 3, depth: 2}},
		"empty list": {cty.ListValEmpty(cty.List(cty.String)), weight{nodes: 4, depth: 3}},
		"unknown":    {cty.UnknownVal(cty.Object(map[string]cty.Type{"name": cty.Bool})), weight{nodes: 3, bytes: 4, depth: 2}},
		"digits":     {cty.StringVal("12345"), weight{nodes: 1, bytes: 5, depth: 1, longest: 5, digits: value.Numeral("12345")}},
		"sensitive":  {text.Mark(value.SensitiveMark{}), weight{nodes: 1, bytes: 4, special: 2, breaks: 2, depth: 1, longest: 4}},
	} {
		if got := (&Meter{}).Weigh(c.v); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	big := (&Meter{}).Weigh(cty.MustParseNumberVal("1e900"))
	if n := int64(len("1e900") + 895); big.bytes < n {
		t.Errorf("a number of 901 digits counts %d bytes", big.bytes)
	}
}
