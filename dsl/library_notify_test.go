package dsl

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
)

// notifyFS returns a module that starts a workflow of the library kit. This workflow, and a workflow of
// the library of kit, send notifications by agents that no step calls.
func notifyFS() fstest.MapFS {
	return fstest.MapFS{
		"main.hcl": {Data: []byte("library \"kit\" { source = \"./kit\" }\n" +
			"workflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" { workflow = library.kit.workflow.send }\n}\n")},
		"kit/kit.hcl": {Data: []byte("library \"deep\" { source = \"../deep\" }\nagent \"bell\" {\n  plugin = \"mock\"\n}\n" +
			"workflow \"send\" {\n  deadline = \"1h\"\n  step \"a\" { value = 1 }\n  step \"b\" { workflow = library.deep.workflow.low }\n" +
			"  notify {\n    on = [\"succeeded\"]\n    action = agent.bell.call\n    input { value = run.id }\n  }\n}\n")},
		"deep/deep.hcl": {Data: []byte("workflow \"low\" {\n  deadline = \"1h\"\n  step \"a\" { value = 1 }\n" +
			"  notify {\n    on = [\"failed\"]\n    action = agent.mock.call\n  }\n}\n")},
	}
}

// TestLibraryNotify: the module uses the agents of the notifications of a library's workflow, also if no
// step calls these agents, and also in a stored definition.
func TestLibraryNotify(t *testing.T) {
	def, diags := parseAndLink(notifyFS())
	if def == nil {
		t.Fatal(diags.Err())
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Definition{def, back} {
		for name, agent := range map[string]string{"kit.send": "kit.bell", "kit.deep.low": "kit.deep.mock"} {
			notify := d.Workflow(name).Notify
			if len(notify) != 1 {
				t.Fatalf("%s has %d notify blocks", name, len(notify))
			}
			do := notify[0].Flow.Steps[0].Do
			if do == nil || do.Agent != agent || do.Name != "call" || notify[0].Flow.Agents[agent] == nil {
				t.Errorf("the notification of %s calls %+v, agents %v", name, do, notify[0].Flow.Agents)
			}
		}
	}
}

// TestLibraryNotifyWithoutBinary: an agent that only a notification of a library's workflow calls needs
// a binary like any other agent.
func TestLibraryNotifyWithoutBinary(t *testing.T) {
	m, diags := Parse(notifyFS(), ParseOptions{Env: testEnv})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	agents := usedAgents(m)
	delete(agents, "kit.bell")
	def, diags := Link(m, agents)
	if err := diags.Err(); def != nil || err == nil || !strings.Contains(err.Error(), `Agent "kit.bell" not found`) {
		t.Errorf("linked=%t, %v", def != nil, err)
	}
}

// TestUnknownAgentIsReported: if the module lacks the agent of an action, and no error says so, Link
// reports an error. It never returns a step without a call.
func TestUnknownAgentIsReported(t *testing.T) {
	m, diags := Parse(notifyFS(), ParseOptions{Env: testEnv})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	delete(m.m.Agents, "kit.bell")
	def, diags := Link(m, usedAgents(m))
	errs := diags.Errors()
	if def != nil || len(errs) != 1 || errs[0].Summary != "Unknown agent" || !strings.Contains(errs[0].Detail, `"kit.bell"`) {
		t.Errorf("linked=%t, %v", def != nil, diags.Err())
	}
}

// TestOlderLibraryNotify: earlier engines did not store the agents that only the notifications of a
// library's workflow call. The definition is still read, without these notify blocks.
func TestOlderLibraryNotify(t *testing.T) {
	def, diags := parseAndLink(notifyFS())
	if def == nil {
		t.Fatal(diags.Err())
	}
	var s stored
	if err := json.Unmarshal(def.Encode(), &s); err != nil {
		t.Fatal(err)
	}
	delete(s.Manifest.Agents, "kit.bell")
	old, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(old)
	if err != nil {
		t.Fatal(err)
	}
	if string(back.Encode()) != string(old) {
		t.Error("it came back changed")
	}
	if n := back.Workflow("kit.send").Notify; len(n) != 0 {
		t.Errorf("notify blocks %+v", n)
	}
	if n := back.Workflow("kit.deep.low").Notify; len(n) != 1 || n[0].Flow.Steps[0].Do == nil {
		t.Errorf("notify blocks whose agent is stored: %+v", n)
	}
}
