package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
)

// urgent gives a step a priority. Use it with the tweak urgencies.
func urgent(p int) option { return func(s *spec) { s.settings.Priority = p } }

// urgencies makes a workflow one whose steps have priorities.
func urgencies(wf *dsl.Workflow) { wf.StepPriorities = true }

// oneFree are the slots of an agent with one free slot.
var oneFree = map[string]machine.Slot{"shop": {Free: 1, Why: "full"}}

// S71: steps that become ready in one decision get the free slots in the order of their priorities, and
// so do steps that wait. With the same priority, the order is that of the graph.
func TestStepsStartByPriority(t *testing.T) {
	p := startWith(t, flow(do("a", urgent(10)), do("b", urgent(90)), do("c", urgent(-1)), do("d", urgent(90)), do("e", urgent(95), each("k", "l")), urgencies), oneFree, "do e[k]")
	p.event(machine.SlotsFreed{}, "do e[l]")
	p.event(machine.SlotsFreed{}, "do b")
	p.event(machine.SlotsFreed{}, "do d")
	p.event(machine.SlotsFreed{}, "do c")
	p.event(machine.SlotsFreed{}, "do a")
}

// S71: within a run, too, a step rises by one point in 6 seconds.
func TestWaitingStepRises(t *testing.T) {
	for _, c := range []struct {
		seconds     int
		first, last string
	}{{599, "do y", "do x"}, {600, "do x", "do y"}, {601, "do x", "do y"}} {
		p := startWith(t, flow(do("x", urgent(0)), do("before", agent("bank"), timeout(second(3600))), do("y", after("before"), urgent(100)), urgencies),
			map[string]machine.Slot{"shop": {Why: "full"}}, "do before")
		p.now = p.now.Add(second(c.seconds))
		p.ok("before")
		p.slots = oneFree
		p.event(machine.SlotsFreed{}, c.first)
		p.event(machine.SlotsFreed{}, c.last)
	}
}

// A step leaves a free slot to a step of another run with a higher priority. The first step after a
// SlotsFreed takes the slot, because the run was first in line.
func TestStepYields(t *testing.T) {
	yield := map[string]machine.Slot{"shop": {Free: 2, Yield: 60, Why: "full"}}
	p := startWith(t, flow(do("a", urgent(59)), do("b", urgent(60)), do("c", urgent(-1)), urgencies), yield, "do b").state("a held", "c held")
	p.event(machine.SlotsFreed{}, "do a").state("c held")
	p.slots = map[string]machine.Slot{"shop": {Free: 2}}
	p.event(machine.SlotsFreed{}, "do c")
	startWith(t, flow(do("a")), yield).state("a held")
}

// The engine asks for the priority of the first step that waits.
func TestPriorityOfHeldSteps(t *testing.T) {
	wf := flow(do("a", urgent(7)), do("b", urgent(8)), urgencies)
	p := startWith(t, wf, map[string]machine.Slot{"shop": {Why: "full"}})
	if h := p.s.Held(); len(h) != 1 || h[0].Priority(wf, p.s) != 8 || !h[0].Rank.Equal(noon.Add(-8*line.PerPoint)) {
		t.Errorf("the run waits as %+v", h)
	}
	if h := startWith(t, flow(do("a", urgent(7))), p.slots).s.Held(); h[0].Priority(flow(do("a")), p.s) != line.DefaultPriority {
		t.Error("a step has a priority, and no step of its workflow has one")
	}
}
