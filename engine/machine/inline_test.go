package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
)

// inLine accepts a run at noon that waits for room in its limit.
func inLine(t *testing.T, wf *dsl.Workflow) *play {
	t.Helper()
	return newPlay(t, wf, nil).event(machine.Started{RunID: 42, Name: "o-42", Line: line.Line{Lift: 20, Limit: 3, Key: "eu"}, Waits: true})
}

func TestRunInLineStartsWhenItIsAdmitted(t *testing.T) {
	p := inLine(t, flow(do("a"), value("v"), timer("t", second(5)), do("b", after("a")))).is("queued")
	p.event(machine.SlotsFreed{}).nothing()
	p.wait(second(100)).is("queued").state("a pending", "v pending", "t pending")
	p.event(machine.TakenOver{By: 2}).is("queued") // a new owner starts nothing either
	p.event(machine.SlotsFreed{Admitted: true}, "do a").is("running").state("v succeeded")
	if !p.last.Admits() {
		t.Error("the record does not say that it admits the run")
	}
	p.event(machine.SlotsFreed{Admitted: true}).nothing()
	p.ok("a", "do b")
	p.ok("b").wait(second(5)).is("succeeded")
	if got, want := p.s.Run().Line, (line.Line{Lift: 20, Limit: 3, Key: "eu"}); got != want || got.Priority() != 70 {
		t.Errorf("got line %+v with priority %d", got, got.Priority())
	}
}

func TestRunInLineIsCancelledAtOnce(t *testing.T) {
	inLine(t, flow(do("a"))).event(machine.CancelRequested{}).is("cancelled")
	p := inLine(t, flow(do("a"))).event(machine.CancelRequested{NoCompensate: true}).is("cancelled")
	p.event(machine.SlotsFreed{Admitted: true}).nothing()
}

func TestRunInLineKeepsItsDeadline(t *testing.T) {
	p := inLine(t, flow(do("a"), runDeadline(second(50))))
	p.wait(second(50)).is("failed").failure("deadline_exceeded")
}

func TestRunInLineIsPaused(t *testing.T) {
	p := inLine(t, flow(do("a"))).event(machine.PauseRequested{}).is("paused")
	p.event(machine.SlotsFreed{Admitted: true}).is("paused") // it holds its place while it is paused
	p.event(machine.ResumeRequested{}, "do a").is("running")
	p = inLine(t, flow(do("a"))).event(machine.PauseRequested{}).event(machine.ResumeRequested{}).is("waiting")
	p.event(machine.SlotsFreed{Admitted: true}, "do a").is("running")
}

func TestRunInLineThatWasLost(t *testing.T) {
	p := inLine(t, flow(do("a"))).event(machine.EngineLost{Deaths: 3, Why: "gone"}, "alert parked").is("parked")
	p.event(machine.RetryRequested{}).is("waiting")
	p.event(machine.SlotsFreed{Admitted: true}, "do a").is("running")
}

func TestRunWithoutStepsNeedsNoRoom(t *testing.T) {
	inLine(t, flow()).is("succeeded")
}
