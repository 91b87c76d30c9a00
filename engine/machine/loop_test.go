package machine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// ready is until = self.output == "ready".
func ready(sc *dsl.Scope) (bool, error) { return string(sc.Self.Output.JSON()) == `"ready"`, nil }

// nodeOf returns a node by its name.
func (p *play) nodeOf(name string) *model.Node {
	p.t.Helper()
	return p.s.Nodes()[p.find(name)]
}

// key returns the idempotency key of the newest call of a node.
func (p *play) key(name string) string {
	p.t.Helper()
	return p.call(name, 0).IdempotencyKey
}

func TestLoopEndsWhenUntilIsTrue(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: ready, Interval: every(15 * time.Second)}, 80)), do("b", after("a"))), "do a")
	first := p.key("a")
	p.okWith("a", `"new"`).state("a backoff").is("running")
	if due, _ := p.s.NextDue(); !due.Equal(noon.Add(15 * time.Second)) {
		t.Fatalf("the next iteration is due at %v, want in 15 s", due)
	}
	p.wait(15*time.Second, "do a")
	if p.key("a") == first {
		t.Error("two iterations have one key")
	}
	p.okWith("a", `"ready"`, "do b").state("a succeeded")
	if got := p.output("a"); got != `"ready"` {
		t.Errorf("the output is %s, want that of the last iteration", got)
	}
	if v := p.view("a"); v.Attempts != 2 || v.Iteration != 2 || v.Iterations != 80 {
		t.Errorf("the view says %d attempts, iteration %d of %d; want 2, 2 and 80", v.Attempts, v.Iteration, v.Iterations)
	}
	if want := machine.IdempotencyKey(42, "a", "", "do", 0, 0); first != want {
		t.Errorf("the key of the first iteration is %s, want %s as without a loop", first, want)
	}
}

func TestLoopWithoutIntervalGoesOnAtOnce(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: ready}, 0))), "do a")
	p.okWith("a", `1`, "do a").okWith("a", `2`, "do a").okWith("a", `"ready"`).is("succeeded")
}

func TestMaxIterations(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{}, 3)), do("b", after("a"))), "do a")
	p.okWith("a", `1`, "do a").okWith("a", `2`, "do a").okWith("a", `3`, "do b").state("a succeeded")

	p = start(t, flow(do("a", readOnly, on("max_iterations"), repeat(dsl.Repeat{Until: ready}, 2))), "do a")
	p.okWith("a", `1`, "do a").okWith("a", `2`).is("failed").failure("a max_iterations") // it is permanent, whatever retry names

	p = start(t, flow(do("a", readOnly, catch(`"none"`, "max_iterations"), repeat(dsl.Repeat{Until: ready}, 1)), do("b", after("a"))), "do a")
	p.okWith("a", `1`, "do b").state("a caught")
}

func TestIterationHasItsOwnAttempts(t *testing.T) {
	p := start(t, flow(do("a", readOnly, tries(2), repeat(dsl.Repeat{Until: ready}, 0))), "do a")
	first := p.key("a")
	p.fail("a", "unavailable").wait(time.Second, "do a")
	if p.key("a") != first {
		t.Error("two attempts of one iteration have two keys")
	}
	p.okWith("a", `1`, "do a")
	p.fail("a", "unavailable").wait(time.Second, "do a") // a fresh round: the second attempt of two
	p.fail("a", "unavailable").is("failed").failure("a unavailable")
}

func TestPreviousAndCollected(t *testing.T) {
	collect := func(sc *dsl.Scope) (dsl.Value, error) {
		return js(fmt.Sprintf(`[%s,%s]`, sc.Self.Previous.JSON(), sc.Self.Output.JSON())), nil
	}
	var seen []string
	until := func(sc *dsl.Scope) (bool, error) {
		seen = append(seen, collected(sc))
		return ready(sc)
	}
	list := value("list", after("a"))
	list.Value = func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(0).One.Collected, nil }
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: until, Collect: collect}, 0)), list), "do a")
	if got, want := string(p.call("a", 0).Input.JSON()), `{"step":"a","previous":null}`; got != want {
		t.Errorf("the first input is %s, want %s", got, want)
	}
	p.okWith("a", `"one"`, "do a")
	if got, want := string(p.call("a", 0).Input.JSON()), `{"step":"a","previous":"one"}`; got != want {
		t.Errorf("the second input is %s, want %s", got, want)
	}
	if got, want := seen[len(seen)-1], `[[null,"one"]]`; got != want {
		t.Errorf("until saw %s, want %s with the new value", got, want)
	}
	p.okWith("a", `"ready"`).is("succeeded")
	if got, want := p.output("list"), `[[null,"one"],["one","ready"]]`; got != want {
		t.Errorf("step.a.collected is %s, want %s", got, want)
	}
}

