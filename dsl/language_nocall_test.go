package dsl_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// free is a step that calls no agent.
func free(name, body string) string { return "step \"" + name + "\" {\n" + body + "\n}\n" }

// TestStepsWithoutACall: a step does exactly one thing, and one without a call says nothing
// about a call.
func TestStepsWithoutACall(t *testing.T) {
	call := step("s", "")
	about := func(name string) finding {
		return fails("Argument of a call", name, name+" says something about the call of an action, and this step calls none. Remove it.")
	}
	checkRules(t, []rule{
		{"a value", call + free("v", "value = step.s.output.value"), nil},
		{"a timer", call + free("t", "timer { duration = \"30m\" }"), nil},
		{"a timer until", call + free("t", "timer { until = run.started_at }"), nil},
		{"a wait", call + free("w", "wait { signal = \"go\" }"), nil},
		{"a wait with everything", call + free("w", "deadline = \"48h\"\nwait {\n  signal     = [\"yes\", \"no\"]\n  payload    = object({ by = string, note = optional(string, \"none\") })\n  on_timeout = \"continue\"\n}"), nil},
		{"two things", call + free("v", "value = 1\nwait { signal = \"go\" }"),
			finds(fails("Step does two things", "wait", "A step does one thing, and this one has value already. Write a second step for wait."))},
		{"an action and a timer", step("s", "timer { duration = \"1s\" }"),
			finds(fails("Step does two things", "timer", "A step does one thing, and this one has action already. Write a second step for timer."))},
		{"an action and a child run", step("s", "workflow = workflow.w"),
			finds(fails("Step does two things", "workflow.w", "A step does one thing, and this one has action already. Write a second step for workflow."))},
		{"nothing", call + free("n", ""),
			finds(fails("Missing required argument", `step "n"`, "A step needs an action: action = agent.NAME.ACTION. A step that starts a child run has workflow = workflow.NAME. A step without a call has value = ..., timer { ... } or wait { ... }."))},
		{"an input", call + free("v", "value = 1\ninput { a = 1 }"), finds(about("input"))},
		{"compensation", call + free("v", "value = 1\ncompensation = \"none\""), finds(fails("Argument of a call", `"none"`, "compensation says something about the call of an action, and this step calls none. Remove it."))},
		{"a pivot", call + free("t", "pivot = true\ntimer { duration = \"1s\" }"), finds(fails("Argument of a call", "true", "pivot says something about the call of an action, and this step calls none. Remove it."))},
		{"a timer without a time", call + free("t", "timer {}"),
			finds(fails("Missing required argument", "timer", `A timer needs duration = "24h" or until = "2030-01-31T18:00:00Z".`))},
		{"a timer with two times", call + free("t", "timer {\n  duration = \"1s\"\n  until = run.started_at\n}"),
			finds(fails("Timer with two times", "run.started_at", "A timer has either duration, counted from when the step starts, or until, a point in time."))},
		{"a duration that is none", call + free("t", "timer { duration = \"soon\" }"),
			finds(fails("Invalid value for duration", `"soon"`, `duration: a duration is a string such as "500ms", "90s", "36h" or "2d".`))},
		{"until a duration", call + free("t", "timer { until = \"1h\" }"),
			finds(fails("Invalid value for until", `"1h"`, `until: a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z".`))},
		{"a wait for nothing", call + free("w", "wait { signal = [] }"),
			finds(fails("Invalid value for signal", "[]", "signal: at least one signal must be named."))},
		{"a signal with an odd name", call + free("w", "wait { signal = \"a b\" }"),
			finds(fails("Invalid value for signal", `"a b"`, `signal: "a b" is not the name of a signal: it begins with a letter or _ and holds only letters, digits, _ and -, at most 100 of them.`))},
		{"a signal that is a number", call + free("w", "wait { signal = { a = 1 } }"),
			finds(fails("Invalid value for signal", "{ a = 1 }", "signal: the name of a signal, or a list of names, is required."))},
		{"on_timeout without deadline", call + free("w", "wait {\n  signal = \"go\"\n  on_timeout = \"fail\"\n}"),
			finds(fails("Wait without deadline", `"fail"`, `on_timeout says what happens when the deadline of the step passes, and this step has none. Write deadline = "48h", or remove on_timeout.`))},
		{"another on_timeout", call + free("w", "deadline = \"1h\"\nwait {\n  signal = \"go\"\n  on_timeout = \"contine\"\n}"),
			finds(fails("Invalid value for on_timeout", `"contine"`, `on_timeout is "fail" or "continue". Did you mean "continue"?`))},
		{"output of a value", call + free("v", "value = { a = 1 }") + "output \"o\" { value = step.v.output.b }\n",
			finds(fails("Unsupported attribute", ".b", "It has: a."))},
		{"output of a payload", call + free("w", "wait {\n  signal = \"go\"\n  payload = object({ a = bool })\n}") + "output \"o\" { value = step.w.output.b }\n",
			finds(fails("Unsupported attribute", ".b", "It has: a."))},
		{"an output that may be missing", call + free("w", "deadline = \"1h\"\nwait {\n  signal = \"go\"\n  payload = object({ a = bool })\n  on_timeout = \"continue\"\n}") + "output \"o\" { value = step.w.output.a }\n",
			finds(warns("Output may be null", "step.w.output.a", `Step "w" goes on without a signal when its deadline passes; then its output is null and reading an attribute fails. Use try(step.w.output.a, null), or test step.w.status.`))},
		{"an output behind timed_out", call + free("w", "deadline = \"1h\"\nwait {\n  signal = \"go\"\n  payload = object({ a = bool })\n  on_timeout = \"continue\"\n}") + "output \"o\" { value = step.w.timed_out ? false : step.w.output.a }\n", nil},
		{"what a signal said", call + free("w", "wait { signal = [\"a\", \"b\"] }") + "output \"o\" { value = [step.w.signal, step.w.ended_at] }\n", nil},
		{"a wait after the pivot", step("p", "pivot = true") + free("w", "depends_on = [step.p]\nwait { signal = \"go\" }"),
			finds(fails("Step after the pivot can fail", `step "w"`, `After the pivot "p" nothing is undone. The wait "w" must have a deadline and on_timeout = "continue", or catch { errors = ["*"] }.`))},
		{"a refusal", step("s", "fail_when {\n  condition = self.output.value == 1\n  error_message = \"no\"\n  error_code = \"no_stock\"\n  permanent = true\n}\ncatch { errors = [\"no_stock\"] }"), nil},
		{"a refusal without a message", step("s", "fail_when { condition = true }"),
			finds(fails("Missing required argument", "fail_when", `The argument "error_message" is required, but no definition was found.`))},
		{"a refusal that depends on an expression", step("s", "fail_when {\n  condition = true\n  error_message = \"no\"\n  permanent = self.output.value\n}"),
			finds(fails("Not a literal value", "self.output.value", "permanent must be known when the file is read, so it cannot refer to anything or call functions."))},
	})
}

