package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// uncalled makes a step that calls no agent.
func uncalled(name string, options ...option) *spec {
	s := do(name)
	s.Do, s.Undo, s.NoUndo = dsl.NoCall, nil, true
	s.settings.Retry.MaxAttempts = 1
	s.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, nil }
	for _, o := range options {
		o(s)
	}
	return s
}

// value makes a step whose output is what an action's input would be.
func value(name string, options ...option) *spec {
	s := uncalled(name, options...)
	s.Value = inputOf(s)
	return s
}

func timer(name string, d time.Duration, options ...option) *spec {
	s := uncalled(name, options...)
	s.Until = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{After: d}, nil }
	return s
}

// await makes a step that waits for one of some signals, whose payload must not be "bad".
func await(name, signals string, options ...option) *spec {
	s := uncalled(name, options...)
	names := strings.Split(signals, " ")
	s.Wait = &dsl.Wait{
		Names: names, Signals: func(*dsl.Scope) ([]string, error) { return names, nil }, Payload: anyOutput,
		Continue: s.Wait != nil && s.Wait.Continue,
	}
	return s
}

// goesOn is on_timeout = "continue".
func goesOn(s *spec) { s.Wait = &dsl.Wait{Continue: true} }

// signal sends a signal.
func (p *play) signal(name, payload string, want ...string) *play {
	p.t.Helper()
	return p.event(machine.SignalReceived{Name: name, Payload: js(payload), By: "ann"}, want...)
}

// output returns the output of a node as text.
func (p *play) output(name string) string {
	p.t.Helper()
	return string(p.view(name).Output.JSON())
}

func TestValueStep(t *testing.T) {
	p := start(t, flow(do("a"), value("sum", after("a")), do("b", after("sum"))), "do a")
	p.okWith("a", `{"n":1}`, "do b").state("sum succeeded").effects("sum none")
	if got, want := p.output("sum"), `{"step":"sum","in0":{"n":1}}`; got != want {
		t.Errorf("the output of sum is %s, want %s", got, want)
	}
	p.ok("b").is("succeeded")
}

func TestValueThatCannotBeEvaluatedFailsAndIsCaught(t *testing.T) {
	s := value("sum", catch(`"instead"`, "expression_error"))
	s.Value = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	p := start(t, flow(s, do("b", after("sum"))), "do b")
	p.state("sum caught").ok("b").is("succeeded")

	s = value("sum")
	s.Value = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	start(t, flow(s)).is("failed").failure("sum expression_error")
}

func TestPostconditionOfAValue(t *testing.T) {
	s := value("sum", on("postcondition_failed"), tries(5), func(s *spec) {
		s.Post = append(s.Post, condition(func(*dsl.Scope) (bool, error) { return false, nil }, "postcondition_failed"))
	})
	start(t, flow(s)).is("failed").failure("sum postcondition_failed") // and is not repeated without end
}

func TestTimer(t *testing.T) {
	p := start(t, flow(timer("cool", time.Hour), do("b", after("cool"))))
	p.is("waiting").state("cool waiting")
	if due, ok := p.s.NextDue(); !ok || !due.Equal(noon.Add(time.Hour)) {
		t.Fatalf("the run is due at %v, want in an hour", due)
	}
	p.wait(59 * time.Minute).is("waiting")
	p.wait(time.Minute, "do b").state("cool succeeded").is("running")
	p.ok("b").is("succeeded")
}

func TestTimerInThePastEndsAtOnce(t *testing.T) {
	s := timer("cool", 0)
	s.Until = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{At: noon.Add(-time.Hour)}, nil }
	start(t, flow(s, do("b", after("cool"))), "do b")
}

func TestTimerOfAPausedRunRingsWhenItGoesOn(t *testing.T) {
	p := start(t, flow(timer("cool", time.Hour), do("b", after("cool"))))
	p.event(machine.PauseRequested{}).is("paused")
	p.wait(2 * time.Hour).state("cool waiting")
	p.event(machine.ResumeRequested{}, "do b")
}

func TestTimerPastItsStepDeadline(t *testing.T) {
	p := start(t, flow(timer("cool", time.Hour, deadline(time.Minute))))
	p.wait(time.Minute).is("failed").failure("cool deadline_exceeded")
}

func TestTimerEndsWithACancel(t *testing.T) {
	p := start(t, flow(do("a"), timer("cool", time.Hour, after("a"))), "do a")
	p.ok("a").is("waiting")
	p.event(machine.CancelRequested{}, "undo a").state("cool cancelled")
	p.ok("a").is("cancelled")
}

