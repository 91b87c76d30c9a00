package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// within sets the ceilings of a play.
func (p *play) within(c machine.Ceilings) *play {
	p.ceilings = c
	return p
}

func keys(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("k%05d", i))
	}
	return out
}

func TestInstancesPastTheCeilingFailTheStep(t *testing.T) {
	wf := func() *dsl.Workflow {
		return flow(do("a"), do("b", after("a"), each(keys(4)...)), do("c", after("b"), each(keys(3)...)))
	}
	p := start(t, wf(), "do a").within(machine.Ceilings{Instances: 6})
	p.ok("a", "do b[k00000]", "do b[k00001]", "do b[k00002]", "do b[k00003]")
	p.ok("b[k00000]")
	p.ok("b[k00001]")
	p.ok("b[k00002]")
	p.ok("b[k00003]", "undo b[k00000]", "undo b[k00001]", "undo b[k00002]", "undo b[k00003]").
		failure("c limit_exceeded").state("c failed", "b[k00003] undoing")
	if got := p.s.Run().Failure.Message; !strings.Contains(got, "3 keys; with 4 instances that the run has already, the ceiling is 6") {
		t.Errorf("message %q", got)
	}

	p = start(t, wf(), "do a").within(machine.Ceilings{Instances: 7})
	p.ok("a", "do b[k00000]", "do b[k00001]", "do b[k00002]", "do b[k00003]")
	p.ok("b[k00000]")
	p.ok("b[k00001]")
	p.ok("b[k00002]")
	p.ok("b[k00003]", "do c[k00000]", "do c[k00001]", "do c[k00002]")
}

func TestTheDefaultOfInstances(t *testing.T) {
	for n, want := range map[int]string{machine.DefaultInstances: "running", machine.DefaultInstances + 1: "failed"} {
		wf := flow(do("a", each(keys(n)...), parallel(1)))
		s := machine.NewState()
		rec := machine.Decide(wf, s, machine.Input{At: noon, Event: machine.Started{RunID: 1, Name: "r"}})
		s.Apply(rec)
		if got := s.Status().String(); got != want {
			t.Errorf("%d instances: the run is %s, want %s", n, got, want)
		}
	}
}

// What goes forward stops at the ceiling; what is in flight still counts, and the
// undo starts whatever the history has become.
func TestRecordsPastTheCeilingTurnTheRunBack(t *testing.T) {
	p := start(t, flow(do("a"), do("x"), do("b", after("a")), do("c", after("b"))), "do a", "do x").within(machine.Ceilings{Records: 2})
	p.ok("a", "do b")
	p.ok("b", "undo b").failure("c limit_exceeded").is("compensating")
	p.ok("x", "undo x")
	p.ok("b", "undo a")
	p.ok("a")
	p.ok("x").is("compensated")
}

func TestARetryPastTheCeilingIsNotMade(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), idempotent, tries(5))), "do a").within(machine.Ceilings{Records: 5})
	p.ok("a", "do b")
	p.fail("b", "unavailable").state("b backoff")
	p.wait(time.Second, "do b")
	p.fail("b", "unavailable").state("b backoff")
	p.wait(2*time.Second, "undo a").failure("b limit_exceeded")
	p.ok("a").is("compensated")
}

func TestJournalPastTheCeilingTurnsTheRunBack(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a").within(machine.Ceilings{Journal: 1000})
	p.stored = 1000
	p.ok("a", "undo a").failure("b limit_exceeded")
	p.ok("a").is("compensated")
}

func TestAfterThePivotACeilingParks(t *testing.T) {
	p := start(t, flow(do("a", pivot), do("b", after("a"))), "do a").within(machine.Ceilings{Records: 1})
	p.ok("a", "alert parked").failure("b limit_exceeded").is("parked")
	p.within(machine.Ceilings{})
	p.event(machine.RetryRequested{By: "ann", Ask: 1}, "do b")
	p.ok("b").is("succeeded")
}

func TestOutputsPastTheCeilingTurnTheRunBack(t *testing.T) {
	big := `{"id":"` + strings.Repeat("x", 600) + `"}`
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("b"))), "do a").within(machine.Ceilings{Values: 1500})
	p.okWith("a", big, "do b") // its input has a's output: 1,200 bytes and a little
	p.okWith("b", big, "undo b").failure("c limit_exceeded").state("b undoing")
	p.okWith("b", `{}`, "undo a")
	p.okWith("a", `{}`).is("compensated")
	if p.s.ValueBytes() != p.plain.ValueBytes() || p.s.ValueBytes() < 1800 {
		t.Errorf("%d bytes of values, folded %d", p.s.ValueBytes(), p.plain.ValueBytes())
	}
}

func TestInputsPastTheCeilingFailTheStep(t *testing.T) {
	big := `{"id":"` + strings.Repeat("x", 600) + `"}`
	p := start(t, flow(do("a"), do("b", after("a"), each(keys(10)...), catch(`{}`, "limit_exceeded"))), "do a").within(machine.Ceilings{Values: 2500})
	p.okWith("a", big, "do b[k00000]", "do b[k00001]")
	p.state("b[k00001] running", "b[k00002] caught", "b[k00009] caught")
}

// The first checkpoint of a call says that something was done, and always counts (T21).
func TestCheckpointsPastTheCeilingAreSignsOfLife(t *testing.T) {
	p := start(t, flow(do("a"), do("b")), "do a", "do b").within(machine.Ceilings{Checkpoints: 250})
	mark := func(node string, number int) *play {
		return p.event(machine.AttemptProgress{Attempt: p.call(node, 0).Attempt, Number: number, Blob: make([]byte, 100)})
	}
	mark("a", 1)
	mark("a", 2)
	if p.s.Checkpoints() != 328 {
		t.Fatalf("%d bytes of checkpoints, want 328", p.s.Checkpoints())
	}
	records := p.s.Run().Records
	mark("a", 3)
	if p.s.Nodes()[0].Point != 2 || p.s.Run().Records != records {
		t.Errorf("checkpoint %d after %d records, want that of before and none", p.s.Nodes()[0].Point, p.s.Run().Records-records)
	}
	mark("b", 7)
	if p.s.Nodes()[1].Point != 7 {
		t.Error("the first checkpoint of a call is not recorded")
	}
}

func TestCeilingsAreValidated(t *testing.T) {
	for _, c := range []machine.Ceilings{{Instances: -1}, {Records: -1}, {Journal: -1}, {Values: -1}, {Checkpoints: -1}, {Instances: model.MaxNodes}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if err := (machine.Ceilings{}).WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
}