// TestValueSteps: the output of a value step is the value of its expression, for each
// instance of its own.
func TestValueSteps(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "")+
		free("sum", "value = { n = step.s.output.value + 1, by = run.id }")+
		free("many", "for_each = toset([\"a\", \"b\"])\nvalue = \"${each.key}!\"")+
		"output \"o\" { value = step.sum.output.n * 2 }\n")
	sum := stepOf(t, wf, "sum")
	if sum.Calls() || sum.Does() != "value" || sum.Do != dsl.NoCall || len(sum.After) != 1 {
		t.Errorf("%q, action %v, after %v; want a value step after s", sum.Does(), sum.Do, sum.After)
	}
	scope := &dsl.Scope{Run: dsl.RunInfo{ID: "r-1"}, Step: func(int) dsl.StepResult {
		return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: dsl.NewValue([]byte(`{"value":41}`), nil, nil)}}
	}}
	v, err := sum.Value(scope)
	wantValue(t, v, err, `{"by":"r-1","n":42}`)
	v, err = stepOf(t, wf, "many").Value(&dsl.Scope{Each: &dsl.EachItem{Key: "a"}})
	wantValue(t, v, err, `"a!"`)
	v, err = wf.Outputs[0].Value(&dsl.Scope{Step: func(int) dsl.StepResult {
		return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: dsl.NewValue([]byte(`{"by":"r-1","n":42}`), nil, nil)}}
	}})
	wantValue(t, v, err, "84")
}