func TestSignalEndsAWait(t *testing.T) {
	p := start(t, flow(await("approval", "approve"), do("b", after("approval"))))
	p.is("waiting").state("approval waiting")
	if v := p.view("approval"); !slices.Equal(v.Awaits, []string{"approve"}) {
		t.Errorf("the view says that the step waits for %q", v.Awaits)
	}
	p.signal("approve", `{"by":"ann"}`, "do b").state("approval succeeded").effects("approval none")
	if got := p.output("approval"); got != `{"by":"ann"}` {
		t.Errorf("the output is %s, want the payload", got)
	}
	if v := p.view("approval"); v.Signal != "approve" || v.Awaits != nil {
		t.Errorf("the view says signal %q, awaits %q", v.Signal, v.Awaits)
	}
	p.ok("b").is("succeeded")
}

func TestEarlySignalIsKept(t *testing.T) {
	p := start(t, flow(do("a"), await("approval", "approve", after("a")), do("b", after("approval"))), "do a")
	p.signal("approve", `1`).signal("approve", `2`)
	p.ok("a", "do b")
	if got := p.output("approval"); got != `1` {
		t.Errorf("the output is %s, want that of the oldest signal", got)
	}
}

func TestSignalsGoToWaitsInOrder(t *testing.T) {
	p := start(t, flow(await("one", "go"), await("two", "stop go"), do("b", after("one", "two"))))
	p.signal("go", `1`).state("one succeeded", "two waiting")
	p.signal("go", `2`, "do b").state("two succeeded")
	if got := p.output("two"); got != `2` {
		t.Errorf("the output of the second wait is %s, want 2", got)
	}
}

func TestSignalOfAListSaysWhichCame(t *testing.T) {
	p := start(t, flow(await("verdict", "approve reject")))
	p.signal("reject", `null`).is("succeeded")
	if v := p.view("verdict"); v.Signal != "reject" {
		t.Errorf("the view says signal %q, want reject", v.Signal)
	}
}

func TestInstancesOfAWaitTakeOneSignalEach(t *testing.T) {
	p := start(t, flow(await("votes", "vote", each("k", "l")), do("b", after("votes"))))
	p.signal("vote", `1`).state("votes[k] succeeded", "votes[l] waiting")
	p.signal("vote", `2`, "do b").state("votes succeeded")
}

func TestSignalWithTheSameIDCountsOnce(t *testing.T) {
	p := start(t, flow(await("one", "go"), await("two", "go")))
	ev := machine.SignalReceived{Name: "go", ID: "m-1", Payload: js(`1`)}
	p.event(ev).state("one succeeded")
	p.event(ev).state("two waiting").is("waiting")
	if _, refused := p.last.Refused(); refused {
		t.Error("the second signal with the same id was refused, and it has to be accepted")
	}
	ev.ID = "m-2"
	p.event(ev).is("succeeded")
}

func TestSignalThatFailsTheWait(t *testing.T) {
	p := start(t, flow(await("approval", "approve", catch(`"no"`, "refused_by_ann")), do("b", after("approval"))))
	p.event(machine.SignalReceived{Name: "approve", Fail: "refused_by_ann", Reason: "too dear"}, "do b").state("approval caught")

	p = start(t, flow(do("a"), await("approval", "approve", after("a"))), "do a")
	p.ok("a")
	p.event(machine.SignalReceived{Name: "approve", Fail: "declined"}, "undo a").failure("approval declined")
}

func TestSignalsThatNoStepTakesAreRefused(t *testing.T) {
	p := start(t, flow(do("a"), await("approval", "approve reject", after("a"))), "do a")
	p.signal("aprove", `1`).refused("no step waits for signal aprove; the workflow waits for approve, reject")
	p.signal("approve", `"bad"`).refused("the payload does not fit: not what the schema says")
	p.ok("a").signal("approve", `1`).is("succeeded")
	p.signal("approve", `1`).refused("the run has ended: succeeded")

	start(t, flow(do("a")), "do a").signal("x", `1`).refused("no step of the workflow waits for a signal")

	p = start(t, flow(await("one", "go"), do("b", after("one"))))
	p.signal("go", `1`, "do b")
	p.signal("go", `2`).refused("the step that waits for signal go has ended")

	p = start(t, flow(do("a"), do("b", after("a")), await("w", "go", after("b"))), "do a")
	p.ok("a", "do b").fail("b", "declined", "undo a").signal("go", `1`).refused("is being undone")
}

