package dsl_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// settingCase is one value of one argument: what the settings become, or the error.
type settingCase struct {
	value string // as written
	want  any    // of the field; nil: it is refused
	part  string // of the message
}

// settingRule is an argument of a step, of its retry block, or of its undo.
type settingRule struct {
	name   string
	inside string // "%s" stands for the line
	field  func(*dsl.Settings) any
	cases  []settingCase
}

const (
	noDuration = `a duration is a string such as "500ms", "90s", "36h" or "2d"`
	noDeadline = `a deadline is a duration such as "90s", "36h" or "2d", or a time such as "2030-01-31T18:00:00Z"`
	noInstant  = `a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z"`
)

// durations are the values of an argument that is a duration.
func durations() []settingCase {
	return []settingCase{
		{`"1ns"`, time.Nanosecond, ""}, {`"2us"`, 2 * time.Microsecond, ""}, {`"2µs"`, 2 * time.Microsecond, ""},
		{`"500ms"`, 500 * time.Millisecond, ""}, {`"90s"`, 90 * time.Second, ""}, {`"5m"`, 5 * time.Minute, ""},
		{`"36h"`, 36 * time.Hour, ""}, {`"2d"`, 48 * time.Hour, ""}, {`"1.5h"`, 90 * time.Minute, ""}, {`"1d12h30m"`, 36*time.Hour + 30*time.Minute, ""},
		{`"36600d"`, 36600 * 24 * time.Hour, ""}, {`"36601d"`, nil, "a duration is at most 100 years"},
		{`"0s"`, nil, "a duration is greater than zero"}, {`"0.9ns"`, nil, "a duration is greater than zero"},
		{`"-1s"`, nil, noDuration}, {`""`, nil, noDuration}, {`"5"`, nil, noDuration}, {`5`, nil, noDuration}, {`"s"`, nil, noDuration}, {`"1 s"`, nil, noDuration},
		{`"1S"`, nil, noDuration}, {`"1w"`, nil, noDuration}, {`"1y"`, nil, noDuration}, {`"1s "`, nil, noDuration}, {`"1..5s"`, nil, noDuration}, {`"1e3s"`, nil, noDuration},
		{`true`, nil, noDuration}, {`["1s"]`, nil, noDuration}, {`null`, nil, noDuration},
		{`"2030-01-31T18:00:00Z"`, nil, noDuration},
	}
}

// deadlines are the values of an argument that is a deadline.
func deadlines() []settingCase {
	return []settingCase{
		{`"90s"`, dsl.Limit{After: 90 * time.Second}, ""}, {`"2d"`, dsl.Limit{After: 48 * time.Hour}, ""},
		{`"2030-01-31T18:00:00Z"`, dsl.Limit{At: time.Date(2030, 1, 31, 18, 0, 0, 0, time.UTC)}, ""},
		{`"2030-01-31T18:00:00.5Z"`, dsl.Limit{At: time.Date(2030, 1, 31, 18, 0, 0, 500_000_000, time.UTC)}, ""},
		{`"2030-01-31"`, nil, noDeadline}, {`"soon"`, nil, noDeadline}, {`5`, nil, noDeadline}, {`""`, nil, noDeadline}, {`null`, nil, noDeadline}, {`["1s"]`, nil, noDeadline},
		{`"0s"`, nil, "a duration is greater than zero"}, {`"36601d"`, nil, "a duration is at most 100 years"},
		{`"2030-02-30T18:00:00Z"`, nil, noInstant}, {`"2030-01-31T18:00:00"`, nil, noInstant}, {`"2030-01-31T25:00:00Z"`, nil, noInstant},
	}
}

// codeLists are the values of an argument that is a list of codes.
func codeLists() []settingCase {
	return []settingCase{
		{`["timeout", "aborted"]`, []string{"timeout", "aborted"}, ""}, {`[]`, []string{}, ""}, {`toset(["b", "a"])`, []string{"a", "b"}, ""}, {`[404]`, []string{"404"}, ""},
		{`"timeout"`, nil, "a list of strings is required"}, {`[null]`, nil, "a list of strings is required, one is null"}, {`null`, nil, "a list of strings is required, this is null"},
		{`[["timeout"]]`, nil, "a list of strings is required"}, {`{ a = "timeout" }`, nil, "a list of strings is required"},
	}
}

