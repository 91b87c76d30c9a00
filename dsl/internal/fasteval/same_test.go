package fasteval

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A bench evaluates expressions with both evaluators: with an Expr, and with package eval.
type bench struct {
	ev    *eval.Evaluator
	scope *eval.Scope
}

func document(text string, marks ...string) value.Value {
	return value.NewValue([]byte(text), marks, nil)
}

// newBench has a variable v of this type, a step a, a step e with for_each, and all other values
// that a reference can read.
func newBench(ty cty.Type, v string) bench {
	start := time.Date(2030, 1, 31, 18, 0, 0, 5, time.FixedZone("east", 3600))
	ev := &eval.Evaluator{
		Vars: map[string]eval.VariableShape{"v": {Type: ty}, "pin": {Type: cty.String, Sensitive: true}},
		Steps: []eval.StepShape{
			{Name: "a", Out: cty.Object(map[string]cty.Type{"value": cty.DynamicPseudoType}), In: cty.ObjectWithOptionalAttrs(map[string]cty.Type{"arg": cty.String}, []string{"arg"})},
			{Name: "e", Each: true, Out: cty.Object(map[string]cty.Type{"value": cty.DynamicPseudoType}), In: cty.EmptyObject},
		},
	}
	results := []eval.StepResult{
		{Final: true, One: eval.InstanceResult{
			Status: "failed", Attempts: 3, ErrorCode: "denied", ErrorText: "no", ErrorData: document(`{"why":"age"}`), Output: document(`{"value":{"k":[1,"two"]}}`),
			StartedAt: start, EndedAt: start.Add(time.Second), TimedOut: true, Signal: "paid",
		}},
		{Final: true, Each: true, Instances: []eval.InstanceResult{
			{Key: "k1", Status: "succeeded", Attempts: 1, Output: document(`{"value":"first"}`), StartedAt: start},
			{Key: "k2", Status: "skipped", Output: document("null")},
		}},
	}
	return bench{ev, &eval.Scope{
		Run:     eval.RunInfo{ID: "r-1", Workflow: "w", Key: "key-1", StartedAt: start},
		Vars:    document(fmt.Sprintf(`{"pin":"4711","v":%s}`, v), "/pin"),
		Step:    func(i int) eval.StepResult { return results[i] },
		Each:    &eval.EachItem{Key: "k2", Value: document(`{"n":7}`)},
		Self:    &eval.Self{Input: document(`{"arg":"in"}`), Output: document(`{"value":"out"}`), OutputKnown: true, Key: "self-key", TimedOut: true, Signal: "paid"},
		Failure: &eval.Failure{Step: "a", Code: "denied", Message: "no money"},
	}}
}

// compiled makes what package decl makes of an expression without locals.
func (b bench) compiled(t *testing.T, src string) *eval.Expr {
	t.Helper()
	syn, diags := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(src, diags)
	}
	c := &eval.Compiled{Syntax: syn, Metered: metered.Of(syn), StepRefs: map[int]hcl.Range{}}
	for _, tr := range syn.Variables() {
		switch root := tr.RootName(); root {
		case "var":
			c.Vars = true
		case "step":
			i := slices.IndexFunc(b.ev.Steps, func(s eval.StepShape) bool { return s.Name == tr[1].(hcl.TraverseAttr).Name })
			if _, known := c.StepRefs[i]; !known {
				c.StepRefs[i], c.Named = tr.SourceRange(), append(c.Named, i)
			}
		default:
			c.Each, c.Self = c.Each || root == "each", c.Self || root == "self"
			c.SelfInput = c.SelfInput || root == "self" && tr[1].(hcl.TraverseAttr).Name == "input"
			c.Failure, c.Run = c.Failure || root == "failure", c.Run || root == "run"
		}
	}
	return &eval.Expr{Syntax: syn, Range: syn.Range(), Compiled: c}
}

func shown(v value.Value) string { return fmt.Sprintf("%s %q", v.JSON(), v.Sensitive()) }

