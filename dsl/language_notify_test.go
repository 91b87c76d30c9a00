package dsl_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// notify is a notify block that calls the agent echo.
func notify(on, body string) string {
	return "notify {\n  on     = [" + on + "]\n  action = agent.echo.call\n" + body + "\n}\n"
}

// parked is the announced run of the tests.
var parked = dsl.RunInfo{ID: "order-1", Workflow: "w", Key: "k", StartedAt: time.Date(2030, 1, 31, 17, 0, 0, 5, time.UTC), Status: "parked"}

// sent returns the arguments that the first notify block of a workflow sends for a parked run.
func sent(t *testing.T, wf *dsl.Workflow, vars string) dsl.Value {
	t.Helper()
	given, err := wf.Notify[0].Variables(dsl.NewValue([]byte(vars), nil, nil), parked, dsl.Failure{Step: "a", Code: "denied", Message: "no money"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := wf.Notify[0].Flow.Steps[0].Input(&dsl.Scope{Vars: given, Run: dsl.RunInfo{ID: "other"}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A notify block makes a workflow of its own. Its one step is repeated without limit, but for at
// most 24 hours, and counts as safe to repeat.
func TestNotifyBlocks(t *testing.T) {
	wf := linkedWorkflow(t, step("a", "")+notify(`"parked", "failed"`, "")+notify(`"parked"`, "timeout = \"5s\"\nretry {\n  max_attempts = 3\n  initial_interval = \"2s\"\n}"))
	if got := len(wf.Notifications("parked")); got != 2 {
		t.Errorf("%d blocks announce parked", got)
	}
	if got := len(wf.Notifications("succeeded")); got != 0 {
		t.Errorf("%d blocks announce succeeded", got)
	}
	first, second := wf.Notify[0].Flow, wf.Notify[1].Flow
	if first.Name != "w.notify" || second.Name != "w.notify.2" || first.Notifies != "w" || first.Agents["echo"] == nil {
		t.Errorf("workflows of notifications: %+v, %+v", first, second)
	}
	do := first.Steps[0]
	if !do.Do.Idempotent || !do.NoUndo {
		t.Errorf("the step of a notification: %+v", do)
	}
	if s, err := do.Settings(&dsl.Scope{}); err != nil || s.Retry.MaxAttempts != dsl.Unbounded || s.Deadline.After != 24*time.Hour || s.Retry.MaxInterval != 5*time.Minute {
		t.Errorf("default settings: %+v, %v", s, err)
	}
	if s, err := second.Steps[0].Settings(&dsl.Scope{}); err != nil || s.Retry.MaxAttempts != 3 || s.Timeout != 5*time.Second || s.Retry.InitialInterval != 2*time.Second {
		t.Errorf("own settings: %+v, %v", s, err)
	}
}

// The workflow of a notification belongs to the definition, but no list of workflows shows it.
func TestNotifyWorkflowsAreHidden(t *testing.T) {
	def := linked(t, files{"main.hcl": workflow(step("a", "") + notify(`"failed"`, ""))})
	again, err := dsl.Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dsl.Definition{def, again} {
		if got := d.Names(); !slices.Equal(got, []string{"w"}) {
			t.Errorf("names: %q", got)
		}
		if got := d.Stored(); !slices.Equal(got, []string{"w", "w.notify"}) {
			t.Errorf("stored: %q", got)
		}
		if d.Workflow("w.notify") == nil {
			t.Error("w.notify is missing")
		}
	}
}

// An agent that only a notify block uses is no agent of the workflow: a run does not wait for it.
func TestNotifyAgents(t *testing.T) {
	wf := linkedWorkflow(t, free("v", "value = 1")+notify(`"failed"`, ""))
	if wf.Agents["echo"] != nil || wf.Notify[0].Flow.Agents["echo"] == nil {
		t.Errorf("agents of the run: %v, of the notification: %v", wf.Agents, wf.Notify[0].Flow.Agents)
	}
}

// The expressions of a notify block read the announced run: its variables, locals, run.* and
// failure.*. Values that are sensitive stay sensitive.
func TestNotifyReferences(t *testing.T) {
	body := "variable \"n\" { type = string }\nlocals { id = \"${run.id}/${var.n}\" }\n" + step("a", "")
	wf := linkedWorkflow(t, body+notify(`"parked"`, "input { value = \"${local.id} ${run.id} ${run.workflow} ${run.key} ${run.started_at} ${run.status} ${failure.step} ${failure.code} ${failure.message}\" }"))
	if got, want := string(sent(t, wf, `{"n":"7"}`).JSON()), "order-1/7 order-1 w k 2030-01-31T17:00:00.000000005Z parked a denied no money"; !strings.Contains(got, `"`+want+`"`) {
		t.Errorf("sent %s, want %s", got, want)
	}
	wf = linkedWorkflow(t, "variable \"n\" {\n  type = string\n  sensitive = true\n}\n"+step("a", "")+notify(`"parked"`, "input { value = var.n }"))
	if got := sent(t, wf, `{"n":"7"}`).Sensitive(); len(got) == 0 {
		t.Errorf("sensitive parts: %q", got)
	}
}

// If an argument cannot be evaluated, the engine sends a text of its own. The text holds neither a
// variable nor the message of the failure. An optional argument of another type is left out.
func TestNotifyOwnText(t *testing.T) {
	vars := "variable \"n\" { type = any }\n" + step("a", "")
	wf := linkedWorkflow(t, vars+notify(`"parked"`, "input { value = \"for ${var.n.missing}\" }"))
	got := string(sent(t, wf, `{"n":{"hidden":"top"}}`).JSON())
	want := "Run order-1 of workflow w: parked. Step a failed with denied. The engine wrote this text, because the input of notify (main.hcl:"
	if !strings.Contains(got, want) || strings.Contains(got, "no money") || strings.Contains(got, "top") {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// HCL JSON has the same blocks.
func TestNotifyInJSON(t *testing.T) {
	def := linked(t, files{"main.hcl.json": `{"workflow": {"w": {"deadline": "1h",
		"step": {"a": {"action": "${agent.echo.call}", "compensation": "none"}},
		"notify": [
			{"on": ["parked"], "action": "${agent.echo.call}", "input": {"value": "${run.id}"}},
			{"on": ["failed", "parked"], "action": "${agent.echo.call}", "retry": {"max_attempts": 2}}
		]}}}`})
	if wf := def.Workflow("w"); len(wf.Notifications("parked")) != 2 || len(wf.Notifications("failed")) != 1 {
		t.Errorf("notify blocks: %+v", wf.Notify)
	}
	if got := string(sent(t, def.Workflow("w"), `{}`).JSON()); !strings.Contains(got, "order-1") {
		t.Errorf("sent %s", got)
	}
}

// If the retry block cannot be evaluated, the notification has the default settings.
func TestNotifySettingsThatFail(t *testing.T) {
	wf := linkedWorkflow(t, "variable \"n\" { type = any }\n"+step("a", "")+notify(`"parked"`, "retry { max_attempts = var.n.missing }"))
	given, err := wf.Notify[0].Variables(dsl.NewValue([]byte(`{"n":{}}`), nil, nil), parked, dsl.Failure{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wf.Notify[0].Flow.Steps[0].Settings(&dsl.Scope{Vars: given}); err != nil || s.Retry.MaxAttempts != dsl.Unbounded {
		t.Errorf("settings: %+v, %v", s, err)
	}
}
