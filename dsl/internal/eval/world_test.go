package eval

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/value"
)

func parsed(t *testing.T, src string) hclsyntax.Expression {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte(src), "a.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(src, diags)
	}
	return e
}

func document(text string, marks ...string) value.Value {
	return value.NewValue([]byte(text), marks, nil)
}

// reading makes a Compiled that reads these steps and locals, and the variables.
func reading(t *testing.T, src string, steps []int, locals ...*Local) *Compiled {
	t.Helper()
	syn := parsed(t, src)
	c := &Compiled{Syntax: syn, Metered: metered.Of(syn), Vars: strings.Contains(src, "var."), Named: steps, Steps: steps, Locals: locals, StepRefs: map[int]hcl.Range{}}
	for _, i := range steps {
		c.StepRefs[i] = syn.Range()
	}
	return c
}

func (ev *Evaluator) shown(t *testing.T, c *Compiled, s *Scope) string {
	t.Helper()
	v, err := ev.Run(c, s, 0)
	if err != nil {
		return "error: " + err.Error()
	}
	out, err := value.Encode(v, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(out.JSON())
}

// anyStep is an evaluator with a step a, with or without for_each.
func anyStep(each bool) *Evaluator {
	return &Evaluator{Steps: []StepShape{{Name: "a", Each: each, Out: cty.DynamicPseudoType, In: cty.EmptyObject}}}
}

// The result of a step is kept for the run only when it is final. So an expression never sees a
// result of an earlier attempt.
func TestOnlyFinalResultsAreKept(t *testing.T) {
	for _, each := range []bool{false, true} {
		for _, final := range []bool{false, true} {
			ev, asked := anyStep(each), 0
			local := &Local{Name: "l", Expr: &Expr{Compiled: reading(t, map[bool]string{false: "step.a.attempts", true: `step.a["k"].attempts`}[each], []int{0})}}
			c := reading(t, "local.l", nil, local)
			s := &Scope{Memo: &Memo{}, Step: func(int) StepResult {
				asked++
				one := InstanceResult{Key: "k", Status: "running", Attempts: asked}
				return StepResult{Each: each, Final: final, One: one, Instances: []InstanceResult{one}}
			}}
			first, second := ev.shown(t, c, s), ev.shown(t, c, s)
			want := map[bool]string{true: "1", false: "2"}[final]
			if first != "1" || second != want {
				t.Errorf("for_each %t, final %t: %s, then %s, want 1, then %s", each, final, first, second, want)
			}
			if fresh := ev.shown(t, c, &Scope{Memo: &Memo{}, Step: s.Step}); fresh == second {
				t.Errorf("for_each %t, final %t: another run has the kept result", each, final)
			}
		}
	}
}

// A Memo belongs to one evaluator: another workflow may have another step with the same index.
func TestMemoOfAnotherEvaluator(t *testing.T) {
	asked := 0
	s := &Scope{Memo: &Memo{}, Step: func(int) StepResult {
		asked++
		return StepResult{Final: true, One: InstanceResult{Attempts: asked}}
	}}
	c := reading(t, "step.a.attempts", []int{0})
	one, other, shared := anyStep(false), anyStep(false), anyStep(false)
	shared.Shared = true
	got := fmt.Sprint(one.shown(t, c, s), one.shown(t, c, s), other.shown(t, c, s), shared.shown(t, c, s), shared.shown(t, c, s), other.shown(t, c, s))
	if want := "1 1 2 3 4 2"; strings.Join(strings.Split(got, ""), " ") != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A shared evaluator has the variables outside of workflows, so it must not leave its own
// variables in a document that workflows read, too.
func TestSharedEvaluatorKeepsNoVariables(t *testing.T) {
	vars := document(`{"a":1,"b":"2"}`)
	file := &Evaluator{Vars: map[string]VariableShape{"a": {Type: cty.Number}}, Shared: true}
	workflow := &Evaluator{Vars: map[string]VariableShape{"a": {Type: cty.Number}, "b": {Type: cty.Number}}}
	for range 2 {
		if got := file.shown(t, reading(t, "var.a", nil), &Scope{Vars: vars}); got != "1" {
			t.Errorf("var.a is %s outside of workflows", got)
		}
		if value.KeptDecoded(vars, file) != nil {
			t.Error("the variables outside of workflows are kept")
		}
		if got := workflow.shown(t, reading(t, "[var.a, var.b]", nil), &Scope{Vars: vars}); got != "[1,2]" {
			t.Errorf("the variables of the workflow are %s", got)
		}
	}
}

// Each variable is sensitive if its declaration says so, or if the whole document is.
func TestSensitiveVariables(t *testing.T) {
	ev := &Evaluator{Vars: map[string]VariableShape{"open": {Type: cty.String}, "pin": {Type: cty.String, Sensitive: true}, "gone": {Type: cty.Number}}}
	for _, c := range []struct {
		marks []string
		want  string
	}{{nil, "open=false pin=true gone=false "}, {[]string{"/open"}, "open=true pin=true gone=false "}, {[]string{""}, "open=true pin=true gone=true "}} {
		got := ""
		for _, name := range []string{"open", "pin", "gone"} {
			v, err := ev.Run(reading(t, "var."+name, nil), &Scope{Vars: document(`{"open":"o","pin":"p"}`, c.marks...)}, 0)
			if err != nil {
				t.Fatal(err)
			}
			got += fmt.Sprintf("%s=%t ", name, v.IsMarked())
		}
		if got != c.want {
			t.Errorf("marks %q: %s, want %s", c.marks, got, c.want)
		}
	}
}

// An expression pays for each local value that it uses once, and also for those that these use. It
// pays the same in a run that has the values already.
func TestLocalsArePaidOnce(t *testing.T) {
	ev := &Evaluator{}
	base := &Local{Name: "base", Expr: &Expr{Compiled: reading(t, "[for i in range(100) : i]", nil)}}
	left := &Local{Name: "left", Expr: &Expr{Compiled: reading(t, "local.base", nil, base)}}
	right := &Local{Name: "right", Expr: &Expr{Compiled: reading(t, "local.base", nil, base)}}
	ev.Funcs = rangeOnly()
	cost := func(memo *Memo, src string, locals ...*Local) int64 {
		a := metered.NewAllowance(metered.MaxCost)
		if got := ev.shown(t, reading(t, src, nil, locals...), &Scope{Memo: memo, Allowance: a}); strings.HasPrefix(got, "error") {
			t.Fatal(got)
		}
		return a.Spent()
	}
	one := cost(&Memo{}, "[local.base]", base)
	all := cost(&Memo{}, "[local.base, local.left, local.right]", base, left, right)
	if one < 100_000 || all > 2*one {
		t.Errorf("the list costs %d, and with two locals that use it %d", one, all)
	}
	for src, locals := range map[string][]*Local{
		"[local.right]": {right}, "[local.left, local.right]": {left, right}, "[local.base, local.left, local.right]": {base, left, right}, "[local.left, local.base]": {left, base},
	} {
		kept := &Memo{}
		first := cost(kept, src, locals...)
		if again := cost(kept, src, locals...); again != first {
			t.Errorf("%s costs %d, and with the kept values %d", src, first, again)
		}
		warm := &Memo{}
		cost(warm, "[local.base]", base)
		for range 2 { // the second time, the memo has the values that were computed next to the kept one
			if again := cost(warm, src, locals...); again != first {
				t.Errorf("%s costs %d, and with one kept value %d", src, first, again)
			}
		}
	}
}

// Without the values of a run, an expression that needs them has an error, and no panic.
func TestWithoutScope(t *testing.T) {
	ev := anyStep(false)
	ev.Vars = map[string]VariableShape{"a": {Type: cty.String}}
	for name, c := range map[string]*Compiled{
		"var": reading(t, "var.a", nil), "step": reading(t, "step.a.status", []int{0}),
		"each": {Syntax: parsed(t, "each.key"), Metered: parsed(t, "each.key"), Each: true},
		"self": {Syntax: parsed(t, "self.key"), Metered: parsed(t, "self.key"), Self: true}, "failure": {Syntax: parsed(t, "failure.code"), Metered: parsed(t, "failure.code"), Failure: true},
	} {
		if _, err := ev.Run(c, nil, 0); err == nil {
			t.Errorf("%s has a value without a scope", name)
		}
		if _, err := ev.Run(c, &Scope{}, 0); err == nil && name != "var" {
			t.Errorf("%s has a value in an empty scope", name)
		}
	}
}

// Before a run, each reference has its type and no value.
func TestCheckWorldKnowsTypesOnly(t *testing.T) {
	w := &CheckWorld{Each: cty.DynamicVal, Self: cty.DynamicVal}
	for root, want := range map[string]string{"failure": "code message step", "run": "id key started_at status tick workflow"} {
		v, err := w.root(root)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(value.AttributeNames(v.Type()), " "); got != want {
			t.Errorf("%s has %s, want %s", root, got, want)
		}
		for name, attr := range v.AsValueMap() {
			nullable := root == "run" && (name == "key" || name == "tick")
			if attr.IsKnown() || attr.Type() != cty.String || attr.Range().DefinitelyNotNull() == nullable {
				t.Errorf("%s.%s is %#v", root, name, attr)
			}
		}
	}
}

// An input that uses self.input of its own step would evaluate itself without end, and the process would
// die. The evaluation returns an error instead.
func TestOwnInputIsAnError(t *testing.T) {
	ev := anyStep(false)
	c := &Compiled{Syntax: parsed(t, "self.input"), Metered: metered.Of(parsed(t, "self.input")), Self: true, SelfInput: true}
	calls := 0
	ev.Steps[0].Given = func(s *Scope) (value.Value, error) {
		if calls++; calls > 3 {
			t.Fatal("the input is evaluated again and again")
		}
		v, err := ev.Run(c, s, 0)
		if err != nil {
			return value.Value{}, err
		}
		return value.Encode(v, false)
	}
	s := &Scope{Self: &Self{}}
	if got := ev.shown(t, c, s); !strings.Contains(got, ErrOwnInput.Error()) {
		t.Errorf("got %s, want the error %q", got, ErrOwnInput)
	}
	calls = 0
	s.Self.Given = document(`{}`)
	if got := ev.shown(t, c, s); got != "{}" || calls > 0 {
		t.Errorf("got %s after %d evaluations, want the stored arguments", got, calls)
	}
}
