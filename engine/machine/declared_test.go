package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// declared makes the action of a step a declared action that uses the action "post". Its input
// has the idempotency key of the call.
func declared(s *spec) {
	s.Do.Uses, s.Do.Keyed = "post", true
	s.Do.Stated = func(data []byte) (dsl.Value, error) {
		if !strings.Contains(string(data), `"id"`) {
			return dsl.Value{}, errors.New("id is missing")
		}
		return js(string(data)), nil
	}
	s.Input = func(sc *dsl.Scope) (dsl.Value, error) {
		if sc.Self == nil {
			return dsl.Value{}, errors.New("no key")
		}
		return js(`"` + sc.Self.Key + `"`), nil
	}
}

// The agent is asked for the used action. The key in the input is the key that the call has, for
// each instance and also with a business key.
func TestDeclaredActionSendsItsKey(t *testing.T) {
	business := func(s *spec) {
		s.IdempotencyKey = func(sc *dsl.Scope) (string, error) { return "pay-" + sc.Each.Key, nil }
	}
	p := start(t, flow(do("a", declared, each("x", "y")), do("b", declared, business, each("x")), do("c")), "do a[x]", "do a[y]", "do b[x]", "do c")
	keys := map[string]bool{}
	for _, c := range p.calls {
		action, input := "post", `"`+c.IdempotencyKey+`"`
		if p.node(c) == "c" {
			action, input = "c", string(c.Input.JSON())
		}
		if c.Action != action || string(c.Input.JSON()) != input {
			t.Errorf("%s: action %s with input %s, want %s with %s", p.node(c), c.Action, c.Input.JSON(), action, input)
		}
		keys[c.IdempotencyKey] = true
	}
	if len(keys) != 4 || !keys["pay-x"] {
		t.Errorf("keys of the calls: %v", keys)
	}
}

func TestDeclaredActionWithoutKeyOfItsOwn(t *testing.T) {
	broken := func(s *spec) {
		s.IdempotencyKey = func(*dsl.Scope) (string, error) { return "", errors.New("attribute of null") }
	}
	p := start(t, flow(do("a", declared, broken)))
	p.is("failed").failure("a expression_error")
}

// A person states the declared output, which Output itself would not accept.
func TestDeclaredActionStatedOutput(t *testing.T) {
	p := start(t, flow(do("a", declared, func(s *spec) {
		s.Do.Output = func([]byte) (dsl.Value, error) { return dsl.Value{}, errors.New("not a reply") }
	}), do("b", after("a"))), "do a")
	p.unknown("a", "agent_lost", "alert parked")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{}`)}).refused("id is missing")
	p.event(settleAs("a", `{"id":7}`), "do b").effects("a done")
}

// finds gives a step, and its undo, a lookup that is another action.
func finds(input func(*dsl.Scope) (dsl.Value, error)) option {
	return func(s *spec) {
		s.Do.Lookup, s.Undo.Do.Lookup, s.Undo.Do.Idempotent = true, true, false
		s.Do.Asks = &dsl.Action{Agent: s.Do.Agent, Name: "find", Uses: "get", ReadOnly: true}
		s.Undo.Do.Asks = &dsl.Action{Agent: s.Undo.Do.Agent, Name: "gone", ReadOnly: true}
		s.Do.AskInput, s.Undo.Do.AskInput = input, input
	}
}

// The lookup of a declared action is a call of another action. Its input has the key of the call that
// it asks about, and in the lookup of an undo the key of the call that is undone.
func TestDeclaredLookupCallsAnotherAction(t *testing.T) {
	keyed := finds(func(sc *dsl.Scope) (dsl.Value, error) { return js(`{"key":"` + sc.Self.Key + `"}`), nil })
	p := start(t, flow(do("a", keyed), do("b", after("a"))), "do a")
	p.unknown("a", "agent_lost", "lookup a")
	p.okWith("a", `{"id":1}`, "do b").effects("a done")
	p.fail("b", "invalid", "undo a")
	p.unknown("a", "agent_lost", "lookup a")
	p.ok("a").is("compensated")
	do, ask, undo, askUndo := p.calls[0], p.calls[1], p.calls[3], p.calls[4]
	want := `{"key":"` + do.IdempotencyKey + `"}`
	if ask.Action != "get" || string(ask.Input.JSON()) != want || ask.IdempotencyKey != do.IdempotencyKey || ask.ForwardKey != "" {
		t.Errorf("lookup %+v, want the action get, %s and the key of the call", ask, want)
	}
	if askUndo.Action != "gone" || string(askUndo.Input.JSON()) != want || askUndo.IdempotencyKey != undo.IdempotencyKey || askUndo.ForwardKey != do.IdempotencyKey {
		t.Errorf("lookup of the undo %+v, want the action gone, %s and the keys of the undo", askUndo, want)
	}
}

// If the input of a lookup cannot be evaluated, the engine continues as after the last lookup that
// did not find out the outcome: it neither asks with another input nor asks again and again.
func TestDeclaredLookupWithoutInput(t *testing.T) {
	broken := finds(func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errors.New("attribute of null") })
	p := start(t, flow(do("a", broken)), "do a")
	p.unknown("a", "agent_lost", "alert parked").is("parked").failure("a agent_lost")
	p = start(t, flow(do("a", broken, undoByKey)), "do a")
	p.unknown("a", "agent_lost", "undo a").failure("a agent_lost")
	p.unknown("a", "agent_lost", "alert compensation_failed").is("compensation_failed")
	p = start(t, flow(do("a", broken, undoByKey)), "do a")
	p.event(machine.CancelRequested{})
	p.unknown("a", "agent_lost", "undo a")
	p.ok("a").is("cancelled")
}
