package dsl

import (
	"fmt"
	"strings"
	"testing"
)

// hotText is a workflow of what steps usually write: constants, references,
// templates, conditions.
const hotText = `
workflow "hot" {
  deadline = "1h"
  variable "value" { type = string }
  variable "limit" {
    type    = number
    default = 3
  }
  variable "items" {
    type    = map(number)
    default = { a = 1 }
  }
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    input { value = var.value }
  }
  step "b" {
    action          = agent.mock.call
    compensation    = "none"
    when            = step.a.output.value != ""
    idempotency_key = "${run.id}-b"
    timeout         = "30s"
    input { value = step.a.output.value }
  }
  step "c" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "${var.value}-${step.b.status}-${var.limit}" }
  }
  step "d" {
    action       = agent.mock.call
    compensation = "none"
    input { value = { id = step.c.output.value, list = [var.value, 1] } }
  }
  step "e" {
    action       = agent.http.post
    compensation = "none"
    depends_on   = [step.d]
    input {
      url     = "http://localhost/"
      headers = { Authorization = "Bearer ${secret("env:TOKEN")}", Plain = "x" }
    }
  }
  step "f" {
    action       = agent.mock.call
    compensation = "none"
    for_each     = var.items
    input { value = each.value }
  }
  step "charge" {
    action       = agent.payment.charge
    compensation = "none"
    input { amount = var.limit }
  }
  output "value" { value = step.c.output.value }
}`

// hotScope is the scope of a run whose steps answered a string of 100 bytes.
func hotScope(t testing.TB) (*Workflow, *Scope) {
	t.Helper()
	text := strings.Repeat("x", 100)
	wf := linked(t, hotText).Workflow("hot")
	out := jsonValue(fmt.Sprintf(`{"value":%q}`, text))
	return wf, &Scope{
		Run: RunInfo{ID: "r-1", Workflow: "hot"}, Vars: bindAll(t, wf, "value", text), Memo: &Memo{},
		Step: func(int) StepResult {
			return StepResult{Final: true, One: InstanceResult{Status: "succeeded", Attempts: 1, Output: out}}
		},
	}
}

// fresh gives each evaluation a memo of its own, as the runs of short
// workflows have: each reads a result once.
func fresh(s *Scope) *Scope {
	s.Memo = &Memo{}
	return s
}

func BenchmarkReply(b *testing.B) {
	wf, _ := hotScope(b)
	large := strings.Repeat(`{"id":12345,"name":"a name","tags":["a","b"],"price":19.99},`, 200)
	for _, c := range []struct{ name, reply string }{
		{"any", fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 100))},
		{"typed", `{"card":null,"charge_id":"ch_1234567890"}`},
		{"large", `{"value":[` + strings.TrimSuffix(large, ",") + `]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			output := wf.Steps[0].Do.Output
			if c.name == "typed" {
				output = stepNamed(b, wf, "charge").Do.Output
			}
			raw := []byte(c.reply)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := output(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHot(b *testing.B) {
	wf, scope := hotScope(b)
	input := func(i int) func(*Scope) error {
		return func(s *Scope) error { _, err := wf.Steps[i].Input(s); return err }
	}
	for _, c := range []struct {
		name string
		f    func(*Scope) error
	}{
		{"input/var", input(0)},
		{"input/step", input(1)},
		{"input/template", input(2)},
		{"input/object", input(3)},
		{"input/secret", input(4)},
		{"when", func(s *Scope) error { _, err := wf.Steps[1].When(s); return err }},
		{"idempotency_key", func(s *Scope) error { _, err := wf.Steps[1].IdempotencyKey(s); return err }},
		{"settings", func(s *Scope) error { _, err := wf.Steps[1].Settings(s); return err }},
		{"output", func(s *Scope) error { _, err := wf.Outputs[0].Value(s); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := *scope
				s.Vars = NewValue(s.Vars.JSON(), s.Vars.Sensitive(), s.Vars.Secrets())
				if err := c.f(fresh(&s)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkForEach evaluates the for_each of a step with 10,000 instances.
func BenchmarkForEach(b *testing.B) {
	wf, scope := wideScope(b, 10000)
	b.ReportAllocs()
	for b.Loop() {
		s := *scope
		s.Vars = NewValue(s.Vars.JSON(), nil, nil)
		if _, err := wf.Steps[0].ForEach(fresh(&s)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWide evaluates one instance beside few and beside many.
func BenchmarkWide(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			wf, scope := wideScope(b, n)
			scope.Each = &EachItem{Key: "k000007", Value: jsonValue("7")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wf.Steps[1].Input(scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestHotAllocations gates what evaluations cost that every step makes: an
// input costs its bytes and its Value, what is known at link time nothing.
func TestHotAllocations(t *testing.T) {
	wf, scope := hotScope(t)
	input := func(i int) func() error {
		return func() error { _, err := wf.Steps[i].Input(scope); return err }
	}
	for _, tt := range []struct {
		name string
		most float64
		f    func() error
	}{
		{"a variable", 2, input(0)},
		{"an output", 2, input(1)},
		{"a template", 3, input(2)}, // and its growing
		{"an object", 4, input(3)},
		{"constants and secrets", 0, input(4)},
		{"when", 4, func() error { _, err := wf.Steps[1].When(scope); return err }},
		{"idempotency_key", 4, func() error { _, err := wf.Steps[1].IdempotencyKey(scope); return err }},
		{"settings", 0, func() error { _, err := wf.Steps[1].Settings(scope); return err }},
		{"a workflow's output", 2, func() error { _, err := wf.Outputs[0].Value(scope); return err }},
	} {
		got := testing.AllocsPerRun(200, func() {
			if err := tt.f(); err != nil {
				t.Fatal(err)
			}
		})
		if got > tt.most {
			t.Errorf("%s: %.0f allocations, want at most %.0f", tt.name, got, tt.most)
		}
	}
}

// TestForEachIsShared: the values of many instances share what they are cut
// from; each costs its key.
func TestForEachIsShared(t *testing.T) {
	const n = 1000
	wf, scope := wideScope(t, n)
	got := testing.AllocsPerRun(20, func() {
		if each, err := wf.Steps[0].ForEach(scope); err != nil || len(each.Keys) != n || string(each.Values[n-1].JSON()) != "999" {
			t.Fatal(len(each.Keys), err)
		}
	})
	if got > 1.1*n {
		t.Errorf("for_each over %d elements costs %.0f allocations", n, got)
	}
}
