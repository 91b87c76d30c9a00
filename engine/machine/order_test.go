package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

// S2, S41: what happens when the attempts are used up is chosen per step.
func TestOrderAfterAFailedAttempt(t *testing.T) {
	t.Run("repeat before catch", func(t *testing.T) {
		p := start(t, flow(do("a", tries(2), catch("", "flaky"))), "do a")
		p.fail("a", "flaky").state("a backoff")
		p.wait(second(1), "do a")
		p.fail("a", "flaky").state("a caught").is("succeeded")
	})
	t.Run("cool-down before catch", func(t *testing.T) {
		p := start(t, flow(do("a", catch("", "flaky"), exhausted(dsl.ExhaustedCoolDown), deadline(time.Hour)), do("b", after("a"))), "do a")
		for range 3 {
			p.fail("a", "flaky").state("a backoff")
			p.wait(15*time.Minute, "do a")
		}
		p.fail("a", "flaky", "do b").state("a caught") // no cool-down is left
	})
	t.Run("catch at once for what is never repeated", func(t *testing.T) {
		p := start(t, flow(do("a", catch("", "declined"), exhausted(dsl.ExhaustedCoolDown)), do("b", after("a"))), "do a")
		p.fail("a", "declined", "do b").state("a caught")
	})
	t.Run("catch before on_exhausted", func(t *testing.T) {
		p := start(t, flow(do("a", catch("", "flaky"), exhausted(dsl.ExhaustedPark))), "do a")
		p.fail("a", "flaky").is("succeeded")
	})
	t.Run("on_exhausted = park", func(t *testing.T) {
		p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark))), "do a")
		p.fail("a", "flaky", "alert parked").is("parked").failure("a flaky") // S59
	})
	t.Run("on_exhausted does not reach what is never repeated", func(t *testing.T) {
		p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark))), "do a")
		p.fail("a", "declined").is("failed")
	})
	t.Run("on_exhausted = compensate in a manual workflow", func(t *testing.T) {
		p := start(t, flow(do("a", exhausted(dsl.ExhaustedCompensate)), manual), "do a")
		p.fail("a", "flaky").is("failed")
		p = start(t, flow(do("a", exhausted(dsl.ExhaustedCompensate)), manual), "do a")
		p.fail("a", "declined", "alert parked").is("parked")
	})
	t.Run("mode manual", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a")), manual), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "alert parked").is("parked")
		p.event(machine.CompensateRequested{}, "undo a")
		p.ok("a").is("compensated").failure("b declined")
	})
}

// S3: a transient fault is outlasted by attempts, a long-lasting one by
// cool-downs; a crash is the takeover of unknown_test.go.
func TestOrderCoolDown(t *testing.T) {
	p := start(t, flow(do("a", tries(2), exhausted(dsl.ExhaustedCoolDown))), "do a")
	for round := range 3 {
		p.fail("a", "flaky")
		p.wait(second(1), "do a")
		p.fail("a", "flaky").state("a backoff")
		p.wait(15*time.Minute, "do a")
		if c := p.call("a", 0); c.Number != 1 {
			t.Errorf("round %d: got attempt %d, want a fresh round", round+2, c.Number)
		}
	}
	p.fail("a", "flaky")
	p.wait(second(1), "do a")
	p.fail("a", "flaky").is("failed") // three cool-downs, then as unset
}

func TestOrderCoolDownMustFitTheDeadline(t *testing.T) {
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedCoolDown), deadline(10*time.Minute), catch("", "flaky"))), "do a")
	p.fail("a", "flaky").state("a caught")
}

