package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

func TestOutcomeOfAnAttempt(t *testing.T) {
	t.Run("result", func(t *testing.T) {
		start(t, flow(do("a")), "do a").ok("a").is("succeeded")
	})
	t.Run("definite failure", func(t *testing.T) { // S31
		p := start(t, flow(do("a")), "do a")
		p.fail("a", "declined").is("failed").effects("a none").failure("a declined")
	})
	t.Run("unknown", func(t *testing.T) {
		p := start(t, flow(do("a")), "do a")
		p.unknown("a", "internal", "alert parked").is("parked").effects("a maybe")
	})
	t.Run("unknown of a read-only action is a failure", func(t *testing.T) {
		p := start(t, flow(do("a", readOnly)), "do a")
		p.unknown("a", "internal").is("failed").failure("a internal") // not a transient code
		p = start(t, flow(do("a", readOnly)), "do a")
		p.unknown("a", "agent_lost").state("a backoff")
	})
}

// S77, S78: transient failures are repeated, others are not.
func TestRetryWhatIsRepeated(t *testing.T) {
	for _, tc := range []struct {
		name    string
		step    *spec
		fail    func(*play)
		repeats bool
	}{
		{"transient", do("a", tries(2)), func(p *play) { p.fail("a", "unavailable") }, true},
		{"declared retryable", do("a", tries(2)), func(p *play) { p.fail("a", "flaky") }, true},
		{"business code", do("a", tries(2)), func(p *play) { p.fail("a", "declined") }, false},
		{"named by on", do("a", tries(2), on("declined")), func(p *play) { p.fail("a", "declined") }, true},
		{"excluded by not_on", do("a", tries(2), notOn("flaky")), func(p *play) { p.fail("a", "flaky") }, false},
		{"permanent", do("a", tries(2), on("flaky")), func(p *play) { p.permanent("a", "flaky") }, false},
		{"invalid", do("a", tries(2)), func(p *play) { p.fail("a", "invalid") }, false},
		{"invalid named by on", do("a", tries(2), on("invalid")), func(p *play) { p.fail("a", "invalid") }, true},
		{"denied", do("a", tries(2)), func(p *play) { p.fail("a", "denied") }, false},
		{"unknown, idempotent", do("a", idempotent), func(p *play) { p.unknown("a", "whatever") }, true},
		{"unknown, idempotent, not_on", do("a", idempotent, notOn("whatever"), undoBlind), func(p *play) { p.unknown("a", "whatever", "undo a") }, false},
		{"unknown, not idempotent, named", do("a", tries(2), on("agent_lost"), undoBlind), func(p *play) { p.unknown("a", "agent_lost", "undo a") }, false},
		{"postcondition", do("a", idempotent, post), func(p *play) { p.okWith("a", `"poor"`, "undo a") }, false},
		{"postcondition named by on", do("a", idempotent, post, on("postcondition_failed")), func(p *play) { p.okWith("a", `"poor"`) }, true},
		{"postcondition, not idempotent", do("a", tries(2), post, on("postcondition_failed")), func(p *play) { p.okWith("a", `"poor"`, "undo a") }, false},
		{"attempts used up", do("a", tries(1)), func(p *play) { p.fail("a", "flaky") }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, flow(tc.step), "do a")
			tc.fail(p)
			if got := p.view("a").Forward == status.StepBackoff; got != tc.repeats {
				t.Errorf("repeated: got %v, want %v\n%s", got, tc.repeats, p.dump())
			}
		})
	}
}

// S40, S64, S79: the ceiling counts the attempts of the round.
func TestRetryCeiling(t *testing.T) {
	p := start(t, flow(do("a", tries(3))), "do a")
	p.fail("a", "flaky")
	p.wait(second(1), "do a")
	p.fail("a", "flaky")
	p.wait(second(2), "do a")
	if c := p.call("a", 0); c.Number != 3 {
		t.Errorf("got attempt %d, want 3", c.Number)
	}
	p.fail("a", "flaky").is("failed").failure("a flaky")
	if v := p.view("a"); v.Attempts != 3 || v.Failures != 3 { // S63: two counts
		t.Errorf("got %d attempts, %d failures, want 3 and 3", v.Attempts, v.Failures)
	}
}

func TestRetryIntervals(t *testing.T) {
	r := retry(9)
	for n, want := range []time.Duration{second(1), second(2), second(4), second(8), second(16), second(30), second(30)} {
		if got := machine.Growth(r, n+1); got != want {
			t.Errorf("exponential %d: got %v, want %v", n+1, got, want)
		}
	}
	r.Strategy = 2 // linear
	if got := machine.Growth(r, 3); got != second(3) {
		t.Errorf("linear: got %v", got)
	}
	r.Strategy = 3 // constant
	if got := machine.Growth(r, 3); got != second(1) {
		t.Errorf("constant: got %v", got)
	}
	r.Strategy, r.Multiplier = 1, 1e300
	if got := machine.Growth(r, 500); got != second(30) {
		t.Errorf("an overflowing interval: got %v", got)
	}
}

func TestRetryAfterWinsIfLonger(t *testing.T) {
	p := start(t, flow(do("a", tries(2))), "do a")
	p.event(machine.AttemptFailed{Attempt: p.call("a", 0).Attempt, Code: "rate_limited", RetryAfter: second(7)})
	p.wait(second(7), "do a")
}

func TestRetryJitterIsDeterministic(t *testing.T) {
	s := do("a", tries(2))
	s.settings.Retry.Jitter = true
	wf := flow(s)
	p := start(t, wf, "do a")
	p.fail("a", "flaky")
	first, _ := p.s.NextDue()
	q := start(t, wf, "do a")
	q.fail("a", "flaky")
	if again, _ := q.s.NextDue(); !again.Equal(first) || !first.After(noon) || first.After(noon.Add(second(1))) {
		t.Errorf("got %v and %v", first, again)
	}
}

func TestRetryUnbounded(t *testing.T) {
	p := start(t, flow(do("a", tries(-1))), "do a")
	for range 40 {
		p.fail("a", "flaky")
		due, _ := p.s.NextDue()
		p.wait(due.Sub(p.now), "do a")
	}
	if v := p.view("a"); v.Attempts != 41 || len(v.Calls) > model.KeptAttempts+1 {
		t.Errorf("got %d attempts, %d remembered", v.Attempts, len(v.Calls))
	}
}
