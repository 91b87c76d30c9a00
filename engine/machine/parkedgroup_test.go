package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// A group is a part of its run, so it is paused while the run is parked. Child runs of other steps are
// not paused. No deadline of forward work expires while a run is parked, so the open child runs have no
// deadline from their parent until the run goes on.
func TestParkedRunHoldsItsGroups(t *testing.T) {
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("g", group), do("c", child), runDeadline(second(60))), "do a", "do c", "do g")
	p.fail("a", "flaky", "alert parked", "pause g").is("parked")
	if got := p.bounds(); len(got) != 2 || got["c"].Before(noon.AddDate(9, 0, 0)) || got["g"].Before(noon.AddDate(9, 0, 0)) {
		t.Errorf("the child runs of a parked run are told %v", got)
	}
	p.event(machine.TakenOver{By: 2, From: 1}, "do c", "do g")
	for _, cmd := range p.last.Commands() {
		inv, call := cmd.(machine.Invoke)
		if call && (inv.Pause.On || inv.Pause.Parked) != (p.node(inv) == "g") {
			t.Errorf("after a takeover the call of %s says %+v", p.node(inv), inv.Pause)
		}
	}
	p.wait(second(60), "alert overdue").wait(second(10)).is("parked") // the child runs are not asked to turn back
	p.event(machine.RetryRequested{By: "ann", Extend: second(60)}, "do a", "resume g")
	if got := p.bounds(); len(got) != 2 || !got["c"].Equal(noon.Add(second(130))) || !got["g"].Equal(noon.Add(second(130))) {
		t.Errorf("the child runs are told %v when the run goes on", got)
	}
	p.ok("a").wait(second(60), "stop c", "stop g", "undo a")
}

// A run that is paused and parked holds its groups until both are over.
func TestPausedAndParkedRunHoldsItsGroups(t *testing.T) {
	begin := func() *play {
		p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("g", group)), "do a", "do g")
		p.event(machine.PauseRequested{By: "ann"}, "pause g")
		return p.fail("a", "flaky", "alert parked")
	}
	begin().event(machine.ResumeRequested{By: "ann"}).is("parked").event(machine.RetryRequested{By: "ann"}, "do a", "resume g")
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("g", group)), "do a", "do g")
	p.fail("a", "flaky", "alert parked", "pause g").event(machine.CompensateRequested{By: "ann"}, "resume g", "stop g")
}
