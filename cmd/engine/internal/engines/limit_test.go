package engines

import (
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

// roomy is an agent side with a number of slots for each agent.
type roomy struct{ free map[string]int }

func (r roomy) Slot(spec invoke.AgentSpec) machine.Slot { return machine.Slot{Free: r.free[spec.Key]} }

func (r roomy) Reserve(spec invoke.AgentSpec, n int) bool {
	if r.free[spec.Key] < n {
		return false
	}
	r.free[spec.Key] -= n
	return true
}

func (r roomy) Release(spec invoke.AgentSpec, n int) { r.free[spec.Key] += n }

func (r roomy) OnFree(func(string)) {}

// --concurrency bounds the calls of all agents together, and who found no room
// is told when there is some.
func TestCallLimit(t *testing.T) {
	a := invoke.AgentSpec{Agent: &dsl.Agent{}, Key: "a"}
	b := invoke.AgentSpec{Agent: &dsl.Agent{}, Key: "b"}
	l := LimitCalls(roomy{map[string]int{"a": 10, "b": 1}}, 3)
	var told []string
	l.OnFree(func(key string) { told = append(told, key) })
	if s := l.Slot(a); s.Free != 3 {
		t.Errorf("Slot = %+v, want the 3 of the bound", s)
	}
	if s := l.Slot(b); s.Free != 1 {
		t.Errorf("Slot = %+v, want the 1 of the agent", s)
	}
	if !l.Reserve(a, 2) || l.Reserve(a, 2) || !l.Reserve(b, 1) {
		t.Fatal("2 of a, not 2 more, then 1 of b were to be had")
	}
	if s := l.Slot(b); s.Free != 0 {
		t.Errorf("Slot = %+v, want none", s)
	}
	if s := l.Slot(a); s.Free != 0 || s.Why == "" {
		t.Errorf("Slot = %+v, want none and why", s)
	}
	if l.used != 3 {
		t.Errorf("%d in flight, want 3", l.used)
	}
	told = nil
	l.Release(b, 1)
	if !slices.Contains(told, "a") {
		t.Errorf("told %v, want a, which found no room", told)
	}
	if !l.Reserve(a, 1) {
		t.Error("there must be room for one of a")
	}
	if l.Reserve(b, 2) || l.used != 3 {
		t.Errorf("2 of b were had, or %d are in flight instead of 3", l.used)
	}

	free := LimitCalls(roomy{map[string]int{"a": 10}}, 0)
	if s := free.Slot(a); s.Free != 10 || !free.Reserve(a, 10) || free.Reserve(a, 1) || free.used != 10 {
		t.Errorf("without a bound the agent's 10 are to be had: %+v, %d in flight", s, free.used)
	}
}
