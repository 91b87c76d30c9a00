package dsl_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// loopScope is the scope of an expression in a loop, after an iteration with this output.
func loopScope(output, previous, collected string) *dsl.Scope {
	s := scopeOf(document(`{}`))
	s.Self = &dsl.Self{Output: document(output), OutputKnown: true, Input: document(`{"value":"in"}`), Previous: document(previous)}
	if collected != "" {
		s.Self.Collected = func() dsl.Value { return document(collected) }
	}
	return s
}

// What the expressions of a loop can read, in a run.
func TestRepeatBlock(t *testing.T) {
	wf := linkedWorkflow(t, `step "s" {
  action = agent.echo.look
  when   = length(self.collected) < 3
  input { value = [self.previous, length(self.collected)] }
  repeat {
    until          = self.output.value == "end" || self.input.value == "stop" || length(self.collected) == 2
    interval       = self.previous == null ? "1s" : "${length(self.collected)}m"
    max_iterations = 7
    collect        = { out = self.output.value, before = try(self.previous.value, "none") }
  }
  postcondition {
    condition     = self.output.value != try(self.previous.value, "")
    error_message = "same as before: ${length(self.collected)}"
  }
}
step "next" {
  value = step.s.collected[0].out
}`)
	s := stepOf(t, wf, "s")
	r := s.Repeat
	if r == nil || s.Repeat.Until == nil {
		t.Fatal("the step has no loop")
	}
	if n := settingsOf(t, s, scopeOf(document(`{}`))).MaxIterations; n != 7 {
		t.Errorf("max_iterations is %d, want 7", n)
	}
	for _, c := range []struct {
		output, previous, collected string
		over                        bool
		pause                       time.Duration
		value                       string
		holds                       bool
	}{
		{`{"value":"a"}`, `null`, `[]`, false, time.Second, `{"before":"none","out":"a"}`, true},
		{`{"value":"b"}`, `{"value":"a"}`, `[1]`, false, time.Minute, `{"before":"a","out":"b"}`, true},
		{`{"value":"b"}`, `{"value":"b"}`, `[1,2]`, true, 2 * time.Minute, `{"before":"b","out":"b"}`, false},
		{`{"value":"end"}`, `null`, ``, true, time.Second, `{"before":"none","out":"end"}`, true},
	} {
		sc := loopScope(c.output, c.previous, c.collected)
		if over, err := r.Until(sc); err != nil || over != c.over {
			t.Errorf("%+v: until is %v (%v)", c, over, err)
		}
		if pause, err := r.Interval(sc); err != nil || pause != c.pause {
			t.Errorf("%+v: the interval is %v (%v)", c, pause, err)
		}
		v, err := r.Collect(sc)
		wantValue(t, v, err, c.value)
		if holds, err := s.Post[0].Check(sc); err != nil || holds != c.holds {
			t.Errorf("%+v: the postcondition is %v (%v)", c, holds, err)
		}
	}
	before := scopeOf(document(`{}`)) // of `when` and `input`: only what the loop knows before an iteration
	before.Self = &dsl.Self{Previous: document(`{"value":"a"}`), Collected: func() dsl.Value { return document(`["a","b"]`) }}
	v, err := s.Input(before)
	wantValue(t, v, err, `{"value":[{"value":"a"},2]}`)
	if yes, err := s.When(before); err != nil || !yes {
		t.Errorf("when is %v (%v) after 2 of 3 values", yes, err)
	}
	one := succeeded(`{"value":"b"}`)
	one.One.Collected = document(`[{"out":"first"},{"out":"second"}]`)
	after := scopeOf(document(`{}`))
	after.Step = func(int) dsl.StepResult { return one }
	v, err = stepOf(t, wf, "next").Value(after)
	wantValue(t, v, err, `"first"`)
}