func retryRules(inside string) []settingRule {
	return []settingRule{
		{"max_attempts", inside, func(s *dsl.Settings) any { return s.Retry.MaxAttempts }, []settingCase{
			{`1`, 1, ""}, {`7`, 7, ""}, {`"7"`, 7, ""}, {`1000000`, 1_000_000, ""}, {`"unbounded"`, dsl.Unbounded, ""},
			{`0`, nil, `a whole number of at least 1 is required (it counts the first try), or "unbounded"`}, {`-1`, nil, "a whole number of at least 1"},
			{`1000001`, nil, "a whole number of at least 1"}, {`1.5`, nil, "a whole number of at least 1"}, {`"Unbounded"`, nil, "a whole number of at least 1"}, {`null`, nil, "a whole number of at least 1"},
		}},
		{"strategy", inside, func(s *dsl.Settings) any { return s.Retry.Strategy }, []settingCase{
			{`"exponential"`, dsl.Exponential, ""}, {`"linear"`, dsl.Linear, ""}, {`"constant"`, dsl.Constant, ""},
			{`"exponentail"`, nil, `it must be one of "constant", "exponential", "linear"; did you mean "exponential"?`}, {`""`, nil, "it must be one of"}, {`1`, nil, "it must be one of"}, {`null`, nil, "a value is required, this is null"},
		}},
		{"initial_interval", inside, func(s *dsl.Settings) any { return s.Retry.InitialInterval }, durations()},
		{"max_interval", inside, func(s *dsl.Settings) any { return s.Retry.MaxInterval }, durations()},
		{"multiplier", inside, func(s *dsl.Settings) any { return s.Retry.Multiplier }, []settingCase{
			{`1`, 1.0, ""}, {`1.5`, 1.5, ""}, {`"2"`, 2.0, ""}, {`1000`, 1000.0, ""},
			{`0.99`, nil, "a number from 1 to 1000 is required"}, {`1000.1`, nil, "a number from 1 to 1000 is required"}, {`"fast"`, nil, "a number is required"}, {`null`, nil, "a number is required, this is null"},
		}},
		{"jitter", inside, func(s *dsl.Settings) any { return s.Retry.Jitter }, []settingCase{
			{`"full"`, true, ""}, {`"none"`, false, ""}, {`"half"`, nil, `it must be one of "full", "none"`}, {`true`, nil, `it must be one of "full", "none"`},
		}},
		{"on", inside, func(s *dsl.Settings) any { return s.Retry.On }, codeLists()},
		{"not_on", inside, func(s *dsl.Settings) any { return s.Retry.NotOn }, codeLists()},
	}
}

func exhaustedRules(inside string) []settingRule {
	return []settingRule{
		{"on_exhausted", inside, func(s *dsl.Settings) any { return s.Retry.OnExhausted }, []settingCase{
			{`"compensate"`, dsl.ExhaustedCompensate, ""}, {`"park"`, dsl.ExhaustedPark, ""}, {`"cool_down"`, dsl.ExhaustedCoolDown, ""},
			{`"cooldown"`, nil, `it must be one of "compensate", "cool_down", "park"; did you mean "cool_down"?`}, {`null`, nil, "a value is required, this is null"},
		}},
		{"cool_down", inside, func(s *dsl.Settings) any { return s.Retry.CoolDown }, durations()},
		{"cool_downs", inside, func(s *dsl.Settings) any { return s.Retry.CoolDowns }, []settingCase{
			{`0`, 0, ""}, {`5`, 5, ""}, {`1000000`, 1_000_000, ""},
			{`-1`, nil, "a whole number from 0 to 1000000 is required"}, {`1000001`, nil, "a whole number from 0 to 1000000 is required"}, {`0.5`, nil, "a whole number from 0 to 1000000 is required"},
		}},
	}
}