// S26: the key is the same for all attempts, engines and restarts, and
// different across steps, instances and directions.
func TestIdempotencyKey(t *testing.T) {
	p := start(t, flow(do("a", idempotent, each("k", "l")), do("b", after("a"))), "do a[k]", "do a[l]")
	key := p.call("a[k]", 0).IdempotencyKey
	p.fail("a[k]", "flaky")
	p.wait(second(1), "do a[k]")
	if got := p.call("a[k]", 0).IdempotencyKey; got != key {
		t.Errorf("the second attempt has key %s, the first had %s", got, key)
	}
	p.event(machine.TakenOver{By: 2, From: 1}, "do a[k]", "do a[l]")
	if got := p.call("a[k]", 0).IdempotencyKey; got != key {
		t.Errorf("after a takeover the key is %s, it was %s", got, key)
	}
	seen := map[string]bool{key: true, p.call("a[l]", 0).IdempotencyKey: true}
	p.ok("a[k]")
	p.ok("a[l]", "do b")
	seen[p.call("b", 0).IdempotencyKey] = true
	p.permanent("b", "declined")
	p.wait(second(31), "undo a[l]") // the former engine's agents may have been at work until now
	p.wait(second(1), "undo a[k]")
	undo := p.call("a[k]", 0)
	if undo.ForwardKey != key {
		t.Errorf("the undo carries forward key %s, want %s", undo.ForwardKey, key)
	}
	seen[undo.IdempotencyKey] = true
	if len(seen) != 4 {
		t.Errorf("got %d distinct keys, want 4", len(seen))
	}
}

// The key is part of the contract with remotes: it must never change.
func TestIdempotencyKeyIsStable(t *testing.T) {
	for _, tc := range []struct {
		step, key, direction string
		generation           int
		want                 string
	}{
		{"charge", "", "do", 0, "7c896ff8fd21dbc446cf3efd8c7818d0"},
		{"charge", "", "undo", 0, "3dde23fdd0cc5f13949ba17ddc62d30c"},
		{"charge", "mug", "do", 0, "9c5c7bab2b636e0c290f6c4e45404eca"},
		{"charge", "", "do", 1, "a797e699bfebaf2784d0b2ce578f5c36"},
		{"cha", "rge", "do", 0, "8a44ee464021d0847998b2d80cb3b7ee"},
	} {
		if got := machine.IdempotencyKey(1042, tc.step, tc.key, tc.direction, 0, tc.generation); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

func TestIdempotencyKeyOfTheBusiness(t *testing.T) {
	s := do("a")
	s.IdempotencyKey = func(*dsl.Scope) (string, error) { return "order-7", nil }
	p := start(t, flow(s, do("b", after("a"))), "do a")
	if got := p.call("a", 0).IdempotencyKey; got != "order-7" {
		t.Errorf("got %s", got)
	}
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	if c := p.call("a", 0); c.IdempotencyKey != "order-7:undo" || c.ForwardKey != "order-7" {
		t.Errorf("got %+v", c)
	}
}

func TestIdempotencyKeyGeneration(t *testing.T) {
	wf := flow(do("a", exhausted(dsl.ExhaustedPark), undoBlind))
	p := start(t, wf, "do a")
	key := p.call("a", 0).IdempotencyKey
	p.fail("a", "flaky", "alert parked")
	p.event(machine.RetryRequested{Step: "a"}, "do a") // S60: with the same key
	if got := p.call("a", 0).IdempotencyKey; got != key {
		t.Errorf("retry changed the key")
	}
	p.fail("a", "flaky", "alert parked")
	p.event(machine.RetryRequested{Step: "a", NewKey: true}, "do a")
	if got := p.call("a", 0).IdempotencyKey; got == key {
		t.Errorf("retry --new-key kept the key")
	}
}

func TestIdempotencyKeyNewKeyIsRefusedInDoubt(t *testing.T) {
	p := start(t, flow(do("a", idempotent, tries(1), exhausted(dsl.ExhaustedPark))), "do a")
	p.unknown("a", "agent_lost", "alert parked")
	p.event(machine.RetryRequested{NewKey: true}).refused("settle")
	p.event(machine.RetryRequested{}, "do a") // same key, idempotent
}
