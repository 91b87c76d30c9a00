package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// undoNeeds makes the undo of a step read a field of the output.
func undoNeeds(field string) option {
	return func(s *spec) {
		s.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if !strings.Contains(string(sc.Self.Output.JSON()), `"`+field+`"`) {
				return dsl.Value{}, errors.New("self.output has no attribute " + field)
			}
			return sc.Self.Output, nil
		}
	}
}

// An output is refused with which the step's undo could not be evaluated, while
// it can still be corrected.
func TestSettleTheUndoCanBeEvaluated(t *testing.T) {
	bad := machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{"other":"x"}`)}
	good := machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{"id":"x"}`)}
	t.Run("before the run turns back", func(t *testing.T) {
		p := start(t, flow(do("a", undoNeeds("id")), do("b", after("a"))), "do a")
		p.unknown("a", "agent_lost", "alert parked")
		p.event(bad).refused("the undo of a cannot be evaluated with it: compensate: self.output has no attribute id").is("parked").effects("a maybe")
		if r, _ := p.last.Refused(); !r.WantsOutput() {
			t.Errorf("the refusal %+v does not say that another output helps", r)
		}
		p.event(good, "do b")
	})
	t.Run("while it is undone", func(t *testing.T) {
		p := start(t, flow(do("a", undoNeeds("id")), do("b")), "do a", "do b")
		p.fail("b", "declined")
		p.unknown("a", "agent_lost", "alert compensation_failed")
		p.event(bad).refused("the undo of a").is("compensation_failed").effects("a maybe")
		p.event(good, "undo a")
	})
	t.Run("the failure is known to it", func(t *testing.T) {
		a := do("a")
		a.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if sc.Failure.Code == "" || sc.Failure.Step == "" {
				return dsl.Value{}, errors.New("no failure")
			}
			return js(`{}`), nil
		}
		p := start(t, flow(a, do("b", catch("", "*"))), "do a", "do b")
		p.unknown("a", "agent_lost", "alert parked")
		p.event(bad).is("running")
	})
	t.Run("an undo that does not read the output is not concerned", func(t *testing.T) {
		p := start(t, flow(do("a", undoNeeds("id"), undoBlind, catch("", "*")), do("b")), "do a", "do b")
		p.unknown("a", "agent_lost").state("a caught").effects("a maybe")
		p.event(bad).effects("a done")
	})
}

func settleAs(step string, output string) machine.SettleRequested {
	if output == "" {
		return machine.SettleRequested{Step: step, As: machine.SettleNotDone, By: "ann"}
	}
	return machine.SettleRequested{Step: step, As: machine.SettleSucceeded, Output: js(output), By: "ann"}
}