func stepRules() []settingRule {
	failures := func(s *dsl.Settings) any {
		if s.MaxFailures == nil {
			return "none"
		}
		return fmt.Sprint(s.MaxFailures(0), s.MaxFailures(1), s.MaxFailures(9), s.MaxFailures(10), s.MaxFailures(1000))
	}
	return []settingRule{
		{"timeout", "%s", func(s *dsl.Settings) any { return s.Timeout }, durations()},
		{"deadline", "%s", func(s *dsl.Settings) any { return s.Deadline }, deadlines()},
		{"heartbeat_timeout", "%s", func(s *dsl.Settings) any { return s.HeartbeatTimeout }, durations()},
		{"priority", "%s", func(s *dsl.Settings) any { return s.Priority }, []settingCase{
			{`0`, 0, ""}, {`100`, 100, ""}, {`"90"`, 90, ""},
			{`-1`, nil, "a whole number from 0 to 100 is required"}, {`101`, nil, "a whole number from 0 to 100 is required"}, {`1.5`, nil, "a whole number from 0 to 100 is required"}, {`"high"`, nil, "a whole number from 0 to 100 is required"}, {`null`, nil, "a whole number from 0 to 100 is required"},
		}},
		{"max_parallel", "for_each = toset([\"a\"])\n%s", func(s *dsl.Settings) any { return s.MaxParallel }, []settingCase{
			{`1`, 1, ""}, {`"8"`, 8, ""}, {`2147483647`, 2147483647, ""},
			{`0`, nil, "a whole number of at least 1 is required"}, {`-1`, nil, "a whole number of at least 1 is required"}, {`1.5`, nil, "a whole number of at least 1 is required"}, {`2147483648`, nil, "a whole number of at least 1 is required"}, {`"all"`, nil, "a whole number of at least 1 is required"}, {`null`, nil, "a whole number of at least 1 is required"},
		}},
		{"max_failures", "for_each = toset([\"a\"])\n%s", failures, []settingCase{
			{`0`, "0 0 0 0 0", ""}, {`2`, "2 2 2 2 2", ""}, {`"2"`, "2 2 2 2 2", ""},
			{`"0%"`, "0 0 0 0 0", ""}, {`"20%"`, "0 0 1 2 200", ""}, {`"99%"`, "0 0 8 9 990", ""}, {`"100%"`, "0 1 9 10 1000", ""}, {`" 50 %"`, "0 0 4 5 500", ""},
			{`"101%"`, nil, `a share goes from "0%" to "100%"`}, {`"-1%"`, nil, "a share goes from"}, {`"1.5%"`, nil, "a share goes from"}, {`"%"`, nil, "a share goes from"},
			{`-1`, nil, `a whole number of at least 0 or a share such as "20%" is required`}, {`1.5`, nil, "a whole number of at least 0"}, {`"few"`, nil, "a whole number of at least 0"}, {`null`, nil, "a value is required, this is null"},
		}},
	}
}

// checkSettings checks the rules of the settings that settings returns. The action is one
// that sends heartbeats and may be repeated.
func checkSettings(t *testing.T, rules []settingRule, file func(lines string) string, settings func(*dsl.Step) func(*dsl.Scope) (*dsl.Settings, error)) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, c := range r.cases {
				literal := strings.Replace(r.inside, "%s", r.name+" = "+c.value, 1)
				def, diags := check(files{"main.hcl": workflow("variable \"v\" {\n type = any\n default = null\n}\n" + file(literal))})
				later := strings.Replace(r.inside, "%s", r.name+" = var.v", 1)
				if strings.HasPrefix(c.value, "toset") {
					later = strings.Replace(r.inside, "%s", r.name+" = toset(var.v)", 1)
				}
				wf := linkedWorkflow(t, "variable \"v\" {\n type = any\n default = null\n}\n"+file(later))
				value := strings.TrimSuffix(strings.TrimPrefix(c.value, "toset("), ")")
				inRun, err := settings(stepOf(t, wf, "s"))(scopeOf(bound(t, wf, "v", value)))
				if c.want == nil {
					got := about(diags, "Invalid value for "+r.name)
					if len(got) != 1 || !strings.Contains(got[0].Detail, r.name+": "+c.part) || marked(got[0]) != c.value {
						t.Errorf("%s: found %v, want %q", c.value, diags.Err(), c.part)
					}
					wantError(t, err, r.name+": "+c.part)
					continue
				}
				if diags.HasErrors() || err != nil {
					t.Errorf("%s: found %v; in a run: %v", c.value, diags.Err(), err)
					continue
				}
				written, err := settings(stepOf(t, def.Workflow("w"), "s"))(nil)
				if err != nil || !reflect.DeepEqual(r.field(written), c.want) || !reflect.DeepEqual(r.field(inRun), c.want) {
					t.Errorf("%s: written %v, %v; in a run %v; want %v", c.value, r.field(written), err, r.field(inRun), c.want)
				}
			}
		})
	}
}