func TestLoopOfInstances(t *testing.T) {
	p := start(t, flow(do("a", readOnly, each("k", "l"), repeat(dsl.Repeat{Until: ready, Collect: output}, 0)), do("b", after("a"))), "do a[k]", "do a[l]")
	p.okWith("a[k]", `1`, "do a[k]").okWith("a[l]", `"ready"`).state("a[l] succeeded", "a[k] running")
	p.okWith("a[k]", `"ready"`, "do b")
	if k, l := p.nodeOf("a[k]"), p.nodeOf("a[l]"); string(k.Collected.List().JSON()) != `[1,"ready"]` || string(l.Collected.List().JSON()) != `["ready"]` {
		t.Errorf("collected are %s and %s", k.Collected.List().JSON(), l.Collected.List().JSON())
	}
}

// The record of the last iteration holds only a new value of the list. A reader of the journal still
// finds the output of the iteration before, although the node from which this value was shared has
// another output now. Each step of the play reads all records.
func TestPreviousOutlivesTheNodeItWasSharedFrom(t *testing.T) {
	long := `"a text that is worth sharing"`
	loop := repeat(dsl.Repeat{Collect: output, Interval: every(15 * time.Second)}, 2)
	p := start(t, flow(do("a", readOnly, each("k", "l"), loop)), "do a[k]", "do a[l]")
	p.okWith("a[k]", long).okWith("a[l]", long)
	p.wait(15*time.Second, "do a[k]", "do a[l]")
	p.okWith("a[k]", `"another text that is worth sharing"`).okWith("a[l]", `"the last text"`).is("succeeded")
	if got := string(p.nodeOf("a[l]").Last.V.JSON()); got != long {
		t.Errorf("the output of the iteration before is %s, want %s", got, long)
	}
}

func TestWhenOfALoop(t *testing.T) {
	fewer := func(n int) option {
		return func(s *spec) { s.When = func(sc *dsl.Scope) (bool, error) { return count(sc) < n, nil } }
	}
	p := start(t, flow(do("a", fewer(2), repeat(dsl.Repeat{Collect: output}, 9)), do("b", after("a"))), "do a")
	p.okWith("a", `{"n":1}`, "do a").okWith("a", `{"n":2}`, "do b").state("a succeeded").effects("a done")
	if got := p.output("a"); got != `{"n":2}` {
		t.Errorf("the output is %s, want that of the last iteration that was made", got)
	}
	if v := p.view("a"); v.Iteration != 2 {
		t.Errorf("the view says iteration %d, want 2", v.Iteration)
	}
	start(t, flow(do("a", fewer(0), repeat(dsl.Repeat{Collect: output}, 9)), do("b", after("a"))), "do b").state("a skipped")
}

func TestExpressionErrorsOfALoop(t *testing.T) {
	broken := func(*dsl.Scope) (bool, error) { return false, errBroken }
	for name, r := range map[string]dsl.Repeat{
		"until":    {Until: broken},
		"collect":  {Collect: func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }},
		"interval": {Interval: func(*dsl.Scope) (time.Duration, error) { return 0, errBroken }},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, flow(do("a", repeat(r, 9))), "do a")
			p.ok("a", "undo a").failure("a postcondition_failed").effects("a done")
			if m := p.view("a").Message; !strings.HasPrefix(m, name+": ") {
				t.Errorf("the message %q does not name %s", m, name)
			}
		})
	}
	s := do("a", repeat(dsl.Repeat{}, 9))
	s.When = func(sc *dsl.Scope) (bool, error) { return true, nil }
	p := start(t, flow(s), "do a")
	s.When = func(sc *dsl.Scope) (bool, error) { return false, errBroken }
	p.ok("a", "undo a").failure("a expression_error")
}

