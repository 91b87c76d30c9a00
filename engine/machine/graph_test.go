package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// S4, S8, S9, S14, S15, S16: order only where declared; every step is recorded
// before it starts and when it ends.
func TestGraphSequence(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("b"))), "do a")
	p.is("running").state("a running", "b pending", "c pending")
	p.ok("a", "do b").state("a succeeded", "b running")
	p.ok("b", "do c")
	p.ok("c").is("succeeded").state("a succeeded", "b succeeded", "c succeeded")
}

func TestGraphIndependentStepsRunAtOnce(t *testing.T) {
	p := start(t, flow(do("a"), do("b"), do("c", after("a", "b"))), "do a", "do b")
	p.ok("b")
	p.ok("a", "do c")
	p.ok("c").is("succeeded")
}

func TestGraphSkippedStepLetsDependentsRun(t *testing.T) {
	p := start(t, flow(do("a", when(false)), do("b", after("a"))), "do b")
	p.state("a skipped")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":null}` {
		t.Errorf("got input %s, want a null output of the skipped step", in)
	}
	p.ok("b").is("succeeded")
}

func TestGraphWithoutSteps(t *testing.T) {
	start(t, flow()).is("succeeded")
}

func TestGraphDiamondStartsTheJoinOnce(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("a")), do("d", after("b", "c"))), "do a")
	p.ok("a", "do b", "do c")
	p.ok("c")
	p.ok("b", "do d")
	p.ok("d").is("succeeded")
}

// S35: only an answer of an open attempt of this run counts.
func TestGraphAnswerOfNoAttempt(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	p.event(machine.AttemptOK{Attempt: machine.AttemptID{Node: 0, Call: 2}}).nothing()
	p.event(machine.AttemptOK{Attempt: machine.AttemptID{Node: 7, Call: 1}}).nothing()
	p.event(machine.AttemptOK{Attempt: machine.AttemptID{Node: -1, Call: 1}}).nothing()
	if !p.last.Late() {
		t.Error("want the stray answer reported as late")
	}
	p.ok("a").is("succeeded")
}

func TestGraphOutputs(t *testing.T) {
	wf := flow(do("a"))
	wf.Outputs = []dsl.Output{
		{Name: "id", Value: func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(0).One.Output, nil }},
		{Name: "odd", Value: func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }},
	}
	p := start(t, wf, "do a")
	p.okWith("a", `{"id":"a long enough output"}`).is("succeeded")
	out := story.Outputs(p.s)
	if len(out) != 2 || string(out[0].Value.JSON()) != `{"id":"a long enough output"}` {
		t.Fatalf("got outputs %+v", out)
	}
	if !out[1].Value.IsNull() || out[1].Problem != errBroken.Error() {
		t.Errorf("got %+v, want null and the reason", out[1])
	}
}