func forward(s *dsl.Step) func(*dsl.Scope) (*dsl.Settings, error) { return s.Settings }

// TestSettingsOfSteps: the limits of a step, at their bounds, written out and evaluated
// in a run.
func TestSettingsOfSteps(t *testing.T) {
	checkSettings(t, stepRules(), func(lines string) string {
		return "step \"s\" {\n action = agent.shop.fill\n" + lines + "\n}\n"
	}, forward)
}

// TestRetryOfSteps: the retry block of a step.
func TestRetryOfSteps(t *testing.T) {
	// The other interval is so far away that it never moves.
	for _, far := range []struct{ name, line string }{{"initial_interval", "max_interval = \"36600d\""}, {"max_interval", "initial_interval = \"1ns\""}, {"", ""}} {
		var rules []settingRule
		for _, r := range append(retryRules("retry {\n%s\n"+far.line+"\n}"), exhaustedRules("retry {\n%s\n}")...) {
			if r.name == far.name || far.name == "" && !strings.HasSuffix(r.name, "_interval") {
				rules = append(rules, r)
			}
		}
		checkSettings(t, rules, func(lines string) string {
			return "step \"s\" {\n action = agent.shop.fill\n" + lines + "\n}\n"
		}, forward)
	}
}

// TestRetryOfWorkflows: the retry block of a workflow holds for its steps.
func TestRetryOfWorkflows(t *testing.T) {
	var rules []settingRule
	for _, r := range append(retryRules("%s"), exhaustedRules("%s")...) {
		if !strings.HasSuffix(r.name, "_interval") {
			rules = append(rules, r)
		}
	}
	checkSettings(t, rules, func(lines string) string {
		return "retry {\n" + lines + "\n}\nstep \"s\" {\n action = agent.shop.fill\n}\n"
	}, forward)
}

// TestSettingsOfUndos: timeout, deadline and retry of a compensate block.
func TestSettingsOfUndos(t *testing.T) {
	undo := func(s *dsl.Step) func(*dsl.Scope) (*dsl.Settings, error) { return s.Undo.Settings }
	rules := []settingRule{
		{"timeout", "%s", func(s *dsl.Settings) any { return s.Timeout }, durations()},
		{"deadline", "%s", func(s *dsl.Settings) any { return s.Deadline }, deadlines()},
	}
	for _, r := range retryRules("retry {\n%s\n}") {
		if !strings.HasSuffix(r.name, "_interval") {
			rules = append(rules, r)
		}
	}
	checkSettings(t, rules, func(lines string) string {
		return "step \"s\" {\n action = agent.shop.fill\n compensate {\n  action = agent.shop.empty\n" + lines + "\n}\n}\n"
	}, undo)
	wf := linkedWorkflow(t, "step \"s\" {\n action = agent.shop.fill\n compensate {\n  action = agent.shop.empty\n }\n}\n")
	got := settingsOf(t, &dsl.Step{Name: "undo", Settings: wf.Steps[0].Undo.Settings}, &dsl.Scope{})
	want := dsl.Retry{MaxAttempts: dsl.Unbounded, Strategy: dsl.Exponential, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Minute, Jitter: true}
	if got.Timeout != 30*time.Second || got.Deadline != (dsl.Limit{}) || !reflect.DeepEqual(got.Retry, want) {
		t.Errorf("an undo that says nothing: %+v", got)
	}
	// An undo does not take the retry block of its workflow.
	wf = linkedWorkflow(t, "retry { max_attempts = 2 }\nstep \"s\" {\n action = agent.shop.fill\n}\n")
	got = settingsOf(t, &dsl.Step{Name: "undo", Settings: wf.Steps[0].Undo.Settings}, &dsl.Scope{})
	if !reflect.DeepEqual(got.Retry, want) {
		t.Errorf("the undo that the action declares: %+v", got.Retry)
	}
}

