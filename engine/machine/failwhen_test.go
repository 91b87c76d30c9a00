package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// failWhen takes the output "no" for a refusal.
func failWhen(permanent bool) option {
	return func(s *spec) {
		s.FailWhen = append(s.FailWhen, dsl.Refusal{Permanent: permanent, Condition: condition(func(sc *dsl.Scope) (bool, error) {
			return string(sc.Self.Output.JSON()) == `"no"`, nil
		}, "no_stock")})
	}
}

func TestRefusalInAReplyIsADefiniteFailure(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), failWhen(false))), "do a")
	p.ok("a", "do b").okWith("b", `"no"`, "undo a").effects("b none").failure("b no_stock")
	p.ok("a").is("compensated")

	p = start(t, flow(do("a", failWhen(false))), "do a")
	p.okWith("a", `"yes"`).is("succeeded")
}

func TestRefusalIsRepeatedAsItsCodeSays(t *testing.T) {
	p := start(t, flow(do("a", failWhen(false), on("no_stock"), tries(2))), "do a")
	p.okWith("a", `"no"`).state("a backoff").wait(time.Second, "do a").okWith("a", `"no"`).is("failed")

	p = start(t, flow(do("a", failWhen(true), on("no_stock"), tries(2))), "do a")
	p.okWith("a", `"no"`).is("failed").failure("a no_stock")
}

func TestRefusalIsCaught(t *testing.T) {
	p := start(t, flow(do("a", failWhen(false), catch(`"none"`, "no_stock")), do("b", after("a"))), "do a")
	p.okWith("a", `"no"`, "do b").state("a caught").effects("a none")
}

func TestRefusalThatALookupFinds(t *testing.T) {
	p := start(t, flow(do("a", lookup, failWhen(false)), do("b", after("a"))), "do a")
	p.unknown("a", "agent_lost", "lookup a")
	p.okWith("a", `"no"`).effects("a none").is("failed").failure("a no_stock")
}

func TestRefusalThatCannotBeEvaluatedVouchesForNothing(t *testing.T) {
	s := do("a")
	s.FailWhen = []dsl.Refusal{{Condition: condition(func(*dsl.Scope) (bool, error) { return false, errors.New("attribute of null") }, "x")}}
	p := start(t, flow(s), "do a")
	p.ok("a", "undo a").effects("a done").failure("a postcondition_failed")
}

func TestErrorDataOfAFailure(t *testing.T) {
	code := func(sc *dsl.Scope) (dsl.Value, error) { return sc.Step(0).One.ErrorData, nil }
	v := value("why", after("a"))
	v.Value = code
	p := start(t, flow(do("a", catch("", "declined")), v), "do a")
	p.event(machine.AttemptFailed{Attempt: p.call("a", 0).Attempt, Code: "declined", Data: js(`{"balance":3}`)}).is("succeeded")
	if got := p.output("why"); got != `{"balance":3}` {
		t.Errorf("error.data is %s, want what the agent sent", got)
	}

	p = start(t, flow(do("a", failWhen(false))), "do a")
	p.okWith("a", `"no"`)
	if got := string(p.view("a").Data.JSON()); got != `"no"` {
		t.Errorf("error.data of a refusal is %s, want the reply", got)
	}

	p = start(t, flow(do("a", tries(9), deadline(2*time.Second))), "do a")
	p.event(machine.AttemptFailed{Attempt: p.call("a", 0).Attempt, Code: "flaky", Message: "busy", RetryAfter: time.Minute, Data: js(`[1]`)})
	if got, want := string(p.view("a").Data.JSON()), `{"code":"flaky","data":[1],"message":"busy"}`; got != want || p.view("a").Code != machine.CodeDeadlineExceeded {
		t.Errorf("error is %s with data %s, want deadline_exceeded with %s", p.view("a").Code, got, want)
	}
}