// both returns the value of package eval, and the value of the Expr; fast is false if the Expr
// does not exist or gives up.
func (b bench) both(t *testing.T, src string) (want, got string, fast bool) {
	t.Helper()
	e := b.compiled(t, src)
	v, err := b.ev.Run(e.Compiled, b.scope, 0)
	if err == nil {
		var out value.Value
		if out, err = value.Encode(v, false); err == nil {
			want = shown(out)
		}
	}
	if err != nil {
		want = "error: " + err.Error()
	}
	d := Compile(b.ev, 0, e, Anything, nil)
	if d == nil {
		return want, "", false
	}
	out, ok := d.Value(&Context{Evaluator: b.ev, Scope: b.scope}, false)
	if !ok {
		return want, "", false
	}
	return want, shown(out), true
}

// Each reference of the language reads the same value in both evaluators. The expected text keeps
// two attributes apart that one evaluator might confuse.
func TestReferencesReadTheSame(t *testing.T) {
	b := newBench(cty.DynamicPseudoType, `{"deep":[{"x":"y"}]}`)
	for src, want := range map[string]string{
		"var.v":                `{"deep":[{"x":"y"}]} []`,
		"var.v.deep[0].x":      `"y" []`,
		"var.pin":              `"4711" [""]`,
		"step.a.output":        `{"value":{"k":[1,"two"]}} []`,
		"step.a.output.value":  `{"k":[1,"two"]} []`,
		"step.a.status":        `"failed" []`,
		"step.a.attempts":      "3 []",
		"step.a.error":         `{"code":"denied","data":{"why":"age"},"message":"no"} []`,
		"step.a.error.code":    `"denied" []`,
		"step.a.error.message": `"no" []`,
		"step.a.error.data":    `{"why":"age"} []`,
		"step.a.started_at":    `"2030-01-31T17:00:00.000000005Z" []`,
		"step.a.ended_at":      `"2030-01-31T17:00:01.000000005Z" []`,
		"step.a.timed_out":     "true []",
		"step.a.signal":        `"paid" []`,

		`step.e["k1"].output.value`:    `"first" []`,
		`step.e["k1"].started_at`:      `"2030-01-31T17:00:00.000000005Z" []`,
		`step.e["k1"].signal`:          "null []",
		`step.e["k1"].ended_at`:        "null []",
		`step.e["k1"].error`:           "null []",
		`step.e["k2"].output`:          "null []",
		"step.e[each.key].status":      `"skipped" []`,
		"step.e[each.key].timed_out":   "false []",
		"[for k, x in step.e : k]":     `["k1","k2"] []`,
		"[for x in step.e : x.status]": `["succeeded","skipped"] []`,

		"each.key": `"k2" []`, "each.value": `{"n":7} []`, "each.value.n": "7 []",
		"self.input.arg": `"in" []`, "self.output.value": `"out" []`, "self.key": `"self-key" []`, "self.timed_out": "true []", "self.signal": `"paid" []`,
		"failure.step": `"a" []`, "failure.code": `"denied" []`, "failure.message": `"no money" []`,
		"run.id": `"r-1" []`, "run.workflow": `"w" []`, "run.key": `"key-1" []`, "run.started_at": `"2030-01-31T17:00:00.000000005Z" []`, "run.tick": "null []",

		"[failure.message, failure.code]":                `["no money","denied"] []`,
		`"${failure.code}/${run.key}"`:                   `"denied/key-1" []`,
		"[var.v.deep, var.pin]":                          `[[{"x":"y"}],"4711"] ["/1"]`,
		`{ "a/b" = [1, var.pin] }`:                       `{"a/b":[1,"4711"]} ["/a~1b/1"]`,
		`"<${var.pin}>"`:                                 `"<4711>" [""]`,
		"[" + strings.Repeat("var.v, ", 10) + "var.pin]": "[" + strings.Repeat(`{"deep":[{"x":"y"}]},`, 10) + `"4711"] ["/10"]`,
	} {
		slow, fast, ok := b.both(t, src)
		if slow != want {
			t.Errorf("%s: the general evaluator gives %s, want %s", src, slow, want)
		}
		if ok && fast != want {
			t.Errorf("%s: the fast evaluator gives %s, want %s", src, fast, want)
		}
	}
}