// TestDefaultSettings: what a step gets that says nothing. Idempotent and read-only
// actions have three attempts, all others one.
func TestDefaultSettings(t *testing.T) {
	wf := linkedWorkflow(t, `
step "idempotent" { action = agent.shop.fill }
step "read_only" {
  action = agent.shop.stock
  input { sku = "a" }
}
step "other" {
  action       = agent.echo.once
  compensation = "none"
}
step "promised" {
  action       = agent.echo.once
  compensation = "none"
  idempotent   = true
}
step "promised_to_read" {
  action    = agent.echo.once
  read_only = true
}
step "revoked" {
  action       = agent.echo.call
  compensation = "none"
  idempotent   = false
}`)
	attempts := map[string]int{"idempotent": 3, "read_only": 3, "other": 1, "promised": 3, "promised_to_read": 3, "revoked": 1}
	for _, s := range wf.Steps {
		got := settingsOf(t, s, &dsl.Scope{})
		want := dsl.Settings{Timeout: 30 * time.Second, Priority: -1, Retry: dsl.Retry{
			MaxAttempts: attempts[s.Name], Strategy: dsl.Exponential, InitialInterval: time.Second, Multiplier: 2,
			MaxInterval: 30 * time.Second, Jitter: true, CoolDown: 15 * time.Minute, CoolDowns: 3,
		}}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v", s.Name, *got, want)
		}
	}
	if wf.Shortest != time.Second {
		t.Errorf("the shortest interval is %v, want that between two attempts", wf.Shortest)
	}
}