// A wrong statement can be corrected until something was done on its strength.
func TestSettleIsCorrected(t *testing.T) {
	none := map[string]machine.Slot{"shop": {}}
	full := map[string]machine.Slot{"shop": {Free: 9}}
	parked := func(t *testing.T, items ...any) *play {
		t.Helper()
		p := startWith(t, flow(items...), full, "do a")
		p.unknown("a", "agent_lost", "alert parked")
		p.slots = none // what is settled becomes ready, and nothing starts
		return p
	}
	t.Run("not done, then succeeded", func(t *testing.T) {
		p := parked(t, do("a"), do("b", after("a")))
		p.event(settleAs("a", "")).is("parked").effects("a none")
		p.event(settleAs("a", "")).refused("not in doubt")
		p.event(settleAs("a", `"bad"`)).refused("schema")
		p.event(settleAs("a", `{"id":"x"}`)).is("running").state("a succeeded", "b held").effects("a done")
		p.slots = full
		p.event(machine.TimePassed{}, "do b")
		p.ok("b").is("succeeded")
	})
	t.Run("another output", func(t *testing.T) {
		p := parked(t, do("a"), do("b", after("a")))
		p.event(settleAs("a", `{"id":"wrong, and long enough to be referred to"}`)).state("b held")
		p.event(settleAs("a", `{"id":"wrong, and long enough to be referred to"}`)).refused("not in doubt")
		p.event(settleAs("a", `{"id":"right, and long enough to be referred to"}`)).state("b held")
		p.slots = full
		p.event(machine.TimePassed{}, "do b")
		if in := string(p.call("b", 0).Input.JSON()); !strings.Contains(in, "right") {
			t.Errorf("b is called with %s", in)
		}
		p.event(settleAs("a", `{"id":"x"}`)).refused("b has begun because of that")
		p.event(settleAs("a", "")).refused("b has begun because of that")
		p.ok("b").is("succeeded")
	})
	t.Run("succeeded, then not done", func(t *testing.T) {
		p := parked(t, do("a"), do("b", after("a")), do("c", after("b")))
		p.event(settleAs("a", `{"id":"x"}`)).is("running").state("b held")
		p.event(settleAs("a", ""), "alert parked").is("parked").failure("a agent_lost").state("a failed", "b pending", "c pending").effects("a none")
		p.slots = full
		p.event(machine.RetryRequested{}, "do a")
		p.event(settleAs("a", `{"id":"x"}`)).refused("still awaited")
		p.ok("a", "do b")
		p.ok("b", "do c")
		p.ok("c").is("succeeded")
	})
	t.Run("not after a retry was asked for", func(t *testing.T) {
		p := parked(t, do("a"))
		p.event(settleAs("a", ""))
		p.event(machine.RetryRequested{}).state("a held")
		p.event(settleAs("a", `{"id":"x"}`)).refused("still awaited")
	})
	t.Run("a skipped dependent has ended on its strength", func(t *testing.T) {
		p := parked(t, do("a"), do("b", after("a"), when(false)), do("c", after("b")))
		p.event(settleAs("a", `{"id":"x"}`)).state("b skipped", "c held")
		p.event(settleAs("a", "")).refused("b has begun")
	})
	t.Run("a catch took what was not done", func(t *testing.T) {
		a := do("a", catch(`{"id":"none"}`, "agent_lost"))
		p := parked(t, do("a"), do("b", after("a")))
		p.wf.Steps[0].Catch = a.Catch // the failure became one that it takes
		p.event(settleAs("a", "")).is("running").state("a caught", "b held")
		p.event(settleAs("a", `{"id":"x"}`)).is("running").state("a succeeded", "b held")
		p.event(settleAs("a", "")).is("running").state("a caught", "b held")
		p.slots = full
		p.event(machine.TimePassed{}, "do b")
		if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":{"id":"none"}}` {
			t.Errorf("b is called with %s", in)
		}
	})
	t.Run("the effect of a caught step", func(t *testing.T) {
		p := startWith(t, flow(do("a", catch("", "*")), do("b", after("a"))), full, "do a")
		p.unknown("a", "agent_lost", "do b")
		p.event(settleAs("a", "")).effects("a none")
		p.event(settleAs("a", `{"id":"x"}`)).effects("a done").state("a caught").is("running")
		p.event(settleAs("a", `{"id":"y"}`)).effects("a done")
		p.fail("b", "declined", "undo a")
		if in := string(p.call("a", 0).Input.JSON()); in != `{"undo":"a","of":{"id":"y"}}` {
			t.Errorf("the undo of a is called with %s", in)
		}
		p.event(settleAs("a", "")).refused("not in doubt")
	})
	t.Run("before its undo is called", func(t *testing.T) {
		for name, ev := range map[string]machine.SettleRequested{"another output": settleAs("a", `{"id":"y"}`), "not done": settleAs("a", "")} {
			t.Run(name, func(t *testing.T) {
				p := startWith(t, flow(do("a"), do("b")), full, "do a", "do b")
				p.fail("b", "declined")
				p.unknown("a", "agent_lost", "alert compensation_failed")
				p.slots = none
				p.event(settleAs("a", `{"id":"x"}`)).is("compensating").state("a undoing")
				if ev.As == machine.SettleNotDone {
					p.event(ev).is("failed").effects("a none")
					return
				}
				p.event(ev).is("compensating")
				p.slots = full
				p.event(machine.TimePassed{}, "undo a")
				if in := string(p.call("a", 0).Input.JSON()); in != `{"undo":"a","of":{"id":"y"}}` {
					t.Errorf("the undo of a is called with %s", in)
				}
				p.event(settleAs("a", `{"id":"z"}`)).refused("not in doubt")
				p.ok("a").is("compensated")
			})
		}
	})
	t.Run("an undo whose input failed after all", func(t *testing.T) {
		a := do("a")
		a.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
			if sc.Failure.Code == "cancelled" && strings.Contains(string(sc.Self.Output.JSON()), "wrong") {
				return dsl.Value{}, errBroken
			}
			return sc.Self.Output, nil
		}
		p := parked(t, a, do("b", after("a")))
		p.event(settleAs("a", `{"id":"wrong"}`)).state("b held")
		p.slots = full
		p.slots = none
		p.event(machine.CancelRequested{By: "ann"}).is("compensating")
		p.slots = full
		p.event(machine.TimePassed{}, "alert compensation_failed").state("a undo_failed")
		p.event(settleAs("a", `{"id":"right"}`), "undo a").is("compensating")
		p.ok("a").is("cancelled")
	})
	t.Run("an instance", func(t *testing.T) {
		p := startWith(t, flow(do("a", each("k", "l")), do("b", after("a"))), full, "do a[k]", "do a[l]")
		p.unknown("a[k]", "agent_lost", "alert parked")
		p.event(settleAs(`a["k"]`, `{"id":"k"}`)).is("running").state("a waiting", "a[k] succeeded")
		p.event(settleAs(`a["k"]`, ""), "alert parked").is("parked").state("a failed", "a[k] failed")
		p.event(settleAs(`a["k"]`, `{"id":"k"}`)).is("running").state("a waiting", "a[k] succeeded")
		p.slots = none
		p.ok("a[l]").state("a succeeded", "b held")
		p.event(settleAs(`a["k"]`, "")).refused("a has ended because of that")
		p.event(settleAs(`a["k"]`, `{"id":"better"}`)).state("b held")
		p.slots = full
		p.event(machine.TimePassed{}, "do b")
		if in := string(p.call("b", 0).Input.JSON()); !strings.Contains(in, "better") {
			t.Errorf("b is called with %s", in)
		}
	})
	t.Run("the pivot", func(t *testing.T) {
		p := parked(t, do("a", pivot, undoByKey), do("b", after("a")))
		p.event(settleAs("a", `{"id":"x"}`)).state("b held")
		p.event(settleAs("a", "")).refused("the pivot has succeeded")
		p.event(settleAs("a", `{"id":"y"}`)).state("b held")
	})
}