// TestSensitiveValueStep: what is sensitive stays so through a value step.
func TestSensitiveValueStep(t *testing.T) {
	const hidden = "variable \"x\" {\n  type = string\n  sensitive = true\n}\n"
	checkRules(t, []rule{
		{"the part that is", hidden + step("s", "") + free("v", "value = { a = var.x, b = 1 }") + "output \"o\" { value = step.v.output.a }\n",
			finds(fails("Output holds a sensitive value", "step.v.output.a", `Output "o" shows a sensitive value. Write sensitive = true, or nonsensitive(...) around what may be shown.`))},
		{"another part", hidden + step("s", "") + free("v", "value = { a = var.x, b = 1 }") + "output \"o\" { value = step.v.output.b }\n", nil},
		{"the whole", hidden + step("s", "") + free("v", "value = var.x") + "output \"o\" { value = step.v.output }\n",
			finds(fails("Output holds a sensitive value", "step.v.output", `Output "o" shows a sensitive value. Write sensitive = true, or nonsensitive(...) around what may be shown.`))},
		{"in the name of a signal", hidden + step("s", "") + free("w", "wait { signal = var.x }"),
			finds(fails("Sensitive value in signal", "var.x", "The name of a signal is stored in clear and shown, so it cannot hold a sensitive value."))},
	})
}

// TestTimers: a duration counts from when the step is ready; until is a point in time.
func TestTimers(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "")+free("d", "timer { duration = \"2d\" }")+free("u", "timer { until = run.started_at }"))
	started := instant(t, "2030-01-31T18:00:00Z")
	scope := &dsl.Scope{Run: dsl.RunInfo{StartedAt: started}}
	if l, err := stepOf(t, wf, "d").Until(scope); err != nil || l != (dsl.Limit{After: 48 * time.Hour}) {
		t.Errorf("duration: %+v, %v; want two days", l, err)
	}
	if l, err := stepOf(t, wf, "u").Until(scope); err != nil || !l.At.Equal(started) || l.After != 0 {
		t.Errorf("until: %+v, %v; want %s", l, err, started)
	}
	if wf.Shortest != 0 {
		t.Errorf("the shortest interval is %s, want 0: the time of u depends on the run", wf.Shortest)
	}
	wf = linkedWorkflow(t, step("s", "")+free("d", "timer { duration = \"100ms\" }"))
	if wf.Shortest != 100*time.Millisecond {
		t.Errorf("the shortest interval is %s, want 100ms", wf.Shortest)
	}
}