// A failed until of an idempotent action may be repeated; the value is collected once.
func TestRepeatedIterationCollectsOnce(t *testing.T) {
	fails := true
	until := func(*dsl.Scope) (bool, error) {
		if fails {
			return false, errBroken
		}
		return true, nil
	}
	p := start(t, flow(do("a", idempotent, on("postcondition_failed"), repeat(dsl.Repeat{Until: until, Collect: output}, 0))), "do a")
	key := p.key("a")
	p.ok("a").state("a backoff").wait(time.Second, "do a")
	if p.key("a") != key {
		t.Error("the repeated iteration has another key")
	}
	fails = false
	p.ok("a").is("succeeded")
	if n := p.nodeOf("a"); n.Collected.Len() != 1 {
		t.Errorf("%d values were collected in one iteration", n.Collected.Len())
	}
}

func TestDeadlineOfALoop(t *testing.T) {
	p := start(t, flow(do("a", readOnly, deadline(time.Minute), repeat(dsl.Repeat{Until: ready, Interval: every(40 * time.Second)}, 0))), "do a")
	p.okWith("a", `1`).wait(40*time.Second, "do a")
	p.okWith("a", `2`).is("failed").failure("a deadline_exceeded") // the second pause would end after 80 s
	if m := p.view("a").Message; m != "the deadline leaves no time for another iteration after 2" {
		t.Errorf("the message is %q", m)
	}
	p = start(t, flow(do("a", readOnly, deadline(time.Minute), repeat(dsl.Repeat{Until: ready, Interval: every(time.Second)}, 0))), "do a")
	p.okWith("a", `1`).wait(time.Second, "do a")
	if by := p.call("a", 0).CompleteBy; !by.Equal(noon.Add(31 * time.Second)) {
		t.Errorf("complete by %v, want the timeout of this attempt", by)
	}
	p.now = noon.Add(50 * time.Second)
	p.event(machine.TimePassed{})
}

func TestLoopIsUndoneOnce(t *testing.T) {
	p := start(t, flow(do("a", repeat(dsl.Repeat{Collect: output}, 3)), do("b", after("a"))), "do a")
	p.okWith("a", `{"n":1}`, "do a").effects("a done")
	p.okWith("a", `{"n":2}`, "do a").okWith("a", `{"n":3}`, "do b")
	p.permanent("b", "declined", "undo a")
	if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":{"n":3},"all":[{"n":1},{"n":2},{"n":3}]}`; got != want {
		t.Errorf("the undo is called with %s, want %s", got, want)
	}
	if got, want := p.key("a"), machine.IdempotencyKey(42, "a", "", "undo", 0, 0); got != want {
		t.Errorf("the key of the undo is %s, want %s", got, want)
	}
	p.ok("a").is("compensated")
	if p.s.Run().Undone != 1 {
		t.Errorf("%d effects were undone, want 1 for the whole loop", p.s.Run().Undone)
	}
}

func TestDefiniteFailureOfALaterIteration(t *testing.T) {
	p := start(t, flow(do("a", repeat(dsl.Repeat{Collect: output}, 3))), "do a")
	p.okWith("a", `{"n":1}`, "do a").permanent("a", "declined", "undo a").effects("a done")
	if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":{"n":1},"all":[{"n":1}]}`; got != want {
		t.Errorf("the undo is called with %s, want %s", got, want)
	}
	p.ok("a").is("compensated")

	p = start(t, flow(do("a", repeat(dsl.Repeat{Collect: output}, 3))), "do a")
	p.permanent("a", "declined").effects("a none").is("failed") // no earlier iteration had an effect
}

