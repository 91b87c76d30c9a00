package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// bounds returns the times until which the last record tells child runs that the parent waits, by the
// name of the step.
func (p *play) bounds() map[string]time.Time {
	told := map[string]time.Time{}
	for _, c := range p.last.Commands() {
		if b, ok := c.(machine.BoundChild); ok {
			told[p.nameOf(b.Attempt.Node)] = b.Until
		}
	}
	return told
}

// A later deadline of a run goes down to its open child runs and groups, unless the deadline of their
// step comes first. After a takeover each open call is told again.
func TestDeadlineGoesDown(t *testing.T) {
	p := start(t, flow(do("c", child), do("g", group), do("d", child, deadline(second(40))), runDeadline(second(60))), "do c", "do d", "do g")
	p.event(machine.PauseRequested{By: "ann"}, "pause g").event(machine.ResumeRequested{By: "ann", Extend: second(600)}, "resume g")
	later := noon.Add(second(600))
	if got := p.bounds(); len(got) != 2 || !got["c"].Equal(later) || !got["g"].Equal(later) {
		t.Errorf("the child runs are told %v, want %v for c and g", got, later)
	}
	p.event(machine.TakenOver{By: 2, From: 1}, "do c", "do d", "do g")
	if got := p.bounds(); len(got) != 3 || !got["c"].Equal(later) || !got["d"].Equal(noon.Add(second(40))) {
		t.Errorf("after a takeover the child runs are told %v", got)
	}
	p.wait(second(40), "stop d") // the deadline of the step has passed
	p.event(machine.PauseRequested{By: "ann"}, "pause g").event(machine.ResumeRequested{By: "ann", Extend: second(600)}, "resume g")
	if got := p.bounds(); len(got) != 2 || !got["c"].Equal(noon.Add(second(640))) {
		t.Errorf("the child runs are told %v: the child of d has been asked to turn back already", got)
	}
	p.event(machine.TakenOver{By: 3, From: 2}, "do c", "do d", "do g", "stop d")
	if got := p.bounds(); len(got) != 2 {
		t.Errorf("after another takeover the child runs are told %v", got)
	}
	p.wait(second(590)).is("running").wait(second(10), "stop c", "stop d", "stop g")
}

// The deadline of a child run moves with the time until which its parent waits. The deadline of the
// child's own workflow still counts.
func TestDeadlineOfAChildMoves(t *testing.T) {
	until := machine.Started{Until: noon.Add(second(60))}
	waits := func(s int) machine.ParentWaits { return machine.ParentWaits{Until: noon.Add(second(s)), By: "o-42"} }
	deadline := func(p *play, want int) {
		t.Helper()
		if got := p.s.Run().Deadline.Time(); !got.Equal(noon.Add(second(want))) {
			t.Errorf("the deadline is %v, want second %d", got, want)
		}
	}
	p := startChild(t, flow(do("c", child)), until, "do c").event(waits(600))
	deadline(p, 600)
	if got := p.bounds(); !got["c"].Equal(noon.Add(second(600))) {
		t.Errorf("the child run of the child run is told %v", got)
	}
	deadline(p.event(waits(300)), 300) // a migration of the parent may bring an earlier deadline
	p.wait(second(300), "stop c")

	p = startChild(t, flow(do("a"), runDeadline(second(100))), until, "do a").event(waits(600))
	deadline(p, 100)
	p.event(machine.PauseRequested{By: "ann"}).event(machine.ResumeRequested{By: "ann", Extend: second(200)})
	deadline(p.event(waits(700)), 200) // the own deadline of the child, which a person has extended
	deadline(p.event(waits(150)), 150)

	start(t, flow(do("a")), "do a").event(waits(600)).refused("no parent")
	p = startChild(t, flow(do("a"), do("b", after("a"))), until, "do a").ok("a", "do b")
	p.event(machine.CancelRequested{By: "o-42"}).event(waits(600)).refused("turns back")
	p = startChild(t, flow(do("a")), until, "do a").ok("a").is("succeeded")
	if rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: waits(600)}); !rec.Empty() {
		t.Error("an ended child run gets another deadline")
	}
}

// A person cannot give a child run more time than its parent waits. A deadline that the parent has cut
// returns when the parent waits longer.
func TestChildHasNoMoreTimeThanItsParentWaits(t *testing.T) {
	begin := func() *play {
		p := startChild(t, flow(do("a"), runDeadline(second(100))), machine.Started{Until: noon.Add(second(600))}, "do a")
		return p.event(machine.PauseRequested{By: "ann"})
	}
	extend := func(s int) machine.ResumeRequested { return machine.ResumeRequested{By: "ann", Extend: second(s)} }
	deadline := func(p *play, want int) {
		t.Helper()
		if got := p.s.Run().Deadline.Time(); !got.Equal(noon.Add(second(want))) {
			t.Errorf("the deadline is %v, want second %d", got, want)
		}
	}
	begin().event(extend(601)).refused("does not wait so long").is("paused")
	p := begin().event(extend(500)).is("running")
	deadline(p, 500)
	deadline(p.event(machine.ParentWaits{Until: noon.Add(second(300)), By: "o-42"}), 300)
	p.event(machine.PauseRequested{By: "ann"}).event(extend(310)).refused("is the time until which the parent o-42 waits")
	deadline(p.event(machine.ParentWaits{Until: noon.Add(second(900)), By: "o-42"}), 500)
}