// TestRetryMerges: settings of a step win over those of its workflow, one by one. The
// workflow's max_attempts does not reach actions that are not idempotent.
func TestRetryMerges(t *testing.T) {
	wf := linkedWorkflow(t, `
retry {
  max_attempts = 9
  multiplier   = 3
  jitter       = "none"
  on           = ["busy"]
  cool_down    = "1h"
}
step "all" {
  action       = agent.echo.call
  compensation = "none"
}
step "some" {
  action       = agent.echo.call
  compensation = "none"
  retry {
    multiplier = 4
    on         = []
  }
}
step "once" {
  action       = agent.echo.once
  compensation = "none"
}
step "asked" {
  action       = agent.echo.once
  compensation = "none"
  retry { max_attempts = 2 }
}`)
	for name, want := range map[string]string{
		"all": "9 3 false [busy] 1h0m0s", "some": "9 4 false [] 1h0m0s", "once": "1 3 false [busy] 1h0m0s", "asked": "2 3 false [busy] 1h0m0s",
	} {
		r := settingsOf(t, stepOf(t, wf, name), &dsl.Scope{}).Retry
		if got := fmt.Sprint(r.MaxAttempts, r.Multiplier, r.Jitter, r.On, r.CoolDown); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestIntervals: an interval that was written moves the other one. Two that were written
// must agree, also if one is the workflow's.
func TestIntervals(t *testing.T) {
	for _, tt := range []struct{ name, workflow, step, want string }{
		{"none written", "", "", "1s 30s"},
		{"a long first one", "", `initial_interval = "2m"`, "2m0s 2m0s"},
		{"a short longest one", "", `max_interval = "100ms"`, "100ms 100ms"},
		{"both, equal", "", "initial_interval = \"5s\"\nmax_interval = \"5s\"", "5s 5s"},
		{"both, in order", "", "initial_interval = \"5s\"\nmax_interval = \"6s\"", "5s 6s"},
		{"both, out of order", "", "initial_interval = \"6s\"\nmax_interval = \"5s\"", "initial_interval is longer than max_interval"},
		{"one each, in order", `max_interval = "10s"`, `initial_interval = "5s"`, "5s 10s"},
		{"one each, out of order", `max_interval = "1s"`, `initial_interval = "5s"`, "initial_interval is longer than max_interval"},
		{"a short longest one of the workflow", `max_interval = "100ms"`, "", "100ms 100ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := "retry {\n" + tt.workflow + "\n}\n" + step("s", "retry {\n"+tt.step+"\n}")
			def, diags := check(files{"main.hcl": workflow(body)})
			if strings.HasPrefix(tt.want, "initial") {
				wantFindings(t, diags, fails("Invalid value for initial_interval", marked(diags.Errors()[0]), tt.want))
				return
			}
			if diags.HasErrors() {
				t.Fatal(diags.Err())
			}
			r := settingsOf(t, def.Workflow("w").Steps[0], &dsl.Scope{}).Retry
			if got := fmt.Sprint(r.InitialInterval, " ", r.MaxInterval); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	wf := linkedWorkflow(t, "variable \"d\" { type = string }\n"+step("s", "retry {\n initial_interval = var.d\n max_interval = \"10s\"\n}"))
	_, err := wf.Steps[0].Settings(scopeOf(bound(t, wf, "d", "11s")))
	wantError(t, err, "initial_interval is longer than max_interval")
	if r := settingsOf(t, wf.Steps[0], scopeOf(bound(t, wf, "d", "10s"))).Retry; r.InitialInterval != 10*time.Second {
		t.Errorf("an interval of a run: %v", r.InitialInterval)
	}
}

// TestShortestInterval: the shortest timeout or interval of a workflow, of its steps and
// undos; 0 where it depends on the run.
func TestShortestInterval(t *testing.T) {
	undone := func(lines string) string {
		return "step \"s\" {\n action = agent.shop.fill\n compensate {\n  action = agent.shop.empty\n" + lines + "\n}\n}\n"
	}
	for _, tt := range []struct {
		name, body string
		want       time.Duration
	}{
		{"the pause between attempts", step("s", ""), time.Second},
		{"a timeout", step("s", `timeout = "200ms"`), 200 * time.Millisecond},
		{"a deadline", step("s", "timeout = \"90ms\"\ndeadline = \"80ms\""), 80 * time.Millisecond},
		{"a deadline that is a time", step("s", `deadline = "2030-01-31T18:00:00Z"`), time.Second},
		{"a heartbeat timeout", "step \"s\" {\n action = agent.shop.fill\n heartbeat_timeout = \"70ms\"\n}\n", 70 * time.Millisecond},
		{"a cool-down", step("s", "retry {\n on_exhausted = \"cool_down\"\n cool_down = \"60ms\"\n}"), 60 * time.Millisecond},
		{"a cool-down that is never made", step("s", "retry {\n cool_down = \"60ms\"\n}"), time.Second},
		{"the shortest of two steps", step("a", `timeout = "300ms"`) + step("b", `timeout = "200ms"`), 200 * time.Millisecond},
		{"a timeout of an undo", undone(`timeout = "50ms"`), 50 * time.Millisecond},
		{"a deadline of an undo", undone(`deadline = "40ms"`), 40 * time.Millisecond},
		{"a pause of an undo", undone(`retry { initial_interval = "30ms" }`), 30 * time.Millisecond},
		{"a step that depends on the run", "variable \"d\" { default = \"5s\" }\n" + step("a", "") + step("s", "timeout = var.d"), 0},
		{"an undo that depends on the run", "variable \"d\" { default = \"5s\" }\n" + undone("timeout = var.d"), 0},
	} {
		if got := linkedWorkflow(t, tt.body).Shortest; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestRetentionOfWorkflows: runs are kept for a constant time, which belongs to the definition; without
// it, the engine decides. It is also the retention of the groups of the workflow, at any depth.
func TestRetentionOfWorkflows(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, `retention = "1m"`: time.Minute, `retention = "30d"`: 30 * 24 * time.Hour, `retention = "${1 + 1}d"`: 48 * time.Hour,
	} {
		def := linked(t, files{"main.hcl": "workflow \"w\" {\ndeadline = \"1h\"\n" + text + "\n" + step("s", "") +
			"group \"g\" {\n" + step("a", "") + "group \"h\" {\n" + step("b", "") + "}\n}\n}\n"})
		back, err := dsl.Decode(def.Encode())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, name := range []string{"w", "w.g", "w.g.h"} {
			if def.Workflow(name).Retention != want || back.Workflow(name).Retention != want {
				t.Errorf("%s: the retention of %s is %s, want %s; after Decode it is %s", text, name, def.Workflow(name).Retention, want, back.Workflow(name).Retention)
			}
		}
	}
}

// TestDeadlinesOfWorkflows: the deadlines of a workflow and of its compensation are
// durations or times, and may depend on variables.
func TestDeadlinesOfWorkflows(t *testing.T) {
	for _, place := range []struct {
		name, inside string
		limit        func(*dsl.Workflow) func(*dsl.Scope) (dsl.Limit, error)
	}{
		{"deadline", "deadline = %s\n", func(w *dsl.Workflow) func(*dsl.Scope) (dsl.Limit, error) { return w.Deadline }},
		{"deadline", "compensation { deadline = %s }\n", func(w *dsl.Workflow) func(*dsl.Scope) (dsl.Limit, error) { return w.CompensationDeadline }},
	} {
		for _, c := range deadlines() {
			file := "workflow \"w\" {\nvariable \"v\" {\n type = any\n default = null\n}\n" + place.inside + step("s", "") + "}\n"
			def, diags := check(files{"main.hcl": strings.Replace(file, "%s", c.value, 1)})
			wf := linked(t, files{"main.hcl": strings.Replace(file, "%s", "var.v", 1)}).Workflow("w")
			inRun, err := place.limit(wf)(scopeOf(bound(t, wf, "v", c.value)))
			if c.want == nil {
				if got := about(diags, "Invalid value for deadline"); len(got) != 1 || !strings.Contains(got[0].Detail, c.part) {
					t.Errorf("%s: %v, want %q", c.value, diags.Err(), c.part)
				}
				wantError(t, err, c.part)
				continue
			}
			if diags.HasErrors() || err != nil || inRun != c.want {
				t.Errorf("%s: %v; in a run %v, %v", c.value, diags.Err(), inRun, err)
				continue
			}
			if got, err := place.limit(def.Workflow("w"))(nil); err != nil || got != c.want {
				t.Errorf("%s: %v, %v; want %v", c.value, got, err, c.want)
			}
		}
	}
	wf := linked(t, files{"main.hcl": "workflow \"w\" {\n" + step("s", "") + "}\n"}).Workflow("w")
	if wf.Deadline != nil || wf.CompensationDeadline != nil || wf.UniqueKey != nil {
		t.Error("a workflow that says nothing has a deadline or a key")
	}
	_, diags := check(files{"main.hcl": "workflow \"w\" {\n" + step("s", "") + "}\n"})
	wantFindings(t, diags, warns("Workflow without deadline", `workflow "w"`, `Workflow "w" may take any time.`))
}

// TestModeOfCompensation: automatic is the default; the mode must be known before a run.
func TestModeOfCompensation(t *testing.T) {
	for _, tt := range []struct {
		line string
		want dsl.Mode
	}{
		{"", dsl.ModeAutomatic}, {"compensation {}", dsl.ModeAutomatic}, {`compensation { mode = "automatic" }`, dsl.ModeAutomatic},
		{`compensation { mode = "manual" }`, dsl.ModeManual}, {`compensation { mode = lower("MANUAL") }`, dsl.ModeManual},
	} {
		if got := linkedWorkflow(t, tt.line+"\n"+step("s", "")).CompensationMode; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.line, got, tt.want)
		}
	}
	checkRules(t, []rule{
		{"a word that is none", "compensation { mode = \"manaul\" }\n" + step("s", ""), finds(
			fails("Invalid value for mode", `"manaul"`, `mode is "automatic" or "manual". Did you mean "manual"?`))},
		{"no word", "compensation { mode = true }\n" + step("s", ""), finds(fails("Invalid value for mode", "true", `mode is "automatic" or "manual".`))},
		{"null", "compensation { mode = null }\n" + step("s", ""), finds(fails("Invalid value for mode", "null", `mode is "automatic" or "manual".`))},
		{"a reference", "variable \"m\" { default = \"manual\" }\ncompensation { mode = var.m }\n" + step("s", ""), finds(
			fails("Reference not available here", "var.m", "compensation.mode must be known before a run."))},
	})
}