// The references that workflows use most are read on the bytes. Otherwise the comparison with
// package eval would compare nothing.
func TestUsualReferencesAreFast(t *testing.T) {
	b := newBench(cty.DynamicPseudoType, `{"deep":[{"x":"y"}]}`)
	for _, src := range []string{
		"var.v", "var.v.deep[0].x", "var.pin", "step.a.output.value", "step.a.status", "step.a.attempts", "step.a.error.code", "step.a.error.message",
		"step.a.started_at", "step.a.timed_out", `step.e["k1"].output.value`, "step.e[each.key].status", "each.key", "each.value.n",
		"self.input.arg", "self.output.value", "self.key", "self.timed_out", "self.signal", "failure.step", "failure.code", "failure.message",
		"run.id", "run.workflow", "run.key", "run.started_at", "step.a.attempts >= 3", "!self.timed_out",
	} {
		if _, _, ok := b.both(t, src); !ok {
			t.Errorf("%s is left to the general evaluator", src)
		}
	}
}

// The fast evaluator leaves missing results to the general evaluator, which knows whether they are
// null or an error.
func TestMissingValuesAreLeftOut(t *testing.T) {
	b := newBench(cty.DynamicPseudoType, "null")
	b.scope.Run.Key, b.scope.Self.OutputKnown, b.scope.Self.Signal, b.scope.Each, b.scope.Failure = "", false, "", nil, nil
	b.scope.Step = func(i int) eval.StepResult {
		return eval.StepResult{Each: i == 1, One: eval.InstanceResult{Status: "waiting"}}
	}
	for _, src := range []string{"run.key", "self.output.value", "self.signal", "each.key", "each.value", "failure.code", "step.a.error.code", "step.a.started_at", `step.e["k1"].status`} {
		if want, got, ok := b.both(t, src); ok {
			t.Errorf("%s: the fast evaluator gives %s, the general one %s", src, got, want)
		}
	}
}

// Comparisons and logical operations of all pairs of operands are the same in both evaluators.
func TestOperatorsAgree(t *testing.T) {
	operands := []string{"0", "1", "-1", "2.5", "123456789012345", "1234567890123456789", "true", "false", `"a"`, `"b"`, `"1"`, `"true"`, "null", "[]", `["a"]`, "{}"}
	operators := []string{"==", "!=", "<", "<=", ">", ">=", "&&", "||"}
	fast := map[string]int{}
	for _, l := range operands {
		b := newBench(cty.DynamicPseudoType, l)
		for _, r := range operands {
			for _, op := range operators {
				src := "var.v " + op + " " + r
				want, got, ok := b.both(t, src)
				if ok && got != want {
					t.Errorf("var.v = %s, %s: the fast evaluator gives %s, the general one %s", l, src, got, want)
				}
				if ok {
					fast[op]++
				}
			}
		}
	}
	for _, op := range operators {
		if fast[op] < 4 {
			t.Errorf("%s was compared only %d times", op, fast[op])
		}
	}
}

// A template gives the same text for every kind of part, whichever evaluator makes it.
func TestTemplatesAgree(t *testing.T) {
	for _, v := range []string{`"a"`, `""`, `"\u0301"`, `"e"`, `"\n\"\\"`, `"<&>"`, "0", "-7", "2.50", "1e3", "123456789012345", "1234567890123456", "1e100", "true", "false", "null", "[]", "{}", `["x"]`} {
		for _, ty := range []cty.Type{cty.DynamicPseudoType, cty.String} {
			if ty == cty.String && v[0] != '"' {
				continue
			}
			canonical, err := value.DecodeJSON([]byte(v))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := value.Encode(canonical, false)
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(ty, string(doc.JSON()))
			for _, src := range []string{`"${var.v}"`, `"e${var.v}"`, `"<${var.v}|${var.v}>"`, `"${var.v}\u0301"`} {
				if want, got, ok := b.both(t, src); ok && got != want {
					t.Errorf("var.v = %s, %s: the fast evaluator gives %s, the general one %s", v, src, got, want)
				}
			}
		}
	}
}
