package dsl_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// lineWorkflow is a workflow whose expressions are evaluated line by line.
func lineWorkflow(t *testing.T) *dsl.Workflow {
	t.Helper()
	return linkedWorkflow(t, `
  variable "n" { default = 3 }
  variable "who" {
    type    = object({ name = string, at = object({ city = string }) })
    default = { name = "ann", at = { city = "rom" } }
  }
  variable "pin" {
    type      = string
    sensitive = true
  }
  locals {
    twice  = var.n * 2
    region = env("REGION")
    paid   = step.pay.output.charge_id
    label  = "${run.id}/${var.n}"
    long   = local.paid
  }
  step "pay" {
    action       = agent.shop.charge
    compensation = "none"
    input { amount = 1 }
  }
  step "ship" {
    for_each     = toset(["rom", "oslo"])
    action       = agent.shop.ship
    compensation = "none"
    input { to = each.key }
  }
  group "pack" {
    step "box" { value = { size = 1 } }
    output "size" { value = step.box.output.size }
  }
  group "send" {
    for_each = toset(["rom", "oslo"])
    locals { to = each.key }
    step "parcel" { value = "${local.to} ${var.n}" }
    output "name" { value = step.parcel.output }
  }`)
}

// lineScope is a scope without a run. In a run it has the results of the steps, too.
func lineScope(t *testing.T, wf *dsl.Workflow, inRun bool) *dsl.Scope {
	t.Helper()
	vars, diags := wf.Bind([]dsl.Assignment{{Name: "pin", Text: "hunter22", Source: "--var"}})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	s := &dsl.Scope{Vars: vars}
	if !inRun {
		return s
	}
	at := time.Date(2026, 3, 14, 9, 30, 0, 0, time.UTC)
	s.Run = dsl.RunInfo{ID: "r-1", Workflow: "w", Key: "k-1", StartedAt: at}
	s.Step = func(i int) dsl.StepResult {
		if wf.Steps[i].Name == "pay" {
			return dsl.StepResult{One: dsl.InstanceResult{
				Status: "succeeded", Attempts: 2, StartedAt: at,
				Output: dsl.NewValue([]byte(`{"card":"4111222233334444","charge_id":"c-7"}`), []string{"/card"}, nil),
			}}
		}
		if wf.Steps[i].Name == "pack" {
			return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: dsl.NewValue([]byte(`{"size":1}`), nil, nil)}}
		}
		return dsl.StepResult{Each: true, Instances: []dsl.InstanceResult{
			{Key: "oslo", Status: "running"},
			{Key: "rom", Status: "failed", ErrorCode: "no_carrier", ErrorText: "none", ErrorData: dsl.NewValue([]byte(`{"retry":false}`), nil, nil)},
		}}
	}
	return s
}

func TestLinesAreEvaluated(t *testing.T) {
	wf := lineWorkflow(t)
	outside, inRun := lineScope(t, wf, false), lineScope(t, wf, true)
	for _, tt := range []struct {
		line, want string // JSON
		needsRun   bool
	}{
		{"1 + var.n", `4`, false},
		{`upper("a${var.who.at.city}")`, `"AROM"`, false},
		{"local.twice", `6`, false},
		{"local.region", `"eu"`, false},
		{`env("REGION")`, `"eu"`, false},
		{"[for x in range(3) : x * var.n]", `[0,3,6]`, false},
		{"toset([2, 1])", `[1,2]`, false},
		{"null", `null`, false},
		{"1e400", `1` + strings.Repeat("0", 400), false},
		{"step.pay.output.charge_id", `"c-7"`, true},
		{"step.pay.attempts", `2`, true},
		{"group.pack.output.size", `1`, true},
		{"local.paid", `"c-7"`, true},
		{"local.long", `"c-7"`, true},
		{"local.label", `"r-1/3"`, true},
		{"run.key", `"k-1"`, true},
		{"run.started_at", `"2026-03-14T09:30:00Z"`, true},
		{`step.ship["rom"].error.data.retry`, `false`, true},
		{"[for k, s in step.ship : s.status]", `["running","failed"]`, true},
	} {
		got, diags := wf.Evaluate(tt.line, inRun)
		if diags.HasErrors() || string(got.JSON()) != tt.want {
			t.Errorf("%s in a run: %s, %v, want %s", tt.line, got.JSON(), diags.Err(), tt.want)
		}
		got, diags = wf.Evaluate(tt.line, outside)
		if !tt.needsRun && (diags.HasErrors() || string(got.JSON()) != tt.want) {
			t.Errorf("%s: %s, %v, want %s", tt.line, got.JSON(), diags.Err(), tt.want)
		}
		if tt.needsRun && (len(diags) == 0 || diags[0].Summary != "No run here" || !strings.Contains(diags[0].Detail, "--run")) {
			t.Errorf("%s without a run: %v, want that it needs --run", tt.line, diags)
		}
	}
}

