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
