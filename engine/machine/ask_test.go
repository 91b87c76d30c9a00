package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// S85: whoever asks finds the answer by the number of the message, accepted or
// refused, in the record and in the facts.
func TestAskIsAnswered(t *testing.T) {
	verbs := []machine.Event{
		machine.CancelRequested{By: "ann"}, machine.PauseRequested{By: "ann"}, machine.ResumeRequested{By: "ann"}, machine.RetryRequested{By: "ann"},
		machine.CompensateRequested{By: "ann"}, machine.CompensateRequested{Step: "a", Retry: true, By: "ann"},
		machine.SettleRequested{Step: "a", As: machine.SettleNotDone, By: "ann"}, machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, By: "ann"},
	}
	for _, c := range explained {
		t.Run(c.name, func(t *testing.T) {
			p := c.run(t)
			for k, verb := range verbs {
				ask := int64(70 + k)
				rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.WithAsk(verb, ask), Slots: nobody})
				got, refused, ok := machine.Asked(rec.Event())
				if !ok || got != ask {
					t.Fatalf("%T: got %+v", verb, rec.Event())
				}
				if refused != (machine.Refused{}) && (refused.Reason == "" || refused.By != "ann" || refused.Verb == "") {
					t.Errorf("%T: got %+v", verb, refused)
				}
				if rec.Empty() != p.s.Status().Final() {
					t.Errorf("%T: recorded: %t", verb, !rec.Empty())
				}
				facts := story.Facts(p.wf, p.s, rec)
				if len(facts) == 0 || facts[0].Kind != story.FactVerb || facts[0].Ask != ask || facts[0].By != "ann" {
					t.Errorf("%T: got facts %+v", verb, facts)
				}
			}
		})
	}
}

// A verb that changes nothing any more is recorded all the same.
func TestAskIsAnsweredThoughNothingChanges(t *testing.T) {
	p := start(t, flow(do("a"), do("b")), "do a", "do b")
	p.fail("b", "declined")
	p.unknown("a", "agent_lost", "alert compensation_failed")
	p.event(machine.CompensateRequested{Step: "a", Retry: true, Ask: 7}).is("compensation_failed")
	if p.last.Empty() {
		t.Fatal("nobody finds the answer")
	}
}

// S60: a fresh round under the same key, or under a new one once it is known
// that nothing was done; a business key cannot be renewed.
func TestRetryKeys(t *testing.T) {
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("b", after("a"))), "do a")
	key := p.lastKey("a")
	p.fail("a", "flaky", "alert parked")
	p.event(machine.RetryRequested{Step: "a"}, "do a")
	if p.lastKey("a") != key {
		t.Error("the key changed")
	}
	p.fail("a", "flaky", "alert parked")
	p.event(machine.RetryRequested{Step: "a", NewKey: true}, "do a")
	if p.lastKey("a") == key {
		t.Error("the key did not change")
	}
	if v := p.view("a"); v.Calls[0].Key != "" || v.Calls[2].Key != p.lastKey("a") {
		t.Errorf("got keys %q and %q", v.Calls[0].Key, v.Calls[2].Key)
	}

	s := do("a", exhausted(dsl.ExhaustedPark))
	s.IdempotencyKey = func(*dsl.Scope) (string, error) { return "order-7", nil }
	p = start(t, flow(s), "do a")
	p.fail("a", "flaky", "alert parked")
	p.event(machine.RetryRequested{NewKey: true}).refused("set by idempotency_key")
	p.event(machine.RetryRequested{}, "do a")
}

// S57: a deadline is extended, never brought forward, and none is made.
func TestExtend(t *testing.T) {
	p := start(t, flow(do("a"), manual, runDeadline(second(1000))), "do a")
	p.fail("a", "declined", "alert parked")
	p.event(machine.ResumeRequested{Extend: second(10)})
	if got := p.s.Run().Deadline.Time().Sub(noon); got != second(1000) {
		t.Errorf("got deadline after %v", got)
	}
	p.wait(second(1000), "alert overdue")
	p.event(machine.RetryRequested{Extend: second(10)}, "do a")
	if got := p.s.Run().Deadline.Time().Sub(noon); got != second(1010) || p.s.Run().Overdue {
		t.Errorf("got deadline after %v, overdue %t", got, p.s.Run().Overdue)
	}

	p = start(t, flow(do("a"), manual), "do a")
	p.fail("a", "declined", "alert parked")
	p.event(machine.ResumeRequested{Extend: second(10)}).refused("no deadline")
	p.event(machine.RetryRequested{Extend: second(10)}, "do a")
	if !p.s.Run().Deadline.Time().IsZero() {
		t.Errorf("got deadline %v", p.s.Run().Deadline.Time())
	}
}