func TestUnknownOutcomeOfALaterIteration(t *testing.T) {
	loop := repeat(dsl.Repeat{Collect: output}, 3)
	t.Run("is asked for", func(t *testing.T) {
		p := start(t, flow(do("a", lookup, loop)), "do a")
		p.okWith("a", `1`, "do a").unknown("a", "agent_lost", "lookup a").okWith("a", `2`, "do a").effects("a done")
	})
	t.Run("was not done", func(t *testing.T) {
		p := start(t, flow(do("a", lookup, loop)), "do a")
		p.okWith("a", `1`, "do a").unknown("a", "agent_lost", "lookup a").notDone("a", "undo a").effects("a done")
	})
	t.Run("is learned before the undo", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent, tries(1), loop)), "do a")
		p.okWith("a", `1`, "do a").unknown("a", "agent_lost", "do a").effects("a done")
		p.okWith("a", `2`, "undo a")
		if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":2,"all":[1,2]}`; got != want {
			t.Errorf("the undo is called with %s, want %s", got, want)
		}
	})
	t.Run("waits for a person", func(t *testing.T) {
		p := start(t, flow(do("a", loop)), "do a")
		p.okWith("a", `1`, "do a").unknown("a", "agent_lost", "alert parked").effects("a done")
		text := story.Explain(p.s, p.wf, p.now)
		if !slices.Contains(text.Remedies, "engine settle o-42 --step a --not-done --reason TEXT") {
			t.Errorf("nobody is told to settle: %q", text.Remedies)
		}
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`2`), By: "ann"})
		p.wait(time.Microsecond, "do a").is("running").okWith("a", `3`).is("succeeded")
		if got := string(p.nodeOf("a").Collected.List().JSON()); got != `[1,2,3]` {
			t.Errorf("collected is %s, want [1,2,3]", got)
		}
	})
	t.Run("a person says it was not done", func(t *testing.T) {
		p := start(t, flow(do("a", loop)), "do a")
		p.okWith("a", `1`, "do a").unknown("a", "agent_lost", "alert parked")
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone, By: "ann"}).is("parked").effects("a done")
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`2`), By: "ann"}).refused("not in doubt")
		key := p.calls[len(p.calls)-1].IdempotencyKey
		p.event(machine.RetryRequested{Step: "a"}, "do a")
		if p.key("a") != key {
			t.Error("the iteration is made again under another key")
		}
		p.okWith("a", `2`, "do a").okWith("a", `3`).is("succeeded")
	})
	t.Run("is settled when its undo has failed", func(t *testing.T) {
		p := start(t, flow(do("a", loop), do("b")), "do a", "do b")
		p.okWith("a", `1`, "do a").permanent("b", "declined")
		p.unknown("a", "agent_lost", "alert compensation_failed").state("a undo_failed")
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone, By: "ann"}, "undo a")
		if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":1,"all":[1]}`; got != want {
			t.Errorf("the undo is called with %s, want %s", got, want)
		}
		p.ok("a").is("compensated")
	})
}

func TestResultAfterTheTurnIsCollected(t *testing.T) {
	p := start(t, flow(do("a", repeat(dsl.Repeat{Collect: output}, 5))), "do a")
	p.okWith("a", `1`, "do a").event(machine.CancelRequested{}).okWith("a", `2`, "undo a")
	if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":2,"all":[1,2]}`; got != want {
		t.Errorf("the undo is called with %s, want %s", got, want)
	}
	p.ok("a").is("cancelled")

	p = start(t, flow(do("a", repeat(dsl.Repeat{Collect: output, Interval: every(time.Minute)}, 5))), "do a")
	p.okWith("a", `1`).event(machine.CancelRequested{}, "undo a").state("a undoing") // between two iterations
	if got, want := string(p.call("a", 0).Input.JSON()), `{"undo":"a","of":1,"all":[1]}`; got != want {
		t.Errorf("the undo is called with %s, want %s", got, want)
	}
}

func TestRetryContinuesTheLoop(t *testing.T) {
	p := start(t, flow(manual, do("a", repeat(dsl.Repeat{Collect: output}, 3))), "do a")
	p.okWith("a", `1`, "do a").permanent("a", "declined", "alert parked")
	p.event(machine.RetryRequested{Step: "a", NewKey: true}, "do a") // nothing was done under the present key
	p.okWith("a", `2`, "do a").okWith("a", `3`).is("succeeded")

	p = start(t, flow(manual, do("a", repeat(dsl.Repeat{Until: ready}, 1))), "do a")
	p.okWith("a", `1`, "alert parked")
	p.event(machine.RetryRequested{Step: "a"}).refused("has taken effect, and its action is not idempotent")
}

