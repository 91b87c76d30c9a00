package agents_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// An agent without a process finds a place when another one has no call: that
// one's process ends. Until then its calls are held, and it does not count as
// missing.
func TestProcessesOfAllAgentsAreBounded(t *testing.T) {
	w := newWorld(t, agents.Options{MaxProcesses: 2})
	a, b, c := mock("a"), mock("b"), mock("c")
	for _, spec := range []invoke.AgentSpec{a, b} {
		if reply := w.mustInvoke(call(spec, "call", `{"value":1}`)); reply.Outcome != sdk.OutcomeResult {
			t.Fatalf("%+v", reply)
		}
	}
	w.until(t, "two processes", func() bool { return len(w.started) == 2 })
	for _, spec := range []invoke.AgentSpec{a, b} { // both are needed
		if !w.Reserve(spec, 1) {
			t.Fatal("no slot of an agent that runs")
		}
	}
	if slot := w.Slot(c); slot.Free != 0 || !strings.Contains(slot.Why, "2 agent processes") {
		t.Errorf("slot %+v, want none, because of the other agents", slot)
	}
	if err := w.Check(t.Context(), c); err != nil {
		t.Errorf("the agent counts as missing: %v", err)
	}
	w.mu.Lock()
	freed := w.freed
	w.mu.Unlock()
	w.Release(b, 1)
	w.until(t, "the end of a process", func() bool { return len(w.ended) > 0 })
	w.until(t, "a place", func() bool { return w.freed > freed })
	if reply := w.eventually(call(c, "call", `{"value":1}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("%+v", reply)
	}
	w.Release(a, 1)
	if reply := w.eventually(call(b, "call", `{"value":1}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("%+v", reply)
	}
}

// The instances of one agent leave half of the places to others.
func TestInstancesLeaveRoomForOthers(t *testing.T) {
	w := newWorld(t, agents.Options{MaxProcesses: 4})
	many := mock("many", func(s *invoke.AgentSpec) { s.Instances = 120 })
	for range 5 {
		w.mustInvoke(call(many, "call", `{"value":1}`))
	}
	w.mustInvoke(call(mock("one"), "call", `{"value":1}`))
	w.mustInvoke(call(mock("two"), "call", `{"value":1}`))
	w.until(t, "their processes", func() bool { return len(w.started) >= 4 })
	of := map[string]int{}
	w.mu.Lock()
	for _, p := range w.started {
		of[p.Agent]++
	}
	w.mu.Unlock()
	for _, i := range w.Details()[0].Instances {
		const want = "the engine runs 2 agent processes or more, and from this number on it starts only the first process of an agent; its limit is 4"
		if i.State == agents.InstanceDown && i.Why != want {
			t.Errorf("an instance without a process: %q, want %q", i.Why, want)
		}
	}
	if of["many"] != 2 || of["one"] != 1 || of["two"] != 1 {
		t.Errorf("processes %v, want two of many and one of each other", of)
	}
}
