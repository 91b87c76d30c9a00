package agents_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// memoryHog is a program that takes memory until it is stopped, at most 1 GiB.
const memoryHog = `x=0123456789abcdef; while [ ${#x} -lt 1000000000 ]; do x=$x$x; done; sleep 60`

// T12, I14: an agent that takes all memory costs its own call. The calls of another
// agent are all answered meanwhile, and it works again itself.
func TestHogCostsOthersNothing(t *testing.T) {
	dir := t.TempDir()
	build(t, "plugins/engine-agent-exec", filepath.Join(dir, "engine-agent-exec"))
	w := newWorld(t, agents.Options{MaxMemory: 128 << 20}, dir)
	hog := invoke.AgentSpec{Agent: &dsl.Agent{Name: "hog", Plugin: "exec", Instances: 1}, Key: "hog"}
	run := func(script string) invoke.Call {
		input, err := json.Marshal(map[string]any{"argv": []string{"/bin/sh", "-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		return call(hog, "run", string(input))
	}
	if reply := w.mustInvoke(run("true")); reply.Outcome != sdk.OutcomeResult {
		t.Fatalf("%+v", reply)
	}
	killed := make(chan sdk.Reply)
	go func() {
		reply, err := w.Invoke(t.Context(), run(memoryHog))
		if err != nil {
			t.Error(err)
		}
		killed <- reply
	}()
	other, answered := mock("other"), 0
	for {
		if reply := w.mustInvoke(call(other, "call", `{"value":1}`)); reply.Outcome != sdk.OutcomeResult {
			t.Fatalf("%+v", reply)
		}
		answered++
		select {
		case reply := <-killed:
			if reply.Code != sdk.CodeAgentLost {
				t.Errorf("the hog's call ended with %+v, want %s", reply, sdk.CodeAgentLost)
			}
			if reply := w.eventually(run("true")); reply.Outcome != sdk.OutcomeResult {
				t.Errorf("the agent does not work any more: %+v", reply)
			}
			t.Logf("%d calls of the other agent were answered", answered)
			return
		default:
		}
	}
}