func TestPausedRunStartsNoIteration(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: ready, Interval: every(time.Second)}, 0))), "do a")
	p.okWith("a", `1`).event(machine.PauseRequested{}).wait(time.Minute).is("paused")
	p.event(machine.ResumeRequested{}, "do a")

	p = start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: ready}, 0))), "do a")
	p.event(machine.PauseRequested{}).okWith("a", `1`).is("paused")
	p.event(machine.ResumeRequested{}, "do a").okWith("a", `"ready"`).is("succeeded")
}

func TestSettledLoopCannotBeCorrected(t *testing.T) {
	p := start(t, flow(do("a", repeat(dsl.Repeat{Collect: output}, 1)), do("b", after("a"))), "do a")
	p.unknown("a", "agent_lost", "alert parked")
	p.event(machine.PauseRequested{}).refused("parked")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`1`), By: "ann"}, "do b")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`2`), By: "ann"}).refused("not in doubt")
}

func TestCheckpointBelongsToItsIteration(t *testing.T) {
	p := start(t, flow(do("a", idempotent, continueIt, repeat(dsl.Repeat{}, 2))), "do a")
	p.event(machine.AttemptProgress{Attempt: p.call("a", 0).Attempt, Number: 7, Blob: []byte("half")})
	p.ok("a", "do a")
	if c := p.call("a", 0).Checkpoint; c != nil {
		t.Errorf("the second iteration begins at checkpoint %+v of the first", c)
	}
}

func TestLoopOfValues(t *testing.T) {
	sum := value("sum", repeat(dsl.Repeat{Collect: output, Until: gathered(machine.MaxAtOnce + 5)}, 0))
	sum.Value = func(sc *dsl.Scope) (dsl.Value, error) { return js(fmt.Sprintf(`{"n":%d}`, count(sc))), nil }
	p := start(t, flow(sum, do("b", after("sum"))))
	if n := p.nodeOf("sum"); int(n.Collected.Len()) != machine.MaxAtOnce+1 {
		t.Fatalf("one decision made %d iterations, want %d", n.Collected.Len(), machine.MaxAtOnce+1)
	}
	p.wait(time.Microsecond, "do b").effects("sum none")
	if got, want := p.output("sum"), fmt.Sprintf(`{"n":%d}`, machine.MaxAtOnce+4); got != want {
		t.Errorf("the output is %s, want %s", got, want)
	}
}

func TestLoopOfTimers(t *testing.T) {
	p := start(t, flow(timer("cool", time.Hour, repeat(dsl.Repeat{}, 2)), do("b", after("cool"))))
	p.wait(time.Hour).state("cool waiting").wait(time.Hour, "do b")
}

func TestLoopOfChildren(t *testing.T) {
	p := start(t, flow(do("c", child, noUndo, repeat(dsl.Repeat{Until: ready, Interval: every(time.Minute), Collect: output}, 9)), do("b", after("c"))), "do c")
	first := p.key("c")
	p.okWith("c", `"new"`).state("c backoff").wait(time.Minute, "do c")
	if p.key("c") == first {
		t.Error("two iterations ask for one child run")
	}
	p.event(machine.TakenOver{By: 2, From: 1}, "do c") // for the same child
	p.okWith("c", `"ready"`, "do b").state("c succeeded")
	if got := string(p.nodeOf("c").Collected.List().JSON()); got != `["new","ready"]` {
		t.Errorf("collected is %s, want the outputs of both child runs", got)
	}
	p = start(t, flow(do("c", child, noUndo, repeat(dsl.Repeat{Until: ready}, 9)), do("b", after("c"))), "do c")
	p.okWith("c", `"new"`, "do c").permanent("c", "declined").is("failed").failure("c declined") // of the second child
}