// What is sensitive stays so, in values and in the texts of errors.
func TestLinesKeepSensitiveValues(t *testing.T) {
	wf := lineWorkflow(t)
	s := lineScope(t, wf, true)
	for line, want := range map[string][]string{
		"var.pin":                {""},
		"{ a = 1, b = var.pin }": {"/b"},
		`"x-${var.pin}"`:         {""},
		"step.pay.output.card":   {""},
		"step.pay.output":        {"/card"},
		"length(var.pin)":        {""},
		"step.pay.status":        nil,
		"nonsensitive(var.n)":    nil,
	} {
		if got, diags := wf.Evaluate(line, s); diags.HasErrors() || !slices.Equal(got.Sensitive(), want) {
			t.Errorf("%s: sensitive are %q, %v, want %q", line, got.Sensitive(), diags.Err(), want)
		}
	}
	for _, line := range []string{
		"tonumber(var.pin)", "var.pin + 1", "{ a = 1 }[var.pin]", "tonumber(step.pay.output.card).x", "regex(\"x\", var.pin)",
		"{ (var.pin) = 1, (var.pin) = 2 }.nope", `timeadd(var.pin, "1h")`, `parseint(var.pin, 10)`,
	} {
		_, diags := wf.Evaluate(line, s)
		text := diags.Err().Error()
		if !diags.HasErrors() || strings.Contains(text, "hunter22") || strings.Contains(text, "4111222233334444") {
			t.Errorf("%s: %s", line, text)
		}
	}
}

func TestLinesAreRefused(t *testing.T) {
	wf := lineWorkflow(t)
	s := lineScope(t, wf, true)
	for _, tt := range []struct{ line, summary, detail string }{
		{"1 +", "Missing expression", ""},
		{"1 2", "Extra characters after expression", ""},
		{"", "Missing expression", ""},
		{strings.Repeat("(", 300) + "1", "Nesting too deep", ""},
		{strings.Repeat("1+", 2000) + "1", "Expression too long", ""},
		{"var.m", "Reference to undeclared variable", "no variable named \"m\""},
		{"local.twise", "Reference to undeclared local value", `Did you mean "twice"?`},
		{"step.bay.status", "Reference to undeclared step", `Did you mean "pay"?`},
		{"step.pay.outputs", "Unsupported attribute", `Did you mean "output"?`},
		{"step.pay.output.charg_id", "Unsupported attribute", `Did you mean "charge_id"?`},
		{"pay", "Unknown reference", `Did you mean "step.pay"?`},
		{"uper(1)", "Call to unknown function", `Did you mean "upper"?`},
		{"timestamp()", "Call to unknown function", "run.started_at"},
		{"each.key", "Reference not available here", ""},
		{"self.output", "Reference not available here", ""},
		{`secret("env:X")`, "secret() not allowed here", ""},
		{`env("PORT")`, "Not read", "read once"},
		{`file("/etc/passwd")`, "Not read", "read once"},
		{`file(var.who.name)`, "Not read", ""},
		{"1 / 0", "Cannot show the value", "must be finite"},
		{"[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]", "Expression too expensive", ""},
	} {
		_, diags := wf.Evaluate(tt.line, s)
		if len(diags) == 0 || diags[0].Summary != tt.summary || !strings.Contains(diags[0].Detail, tt.detail) {
			t.Errorf("%.60s: %.300v, want %s: %s", tt.line, diags, tt.summary, tt.detail)
			continue
		}
		if at := diags[0].Range; at.File != "<console>" || diags[0].Snippet == nil && tt.line != "" {
			t.Errorf("%.60s: the finding is at %v with the snippet %v", tt.line, at, diags[0].Snippet)
		}
	}
	if got, diags := wf.Evaluate("1", s); diags.HasErrors() || string(got.JSON()) != "1" {
		t.Errorf("after the errors 1 is %s, %v", got.JSON(), diags.Err())
	}
}