// TestWaits: a wait names its signals and converts what they carry.
func TestWaits(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "")+
		free("one", "wait { signal = \"go\" }")+
		free("two", "deadline = \"1h\"\nwait {\n  signal = [\"yes\", \"no\", \"yes\"]\n  payload = object({ by = string, n = optional(number, 3) })\n  on_timeout = \"continue\"\n}")+
		free("open", "wait { signal = \"go-${run.id}\" }"))
	names := func(name string) []string {
		list, err := stepOf(t, wf, name).Wait.Signals(&dsl.Scope{Run: dsl.RunInfo{ID: "r-1"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return list
	}
	for name, want := range map[string]struct{ before, in []string }{
		"one":  {[]string{"go"}, []string{"go"}},
		"two":  {[]string{"no", "yes"}, []string{"no", "yes"}},
		"open": {nil, []string{"go-r-1"}},
	} {
		if got := stepOf(t, wf, name).Wait.Names; !slices.Equal(got, want.before) {
			t.Errorf("%s is known to wait for %v, want %v", name, got, want.before)
		}
		if got := names(name); !slices.Equal(got, want.in) {
			t.Errorf("%s waits for %v, want %v", name, got, want.in)
		}
	}
	if _, err := stepOf(t, wf, "open").Wait.Signals(&dsl.Scope{Run: dsl.RunInfo{ID: "a b"}}); err == nil {
		t.Error("a name with a space is taken")
	}
	if one, two := stepOf(t, wf, "one").Wait, stepOf(t, wf, "two").Wait; one.Continue || !two.Continue {
		t.Errorf("continue: %t and %t, want false and true", one.Continue, two.Continue)
	}
	for _, tt := range []struct{ step, payload, want string }{
		{"one", `{"any":[1]}`, `{"any":[1]}`},
		{"one", "", "null"},
		{"two", `{"by":"ann"}`, `{"by":"ann","n":3}`},
		{"two", `{"by":7,"n":"4"}`, `{"by":"7","n":4}`},
		{"two", `{"by":"ann","more":1}`, `{"by":"ann","n":3}`},
		{"two", `{}`, `error: attribute "by" is required`},
		{"two", `"x"`, "error: object required"},
		{"two", "null", "error: the step waits for a payload of type object({by=string,n=number}), and the signal carries none"},
		{"two", "{", "error: "},
	} {
		v, err := stepOf(t, wf, tt.step).Wait.Payload([]byte(tt.payload))
		if part, bad := strings.CutPrefix(tt.want, "error: "); bad {
			if err == nil {
				t.Errorf("%s takes %s as %s, want an error", tt.step, tt.payload, v.JSON())
				continue
			}
			wantError(t, err, part)
			continue
		}
		wantValue(t, v, err, tt.want)
	}
}

// TestRefusals: fail_when looks at the output, and its code is "refused" unless it says
// another.
func TestRefusals(t *testing.T) {
	wf := linkedWorkflow(t, step("s", "fail_when {\n  condition = self.output.value == 1\n  error_message = \"value ${self.output.value}\"\n}\nfail_when {\n  condition = false\n  error_message = \"x\"\n  error_code = \"no_stock\"\n  permanent = true\n}"))
	list := stepOf(t, wf, "s").FailWhen
	if len(list) != 2 || list[0].Permanent || !list[1].Permanent {
		t.Fatalf("%d refusals, want two, the second permanent", len(list))
	}
	scope := &dsl.Scope{Self: &dsl.Self{Output: dsl.NewValue([]byte(`{"value":1}`), nil, nil), OutputKnown: true}}
	if hit, err := list[0].Check(scope); !hit || err != nil {
		t.Errorf("the first holds: %t, %v", hit, err)
	}
	if text, err := list[0].Message(scope); text != "value 1" || err != nil {
		t.Errorf("message %q, %v", text, err)
	}
	for i, want := range []string{"refused", "no_stock"} {
		if code, err := list[i].Code(scope); code != want || err != nil {
			t.Errorf("code %q, %v; want %q", code, err, want)
		}
	}
}

// TestCatchOfRefusals: a fail_when block without error_code fails with "refused", and a catch may name
// this code; without such a block the code is unknown.
func TestCatchOfRefusals(t *testing.T) {
	for block, want := range map[string]int{
		"": 1,
		"fail_when {\n condition = false\n error_message = \"no\"\n}":                         0,
		"fail_when {\n condition = false\n error_message = \"no\"\n error_code = \"busy\"\n}": 1,
	} {
		_, diags := check(files{"main.hcl": "workflow \"w\" {\ndeadline = \"1h\"\n" +
			step("s", block+"\ncatch { errors = [\"refused\"] }\n") + "}\n"})
		if got := about(diags, "Unknown error code"); len(got) != want {
			t.Errorf("%q: %v, want %d warnings", block, diags, want)
		}
	}
}