func TestLoopOfWaits(t *testing.T) {
	loop := repeat(dsl.Repeat{Collect: output, Until: gathered(2)}, 0)
	p := start(t, flow(await("votes", "vote", loop), do("b", after("votes"))))
	p.is("waiting").signal("vote", `{"n":1}`).is("waiting").signal("vote", `{"n":2}`, "do b")
	if got := string(p.nodeOf("votes").Collected.List().JSON()); got != `[{"n":1},{"n":2}]` {
		t.Errorf("collected is %s", got)
	}
	var waits []int
	for _, f := range p.facts {
		if f.Kind == story.FactWaitStarted {
			waits = append(waits, f.Iteration)
		}
	}
	if !slices.Equal(waits, []int{1, 2}) {
		t.Errorf("the facts tell of the waits of iterations %v, want 1 and 2", waits)
	}
	// Early signals: each iteration takes one, and none is taken twice.
	p = start(t, flow(do("a"), await("votes", "vote", after("a"), loop), do("b", after("votes"))), "do a")
	p.signal("vote", `{"n":1}`).signal("vote", `{"n":2}`).signal("vote", `{"n":3}`)
	p.ok("a").wait(time.Microsecond, "do b")
	if got := string(p.nodeOf("votes").Collected.List().JSON()); got != `[{"n":1},{"n":2}]` {
		t.Errorf("collected is %s, want the two oldest signals", got)
	}
	if left := p.s.EarlySignals(); len(left) != 1 || left[0].Number != 3 {
		t.Errorf("the run keeps %d signals, want the third", len(left))
	}
	// The deadline covers all iterations.
	p = start(t, flow(await("votes", "vote", goesOn, deadline(time.Hour), repeat(dsl.Repeat{Collect: output}, 9)), do("b", after("votes"))))
	p.signal("vote", `1`).wait(time.Hour, "do b").state("votes succeeded")
	if v := p.view("votes"); string(v.Output.JSON()) != `null` || p.nodeOf("votes").Collected.Len() != 1 {
		t.Errorf("the output is %s after a timeout, with %d values", v.Output.JSON(), p.nodeOf("votes").Collected.Len())
	}
	p = start(t, flow(await("votes", "vote", goesOn, deadline(time.Hour), repeat(dsl.Repeat{Interval: every(2 * time.Hour)}, 9)), do("b", after("votes"))))
	p.signal("vote", `1`, "do b").state("votes succeeded") // the pause would end after the deadline
}

func TestLimitsOfCollected(t *testing.T) {
	big := js(`"` + strings.Repeat("x", 6<<20) + `"`)
	p := &play{ceilings: machine.Ceilings{Values: 1 << 30}}
	collect := func(*dsl.Scope) (dsl.Value, error) { return big, nil }
	*p = *start(t, flow(value("sum", repeat(dsl.Repeat{Collect: collect}, 9))))
	p.is("failed").failure("sum limit_exceeded")
	if n := p.nodeOf("sum"); n.Collected.Len() != 2 {
		t.Errorf("%d values of 6 MiB were collected, want 2", n.Collected.Len())
	}

	var c *model.Collected
	for range model.MaxCollected {
		c = c.Append(dsl.Value{}, c.Len())
	}
	p = start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Collect: output}, 0))), "do a")
	n := p.nodeOf("a").Box()
	n.More = &model.More{Collected: c, Loop: model.Loop{Iteration: model.MaxCollected}}
	p.s.SetNode(p.find("a"), n)
	rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.AttemptOK{Attempt: p.call("a", 0).Attempt, Output: js(`1`)}})
	p.s.Apply(rec)
	p.failure("a limit_exceeded")
}

// A loop of n iterations takes a journal that grows with n, and not with its square.
func TestJournalOfALoopGrowsByOneValue(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Collect: output}, 0))), "do a")
	size := func() int { return len(p.j.rows[len(p.j.rows)-1]) }
	p.okWith("a", `"output number 1001"`, "do a").okWith("a", `"output number 1002"`, "do a")
	early := size()
	for k := range 300 {
		p.okWith("a", fmt.Sprintf(`"output number %d"`, 1003+k), "do a")
	}
	if late := size(); late > early+20 {
		t.Errorf("a record of iteration 2 has %d bytes, and of iteration 302 it has %d", early, late)
	}
	if n := p.nodeOf("a"); len(n.Attempts) > model.KeptAttempts+1 {
		t.Errorf("the state keeps %d attempts", len(n.Attempts))
	}
	if got := p.view("a").Attempts; got != 303 {
		t.Errorf("%d attempts are counted, want 303", got)
	}
}