// S39, S61, S64: whoever finds an attempt expired has it repeated with a new
// complete-by, until the ceiling is reached; S40, S41: then what the step says.
func TestExpiredAttemptsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		choice dsl.Exhausted
		want   []string
		state  string
	}{
		"compensate": {dsl.ExhaustedCompensate, nil, "compensating"},
		"park":       {dsl.ExhaustedPark, []string{"alert parked"}, "parked"},
		"cool down":  {dsl.ExhaustedCoolDown, nil, "running"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, flow(do("a", idempotent, tries(2), undoByKey, exhausted(c.choice))), "do a")
			first := p.call("a", 0)
			p.wait(second(30)).state("a backoff")
			p.wait(second(1), "do a")
			if again := p.call("a", 0); !again.CompleteBy.Equal(first.CompleteBy.Add(second(31))) || again.IdempotencyKey != first.IdempotencyKey {
				t.Errorf("got %v under %s", again.CompleteBy, again.IdempotencyKey)
			}
			p.wait(second(30), c.want...).is(c.state)
			if v := p.view("a"); v.Failures != 2 || v.Attempts != 2 {
				t.Errorf("got %d failures of %d attempts", v.Failures, v.Attempts)
			}
			if c.choice == dsl.ExhaustedCoolDown {
				p.wait(second(15*60), "do a")
				if again := p.call("a", 0); again.Number != 1 {
					t.Errorf("got attempt %d, want a fresh round", again.Number)
				}
			}
		})
	}
}

// Cancel, by state of the run.
func TestCancelOfARunThatHasFailed(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	p.permanent("a", "gone", "alert compensation_failed")
	p.event(machine.CancelRequested{}).refused("already")
	p.event(machine.CancelRequested{NoCompensate: true}).refused("cannot be cut short")
	p.event(machine.CompensateRequested{Step: "a", Skip: true, By: "ann", Reason: "by hand"}).is("compensated")
	p.event(machine.CancelRequested{}).refused("ended").nothing()
}

// S24: an operator's retry gives the undo, and what waited for it, a new
// compensation deadline.
func TestCompensationDeadlineAfterARetry(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("b")), compensationDeadline(second(100))), "do a")
	p.ok("a", "do b")
	p.ok("b", "do c")
	p.fail("c", "declined", "undo b")
	p.permanent("b", "gone", "alert compensation_failed")
	p.wait(second(500)).is("compensation_failed")
	p.event(machine.CompensateRequested{Step: "b", Retry: true, By: "ann"}, "undo b").is("compensating")
	if got := p.s.Run().UndoDeadline.Time().Sub(p.now); got != second(100) {
		t.Errorf("got %v", got)
	}
	p.now = p.now.Add(second(20))
	p.ok("b", "undo a")
	if c := p.call("a", 0); c.CompleteBy.Sub(p.now) != second(30) {
		t.Errorf("got %v", c.CompleteBy)
	}
	p.ok("a").is("compensated")
}

// S82: what an agent records of a confidential call is confidential.
func TestCheckpointOfAConfidentialCall(t *testing.T) {
	for name, secret := range map[string]bool{"plain": false, "confidential": true} {
		t.Run(name, func(t *testing.T) {
			s := do("a", continueIt)
			s.Input = func(*dsl.Scope) (dsl.Value, error) {
				if secret {
					return dsl.NewValue([]byte(`{"card":"4711"}`), []string{"/card"}, nil), nil
				}
				return js(`{"card":"none"}`), nil
			}
			p := start(t, flow(s), "do a")
			p.checkpoint("a", 1, "after 4711")
			if p.last.Sensitive() != secret {
				t.Errorf("sensitive: %t", p.last.Sensitive())
			}
		})
	}
}