// The console of a group's run offers only variables that a line can name. The values that a group takes
// from its surroundings have other names there.
func TestLinesOfGroupsAreCompleted(t *testing.T) {
	wf := stepOf(t, lineWorkflow(t), "send").Child.Workflow
	if _, words := wf.Complete("var.", true); strings.Join(words, " ") != "var.n" {
		t.Errorf("the words %q", words)
	}
}

// The run of a group has only those values around the group that the group uses. For any other value the
// error says so; it names no hidden variable. The lines of one console do not change what the group has.
func TestLinesOfGroups(t *testing.T) {
	wf := stepOf(t, lineWorkflow(t), "send").Child.Workflow
	s := scopeOf(document(`{"n":3,"each.key":"rom"}`))
	s.Step = func(int) dsl.StepResult { return succeeded(`"rom 3"`) }
	for line, want := range map[string]string{
		"local.to": `"rom"`, "each.key": `"rom"`, "var.n + 1": `4`, "step.parcel.output": `"rom 3"`,
	} {
		if got, diags := wf.Evaluate(line, s); diags.HasErrors() || string(got.JSON()) != want {
			t.Errorf("%s: %s, %v, want %s", line, got.JSON(), diags.Err(), want)
		}
	}
	for range 2 {
		for _, line := range []string{"var.pin", "var.who.name", "run.id", "each.value", "step.pay.output", `step.ship["rom"].status`, "group.pack.output.size", "local.twice"} {
			_, diags := wf.Evaluate(line, s)
			if len(diags) != 1 || diags[0].Summary != "No value in the run of a group" || !strings.Contains(diags[0].Detail, `The run of group "send" does not have `+line[:6]) {
				t.Errorf("%s: %v, want that the group does not have it", line, diags)
			}
		}
	}
	if _, words := wf.Complete("run.", true); len(words) > 0 {
		t.Errorf("the words %q, but the group uses no attribute of run", words)
	}
}

func TestLinesAreCompleted(t *testing.T) {
	wf := lineWorkflow(t)
	for _, tt := range []struct {
		text  string
		inRun bool
		from  int
		want  string // the words, or some of them and … for others
	}{
		{"var.", false, 0, "var.n var.pin var.who"},
		{"1 + var.w", false, 4, "var.who"},
		{"upper(\"${var.who.", false, 9, "var.who.at var.who.name"},
		{"var.who.at.", false, 0, "var.who.at.city"},
		{"var.n.", false, 0, ""},
		{"var.nope.", false, 0, ""},
		{"local.t", false, 0, "local.twice"},
		{"sta", false, 0, "startswith("},
		{"gr", true, 0, "group."},
		{"gr", false, 0, ""},
		{"group.", false, 0, ""},
		{"group.", true, 0, `group.pack. group.send["`},
		{"group.pack.e", true, 0, "group.pack.ended_at group.pack.error"},
		{"group.pack.s", true, 0, "group.pack.started_at group.pack.status"},
		{"group.pack.output.", true, 0, "group.pack.output.size"},
		{`group.send["rom"].output.`, true, 0, `group.send["rom"].output.name`},
		{"group.pay.", true, 0, ""},
		{"step.pack.", true, 0, ""},
		{"st", true, 0, "startswith( step. strcontains( strrev("},
		{"st", false, 0, "startswith( strcontains( strrev("},
		{"step.", false, 0, ""},
		{"step.", true, 0, `step.pay. step.ship["`},
		{"step.pay.a", true, 0, "step.pay.attempts"},
		{"step.pay.output.", true, 0, "step.pay.output.card step.pay.output.charge_id"},
		{"step.pay.error.", true, 0, "step.pay.error.code step.pay.error.data step.pay.error.message"},
		{`x == step.ship["a b"].output.b`, true, 5, `step.ship["a b"].output.booking_id`},
		{"step.nope.", true, 0, ""},
		{"run.t", true, 0, "run.tick"},
		{"run.t", false, 0, ""},
		{"1 + ", true, 4, "…"},
		{"", false, 0, "…"},
	} {
		from, words := wf.Complete(tt.text, tt.inRun)
		got := strings.Join(words, " ")
		if tt.want == "…" {
			if !slices.Contains(words, "var.") || !slices.Contains(words, "upper(") || slices.Contains(words, "run.") != tt.inRun {
				t.Errorf("%q: %q lacks roots or functions", tt.text, got)
			}
		} else if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
		if from != tt.from {
			t.Errorf("%q: the words begin at %d, want %d", tt.text, from, tt.from)
		}
	}
}
