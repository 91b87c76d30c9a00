package dsl

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// wideText is a workflow whose second step reads, for each of its instances,
// the one of the first step with the same key.
const wideText = `
workflow "wide" {
  deadline = "1h"
  variable "items" { type = map(number) }
  step "a" {
    for_each = var.items
    action   = agent.inventory.reserve
    input { sku = each.key }
  }
  step "b" {
    for_each     = var.items
    action       = agent.mock.call
    compensation = "none"
    input { value = "${step.a[each.key].output.reservation_id}-${each.value}" }
  }
}`

func wideScope(t testing.TB, n int) (*Workflow, *Scope) {
	t.Helper()
	wf := linked(t, wideText).Workflow("wide")
	var items strings.Builder
	insts := make([]InstanceResult, n)
	for i := range n {
		key := fmt.Sprintf("k%06d", i)
		fmt.Fprintf(&items, "%s = %d,", key, i)
		insts[i] = InstanceResult{Key: key, Status: "succeeded", Output: jsonValue(fmt.Sprintf(`{"reservation_id":"r-%d"}`, i))}
	}
	scope := &Scope{
		Vars: bindAll(t, wf, "items", "{"+items.String()+"}"), Memo: &Memo{},
		Step: func(int) StepResult { return StepResult{Each: true, Final: true, Instances: insts} },
	}
	return wf, scope
}

// TestWideStepIsLinear: an instance that reads one of 20,000 others does not
// pay for all of them.
func TestWideStepIsLinear(t *testing.T) {
	cost := func(n int) float64 {
		wf, scope := wideScope(t, n)
		asked := 0
		inner := scope.Step
		scope.Step = func(i int) StepResult { asked++; return inner(i) }
		i := 0
		allocs := testing.AllocsPerRun(500, func() {
			scope.Each = &EachItem{Key: fmt.Sprintf("k%06d", i), Value: jsonValue(fmt.Sprint(i))}
			in, err := wf.Steps[1].Input(scope)
			if want := fmt.Sprintf(`{"value":"r-%d-%d"}`, i, i); err != nil || string(in.JSON()) != want {
				t.Fatalf("input %s, %v; want %s", in.JSON(), err, want)
			}
			i++
		})
		if asked != 1 {
			t.Errorf("the result of the step was asked for %d times", asked)
		}
		return allocs
	}
	if small, large := cost(1000), cost(20000); large > 1.5*small {
		t.Errorf("an evaluation beside 1000 instances allocates %.0f times, beside 20000 %.0f times", small, large)
	}
}

func BenchmarkParse(b *testing.B) {
	src := fstest.MapFS{"order.hcl": &fstest.MapFile{Data: []byte(orderText(b))}}
	for b.Loop() {
		if _, diags := Parse(src, ParseOptions{}); diags.HasErrors() {
			b.Fatal(diags.Err())
		}
	}
}

func BenchmarkLink(b *testing.B) {
	m, diags := Parse(fstest.MapFS{"order.hcl": &fstest.MapFile{Data: []byte(orderText(b))}}, ParseOptions{})
	if diags.HasErrors() {
		b.Fatal(diags.Err())
	}
	agents := usedAgents(m)
	for b.Loop() {
		if def, diags := Link(m, agents); def == nil {
			b.Fatal(diags.Err())
		}
	}
}

func BenchmarkInput(b *testing.B) {
	wf, scope := wideScope(b, 10000)
	scope.Each = &EachItem{Key: "k000007", Value: jsonValue("7")}
	for b.Loop() {
		if _, err := wf.Steps[1].Input(scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSettings(b *testing.B) {
	s := linked(b, orderText(b)).Workflow("order").Steps[1]
	for b.Loop() {
		if _, err := s.Settings(nil); err != nil {
			b.Fatal(err)
		}
	}
}
