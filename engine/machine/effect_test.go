package machine_test

import "testing"

// S20: the effect, not the status, says what is undone.
func TestEffectOfAnAttempt(t *testing.T) {
	p := start(t, flow(do("a", tries(3)), do("b", after("a"))), "do a")
	p.effects("a maybe", "b none")
	p.fail("a", "flaky").effects("a none")
	p.wait(second(1), "do a").effects("a maybe")
	p.ok("a", "do b").effects("a done", "b maybe")
}

// "Maybe done" is sticky over retries.
func TestEffectMaybeIsSticky(t *testing.T) {
	p := start(t, flow(do("a", idempotent)), "do a")
	p.unknown("a", "agent_lost").effects("a maybe")
	p.wait(second(1), "do a")
	p.fail("a", "declined", "do a").effects("a maybe").is("compensating") // once more, to learn the output
	p.ok("a", "undo a").effects("a done")
	p.ok("a").is("compensated")
}

func TestEffectOfReadOnlyActions(t *testing.T) {
	p := start(t, flow(do("a", readOnly), do("b", after("a"), noUndo)), "do a")
	p.effects("a none")
	p.ok("a", "do b").effects("a none")
	p.fail("b", "declined").is("failed")
}

func TestEffectIsUndoneWhateverTheStatus(t *testing.T) {
	t.Run("caught", func(t *testing.T) {
		p := start(t, flow(do("a", catch("", "*"), undoByKey), do("b", after("a"))), "do a")
		p.unknown("a", "agent_lost", "do b").state("a caught").effects("a maybe")
		p.fail("b", "declined", "undo a")
		p.ok("a").is("compensated")
	})
	t.Run("failed its postcondition", func(t *testing.T) {
		p := start(t, flow(do("a", post)), "do a")
		p.okWith("a", `"poor"`, "undo a").state("a undoing").failure("a postcondition_failed")
		p.ok("a").is("compensated")
	})
	t.Run("tolerated by max_failures", func(t *testing.T) {
		p := start(t, flow(do("a", each("k"), maxFailures(1), post), do("b", after("a"))), "do a[k]")
		p.okWith("a[k]", `"poor"`, "do b").state("a[k] failed", "a succeeded")
		p.fail("b", "declined", "undo a[k]")
		p.ok("a[k]").is("compensated")
	})
	t.Run("caught by key after all", func(t *testing.T) {
		p := start(t, flow(do("a", post, catch("", "postcondition_failed")), do("b", after("a"))), "do a")
		p.okWith("a", `"poor"`, "do b").state("a caught").effects("a done")
		p.fail("b", "declined", "undo a")
		p.ok("a").is("compensated")
	})
}