func TestTooManyEarlySignalsAreRefused(t *testing.T) {
	p := start(t, flow(do("a"), await("w", "go", after("a"))), "do a")
	for k := range machine.MaxSignals {
		p.signal("go", fmt.Sprint(k))
		if _, refused := p.last.Refused(); refused {
			t.Fatalf("signal %d was refused", k)
		}
	}
	p.signal("go", `1`).refused("1000 signals wait already")
}

func TestDeadlineOfAWait(t *testing.T) {
	p := start(t, flow(await("w", "go", deadline(time.Hour))))
	p.wait(time.Hour).is("failed").failure("w deadline_exceeded")

	p = start(t, flow(await("w", "go", goesOn, deadline(time.Hour)), do("b", after("w"))))
	p.wait(time.Hour, "do b").state("w succeeded")

	p = start(t, flow(await("w", "go", goesOn, deadline(time.Hour), each("k", "l")), do("b", after("w"))))
	p.signal("go", `1`)
	p.wait(time.Hour, "do b").state("w succeeded", "w[k] succeeded", "w[l] succeeded")
	if p.output("w[k]") != `1` || p.output("w[l]") != `null` {
		t.Errorf("the outputs are %s and %s, want that of the signal and null", p.output("w[k]"), p.output("w[l]"))
	}
}

func TestWaitOfAParkedRunDoesNotExpire(t *testing.T) {
	p := start(t, flow(manual, do("a"), await("w", "go", deadline(time.Hour)), do("b", after("a", "w"))), "do a")
	p.permanent("a", "declined", "alert parked")
	p.wait(2 * time.Hour).state("w waiting")
	p.event(machine.RetryRequested{Step: "a"}, "do a").state("w waiting")
	p.ok("a").is("waiting").signal("go", `1`, "do b")
}

func TestRetryOfAFailedWaitWaitsAgain(t *testing.T) {
	p := start(t, flow(manual, await("w", "go", deadline(time.Hour))))
	p.wait(time.Hour, "alert parked")
	p.event(machine.RetryRequested{}).is("waiting").signal("go", `1`).is("succeeded")
}

func TestRunWaitsOnlyIfNothingElseMoves(t *testing.T) {
	p := start(t, flow(do("a"), await("w", "go")), "do a")
	p.is("running").ok("a").is("waiting").signal("go", `1`).is("succeeded")
}

func TestSignalNamesThatCannotBeEvaluated(t *testing.T) {
	s := await("w", "go")
	s.Wait.Names, s.Wait.Signals = nil, func(*dsl.Scope) ([]string, error) { return nil, errors.New("no names") }
	start(t, flow(s)).is("failed").failure("w expression_error")
}

func TestFactsOfSignals(t *testing.T) {
	p := start(t, flow(await("w", "go", deadline(time.Hour)), timer("cool", time.Minute)))
	p.signal("go", `1`).wait(time.Minute).is("succeeded")
	var got []string
	for _, f := range p.facts {
		got = append(got, strings.TrimSpace(fmt.Sprint(f.Kind, " ", f.Step, " ", f.Signal, strings.Join(f.Awaits, ","))))
	}
	want := []string{"run_created", "wait_started w go", "wait_started cool", "signal_received  go", "step_finished w", "step_finished cool", "run_finished"}
	if !slices.Equal(got, want) {
		t.Errorf("got facts %q, want %q", got, want)
	}
}

// The second signal with an id is shown as known, and the first one is not.
func TestFactsSayThatASignalIsKnown(t *testing.T) {
	p := start(t, flow(await("one", "go"), await("two", "go"), await("three", "go")))
	signal := func(id string) { p.event(machine.SignalReceived{Name: "go", ID: id, Payload: js(`1`), By: "ann"}) }
	for _, id := range []string{"m-1", "m-1", "m-2", "m-1", ""} {
		signal(id)
	}
	p.is("succeeded")
	var known []bool
	for _, f := range p.facts {
		if f.Kind == story.FactSignalReceived {
			known = append(known, f.Known)
		}
	}
	if want := []bool{false, true, false, true, false}; !slices.Equal(known, want) {
		t.Errorf("the facts say known %v, want %v", known, want)
	}
}

func TestExplainNamesTheSignal(t *testing.T) {
	p := start(t, flow(await("w", "go", deadline(time.Hour)), timer("cool", time.Minute)))
	text := story.Explain(p.s, p.wf, p.now).String()
	for _, want := range []string{"w waits for signal go, until 13:00:00Z", "engine signal o-42 go --data JSON", "cool waits until 12:01:00Z"} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation lacks %q: %s", want, text)
		}
	}
}
