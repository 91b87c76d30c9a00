package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A signal ends one wait, also if the next wait for it begins in the same decision.
func TestOneSignalEndsOneOfTwoWaitsInARow(t *testing.T) {
	p := start(t, flow(await("one", "go"), await("two", "go", after("one"))))
	p.signal("go", `1`).state("one succeeded", "two waiting").is("waiting")
	p.signal("go", `2`).is("succeeded")
	if one, two := p.output("one"), p.output("two"); one != `1` || two != `2` {
		t.Errorf("the outputs are %s and %s, want 1 and 2", one, two)
	}
}

// An early signal ends one wait too, also if two waits begin in the same decision.
func TestOneEarlySignalEndsOneOfTwoWaits(t *testing.T) {
	p := start(t, flow(do("a"), await("one", "go", after("a")), await("two", "go", after("a"))), "do a")
	p.signal("go", `1`)
	p.ok("a").state("one succeeded", "two waiting")
	p.signal("go", `2`).is("succeeded")

	p = start(t, flow(do("a"), await("one", "go", after("a")), await("two", "go", after("one"))), "do a")
	p.signal("go", `1`).signal("go", `2`)
	p.ok("a").is("succeeded")
	if one, two := p.output("one"), p.output("two"); one != `1` || two != `2` {
		t.Errorf("the outputs are %s and %s, want 1 and 2", one, two)
	}
}

// A signal that has ended a wait is gone: a wait that begins later does not find it.
func TestTakenSignalIsGone(t *testing.T) {
	p := start(t, flow(do("a"), await("one", "go", after("a")), do("b", after("one")), await("two", "go", after("b"))), "do a")
	p.signal("go", `1`)
	p.ok("a", "do b").ok("b").state("one succeeded", "two waiting").is("waiting")
}

// An early signal stays if it came before a signal that another step takes.
func TestEarlySignalStaysBesideOneThatIsTaken(t *testing.T) {
	p := start(t, flow(do("a"), await("now", "now"), await("later", "later", after("a"))), "do a")
	p.signal("later", `1`).signal("now", `2`).state("now succeeded")
	p.ok("a").is("succeeded")
	if got := p.output("later"); got != `1` {
		t.Errorf("the output of later is %s, want 1", got)
	}
}

// A signal passes a wait for which its payload does not fit, and goes to the next one.
func TestPayloadChoosesTheWait(t *testing.T) {
	strict := await("strict", "go") // its payload must not be "bad"
	loose := await("loose", "go")
	loose.Wait.Payload = func(data []byte) (dsl.Value, error) { return dsl.NewValue(data, nil, nil), nil }
	p := start(t, flow(strict, loose))
	p.signal("go", `"bad"`).state("strict waiting", "loose succeeded")
	p.signal("go", `"good"`).is("succeeded")
	if got := p.output("strict"); got != `"good"` {
		t.Errorf("the output of strict is %s, want \"good\"", got)
	}
}

// A timer counts from when its step could start, and not from the start of the run.
func TestTimerCountsFromWhenItsStepIsReady(t *testing.T) {
	p := start(t, flow(do("a"), timer("cool", time.Hour, after("a"))), "do a")
	p.now = p.now.Add(20 * time.Second)
	p.ok("a").is("waiting")
	p.wait(time.Hour - time.Second).state("cool waiting")
	p.wait(time.Second).is("succeeded")
}

// A run that turns back waits for no signal any more, and its timers do not ring.
func TestWaitsEndWhenTheRunTurnsBack(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), await("w", "go"), timer("cool", time.Hour)), "do a")
	p.ok("a", "do b").fail("b", "declined", "undo a").state("w cancelled", "cool cancelled")
	p.ok("a").is("compensated")
}
