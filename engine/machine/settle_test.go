package machine

import (
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
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
	bad := SettleRequested{Step: "a", As: SettleSucceeded, Output: js(`{"other":"x"}`)}
	good := SettleRequested{Step: "a", As: SettleSucceeded, Output: js(`{"id":"x"}`)}
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