// What is sensitive stays so in self.previous and in what is collected.
func TestRepeatKeepsMarks(t *testing.T) {
	wf := linkedWorkflow(t, `step "s" {
  action       = agent.shop.reserve
  compensation = "none"
  input { sku = "x" }
  repeat {
    max_iterations = 2
    collect        = self.output.token
  }
}
step "shown" {
  value = step.s.collected
}`)
	sc := loopScope(`{"reservation_id":"r","token":"t"}`, `null`, `[]`)
	sc.Self.Output = dsl.NewValue([]byte(`{"reservation_id":"r","token":"t"}`), []string{"/token"}, nil)
	v, err := stepOf(t, wf, "s").Repeat.Collect(sc)
	wantValue(t, v, err, `"t"`)
	if len(v.Sensitive()) != 1 {
		t.Errorf("the collected token is not sensitive: %q", v.Sensitive())
	}
	one := succeeded(`{}`)
	one.One.Collected = dsl.NewValue([]byte(`["t"]`), []string{"/0"}, nil)
	after := scopeOf(document(`{}`))
	after.Step = func(int) dsl.StepResult { return one }
	if v, err = stepOf(t, wf, "shown").Value(after); err != nil || len(v.Sensitive()) != 1 {
		t.Errorf("step.s.collected has the sensitive parts %q (%v), want one", v.Sensitive(), err)
	}
}

// The undo of a loop needs the output also if it reads only self.collected, and it is never by key.
func TestUndoOfALoop(t *testing.T) {
	wf := linkedWorkflow(t, `step "s" {
  action = agent.echo.take
  repeat {
    max_iterations = 2
    collect        = self.output.value
  }
  compensate {
    action = agent.shop.empty
  }
}
step "t" {
  action = agent.echo.take
  repeat {
    max_iterations = 2
    collect        = self.output.value
  }
  compensate {
    action = agent.echo.call
    input { value = self.collected }
  }
}`)
	s, u := stepOf(t, wf, "s"), stepOf(t, wf, "t")
	if s.Undo.Do.ByKey || s.Undo.UsesSelf {
		t.Errorf("the undo of s is by key: %v, and uses the output: %v", s.Undo.Do.ByKey, s.Undo.UsesSelf)
	}
	if !u.Undo.UsesSelf {
		t.Error("the undo of t reads self.collected, and does not use the output")
	}
	sc := loopScope(`{"value":1}`, `null`, `[1,2]`)
	sc.Failure = &dsl.Failure{}
	v, err := u.Undo.Input(sc)
	wantValue(t, v, err, `{"value":[1,2]}`)
}

// With for_each, a condition that reads self.* is evaluated for each instance.
func TestWhenOfALoopWithForEach(t *testing.T) {
	wf := linkedWorkflow(t, `step "s" {
  action   = agent.echo.look
  for_each = toset(["k"])
  when     = self.previous == null
  repeat { max_iterations = 2 }
}`)
	if s := stepOf(t, wf, "s"); s.When != nil || s.WhenEach == nil {
		t.Error("the condition is evaluated once for all instances")
	}
}

func TestRulesOfRepeat(t *testing.T) {
	checkRules(t, []rule{
		{"no end", step("s", "repeat { interval = \"1s\" }"), finds(
			fails("Loop without end", "repeat", "A repeat block needs until = CONDITION, or max_iterations = NUMBER, or both."))},
		{"until is no condition", step("s", "repeat { until = [1] }"), finds(fails("Invalid value for until", "[1]", "bool required, but have tuple"))},
		{"a wrong output", "step \"s\" {\n action = agent.shop.stock\n input { sku = \"x\" }\n repeat { until = self.output.count > 1 }\n}", finds(
			fails("Unsupported output attribute", ".count", "has no output \"count\""))},
		{"previous in another step", step("s", "repeat { max_iterations = 2 }") + step("t", "input { value = self.previous }"), finds(
			fails("Reference not available here", "self.previous", "self.previous can be used only in a step with a repeat block"))},
		{"a sensitive value in a key", step("s", "idempotency_key = \"k\"\nrepeat { max_iterations = 2 }"), finds(
			fails("Key stays the same", "\"k\"", "Remove it: the engine gives each iteration a key of its own."))},
		{"the only step needs an undo, too", "step \"s\" {\n action = agent.echo.once\n repeat { max_iterations = 2 }\n}", finds(
			fails("No undo for all iterations", "repeat", "echo.once changes things in every iteration"))},
		{"a step after the pivot needs none", step("p", "pivot = true") + "step \"s\" {\n action = agent.echo.call\n depends_on = [step.p]\n retry { max_attempts = \"unbounded\" }\n repeat { max_iterations = 2 }\n}", nil},
	})
}