// Two records that were decided on one state do not disturb each other.
func TestDecisionsShareCollectedValues(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Collect: output}, 0))), "do a")
	p.okWith("a", `1`, "do a")
	other := p.s.Clone()
	id := p.call("a", 0).Attempt
	one := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.AttemptOK{Attempt: id, Output: js(`2`)}})
	two := machine.Decide(p.wf, other, machine.Input{At: p.now, Event: machine.AttemptOK{Attempt: id, Output: js(`3`)}})
	p.s.Apply(one)
	other.Apply(two)
	if a, b := p.s.Nodes()[0].Collected.List(), other.Nodes()[0].Collected.List(); string(a.JSON()) != `[1,2]` || string(b.JSON()) != `[1,3]` {
		t.Errorf("collected are %s and %s, want [1,2] and [1,3]", a.JSON(), b.JSON())
	}
}

func TestSensitiveCollectedValueIsSealed(t *testing.T) {
	hidden := func(*dsl.Scope) (dsl.Value, error) {
		return dsl.NewValue([]byte(`{"t":"x"}`), []string{"/t"}, nil), nil
	}
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Collect: hidden}, 0))), "do a")
	p.okWith("a", `1`, "do a")
	if !p.last.Sensitive() {
		t.Error("the record with a sensitive collected value is not sealed")
	}
	if got := p.nodeOf("a").Collected.List().Sensitive(); !slices.Equal(got, []string{"/0/t"}) {
		t.Errorf("the sensitive parts of the list are %q, want /0/t", got)
	}
	if list := p.plain.Nodes()[0].Collected.List(); !bytes.Equal(list.JSON(), []byte(`[{"t":"x"}]`)) || len(list.Sensitive()) != 1 {
		t.Errorf("the journal gives %s with sensitive %q", list.JSON(), list.Sensitive())
	}
}

func TestStoryOfALoop(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Until: ready, Interval: every(15 * time.Second)}, 80))), "do a")
	if text := story.Explain(p.s, p.wf, p.now).String(); !strings.Contains(text, "a runs: attempt 1 of shop.a, in iteration 1 of at most 80") {
		t.Errorf("the explanation lacks the iteration: %s", text)
	}
	p.okWith("a", `1`)
	want := "a has made iteration 1 of at most 80 and its until was not true yet; the next iteration starts at 12:00:15Z (in 15s)."
	if text := story.Explain(p.s, p.wf, p.now).String(); !strings.Contains(text, want) {
		t.Errorf("the explanation lacks %q: %s", want, text)
	}
	p.wait(15*time.Second, "do a")
	var got []string
	for _, f := range p.facts {
		got = append(got, fmt.Sprint(f.Kind, " ", f.Attempt, " ", f.Iteration, "/", f.Iterations))
	}
	facts := []string{"run_created 0 0/0", "attempt_started 1 1/80", "attempt_finished 1 0/0", "retry_scheduled 0 2/80", "attempt_started 1 2/80"}
	if !slices.Equal(got, facts) {
		t.Errorf("got facts %q, want %q", got, facts)
	}
	if calls := p.view("a").Calls; calls[0].Key != "" || calls[1].Key == "" {
		t.Errorf("the keys are %q and %q: that of an earlier iteration is not known", calls[0].Key, calls[1].Key)
	}
}

// A step that waits for the next iteration has used what its dependencies gave it.
func TestSettlementIsNotCorrectedUnderALoop(t *testing.T) {
	p := start(t, flow(do("a"), timer("cool", time.Minute, after("a"), repeat(dsl.Repeat{}, 3))), "do a")
	p.unknown("a", "agent_lost", "alert parked")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`1`), By: "ann"})
	p.wait(time.Minute)
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`2`), By: "ann"}).refused("cool has begun because of that")
}
