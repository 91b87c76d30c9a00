package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

func TestUnknownOutcomesLookupFirst(t *testing.T) {
	wf := func() *dsl.Workflow { return flow(do("a", lookup, tries(2)), do("b", after("a"))) }
	t.Run("it was done", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.unknown("a", "agent_lost", "lookup a")
		p.ok("a", "do b").effects("a done").state("a succeeded")
	})
	t.Run("it was not done", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.unknown("a", "agent_lost", "lookup a")
		p.notDone("a").effects("a none").state("a backoff") // a transient code: repeated, though not idempotent
		p.wait(second(1), "do a")
	})
	t.Run("nobody says", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.unknown("a", "agent_lost", "lookup a")
		p.fail("a", "unavailable")
		p.wait(second(1), "lookup a")
		p.unknown("a", "agent_lost")
		p.wait(second(2), "lookup a")
		p.fail("a", "unavailable", "alert parked").is("parked").failure("a agent_lost")
	})
	t.Run("not before the attempt is over", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.wait(second(30)).state("a backoff")
		p.wait(2*time.Second, "lookup a")
	})
}

func TestUnknownOutcomesRepeatWithTheSameKey(t *testing.T) {
	p := start(t, flow(do("a", idempotent)), "do a")
	p.unknown("a", "internal")
	p.wait(second(1), "do a")
	p.ok("a").is("succeeded")
}

func TestUnknownOutcomesUndoByKey(t *testing.T) {
	for name, how := range map[string]option{"by_key": undoByKey, "input without output": undoBlind} {
		t.Run(name, func(t *testing.T) {
			p := start(t, flow(do("a", how)), "do a")
			p.unknown("a", "agent_lost", "undo a").failure("a agent_lost")
			p.ok("a").is("compensated")
		})
	}
}

func TestUnknownOutcomesInvokeOnceMoreToLearnTheOutput(t *testing.T) {
	p := start(t, flow(do("a"), do("b", idempotent, tries(1), after("a"))), "do a")
	p.ok("a", "do b")
	p.unknown("b", "agent_lost", "do b").is("compensating")
	p.okWith("b", `{"id":"learned"}`, "undo b")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"undo":"b","of":{"id":"learned"}}` {
		t.Errorf("got undo input %s", in)
	}
	p.ok("b", "undo a")
	p.ok("a").is("compensated")
}

func TestUnknownOutcomesPark(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.unknown("b", "agent_lost", "alert parked").is("parked").effects("b maybe")
	if _, due := p.s.NextDue(); due {
		t.Error("a parked run without limits is due")
	}
	t.Run("settled as done", func(t *testing.T) {
		q := *p
		q.s, q.twin, q.plain = p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.t = t
		q.event(machine.SettleRequested{Step: "b", As: machine.SettleSucceeded, Output: js(`"bad"`)}).refused("schema")
		q.event(machine.SettleRequested{Step: "b", As: machine.SettleSucceeded, Output: js(`{"id":"b"}`)}).is("succeeded")
	})
	t.Run("settled as not done, then retried", func(t *testing.T) {
		q := *p
		q.s, q.twin, q.plain = p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.t = t
		q.event(machine.RetryRequested{}).refused("settle")
		q.event(machine.SettleRequested{Step: "b", As: machine.SettleNotDone}).is("parked").effects("b none")
		q.event(machine.RetryRequested{Step: "b", NewKey: true}, "do b").is("running")
	})
	t.Run("settled as not done, then compensated", func(t *testing.T) {
		q := *p
		q.s, q.twin, q.plain = p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.t = t
		q.event(machine.SettleRequested{Step: "b", As: machine.SettleNotDone})
		q.event(machine.CompensateRequested{}, "undo a")
		q.ok("a").is("compensated")
	})
}

func TestUnknownOutcomesThatDoNotPark(t *testing.T) {
	t.Run("caught", func(t *testing.T) {
		p := start(t, flow(do("a", catch("", "agent_lost"))), "do a")
		p.unknown("a", "agent_lost").is("succeeded").effects("a maybe")
	})
	t.Run("compensation none", func(t *testing.T) {
		p := start(t, flow(do("a", noUndo)), "do a")
		p.unknown("a", "agent_lost").is("failed")
		if int(p.s.Run().Undeclared) != 1 || int(p.s.Run().Left) != 0 {
			t.Error("want one effect not undone by declaration, none left by operators")
		}
	})
}

func TestUnknownOutcomesInCompensation(t *testing.T) {
	p := start(t, flow(do("a"), do("b")), "do a", "do b")
	p.fail("b", "declined")
	p.unknown("a", "agent_lost", "alert compensation_failed").state("a undo_failed")
	if v := p.view("a"); v.UndoCode != machine.CodeOutcomeUnknown {
		t.Errorf("got %q", v.UndoCode)
	}
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{"id":"a"}`)}, "undo a")
	p.ok("a").is("compensated")
}

// S29: no undo while an attempt may still be at work.
func TestUnknownOutcomesUndoWaitsForTheGrace(t *testing.T) {
	p := start(t, flow(do("a", undoByKey), do("b")), "do a", "do b")
	p.fail("b", "declined").is("compensating")
	p.wait(second(30)).state("a failed")
	p.wait(1900 * time.Millisecond)
	p.wait(100*time.Millisecond, "undo a")
	p.ok("a").is("compensated")
}

// S28, S35: an answer counts when its attempt is open and it is in time.
func TestWhatCounts(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent)), "do a")
		first := p.call("a", 0)
		p.wait(second(30))
		p.event(machine.AttemptOK{Attempt: first.Attempt, Output: js(`{}`)}).nothing()
		if !p.last.Late() {
			t.Error("want it reported as late")
		}
		p.state("a backoff")
	})
	t.Run("at complete-by is too late", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent)), "do a")
		p.now = p.now.Add(second(30))
		p.event(machine.AttemptOK{Attempt: p.call("a", 0).Attempt, Output: js(`{}`)}).state("a backoff")
		if _, isTime := p.last.Event().(machine.TimePassed); !isTime || !p.last.Late() {
			t.Errorf("got %T, want only the passing of time recorded", p.last.Event())
		}
	})
	t.Run("duplicate", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		id := p.call("a", 0).Attempt
		p.ok("a", "do b")
		p.event(machine.AttemptOK{Attempt: id, Output: js(`{"id":"other"}`)}).nothing()
		p.event(machine.AttemptFailed{Attempt: id, Code: "declined"}).nothing()
		p.event(machine.AttemptDeferred{Attempt: id}).nothing()
		p.state("a succeeded", "b running")
	})
	t.Run("after cancel", func(t *testing.T) {
		p := start(t, flow(do("a")), "do a")
		p.event(machine.CancelRequested{}).is("compensating")
		p.ok("a", "undo a").state("a undoing") // cancelling does not close the attempt
		p.ok("a").is("cancelled")
	})
	t.Run("not sent", func(t *testing.T) { // spends no attempt, leaves the effect as it was
		p := start(t, flow(do("a")), "do a")
		p.event(machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt, Until: noon.Add(second(3)), Why: "circuit open"})
		p.state("a held").effects("a none")
		if v := p.view("a"); v.Attempts != 0 || v.Failures != 0 || v.Why != "circuit open" {
			t.Errorf("got %+v", v)
		}
		p.wait(second(3), "do a")
		if c := p.call("a", 0); c.Number != 1 {
			t.Errorf("got attempt %d, want the first", c.Number)
		}
	})
	t.Run("not sent: only time brings it back", func(t *testing.T) { // S65
		p := start(t, flow(do("a"), do("b")), "do a", "do b")
		not := machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt, Until: noon.Add(second(3)), Why: "secret is not set"}
		p.event(not).state("a held")
		for range 3 {
			p.event(machine.SlotsFreed{}).nothing()
			p.slots = map[string]machine.Slot{"shop": {Free: 1}}
			p.event(machine.SlotsFreed{}).nothing()
			p.event(machine.TimePassed{}).nothing()
			p.slots = map[string]machine.Slot{"shop": {Why: "full"}}
			p.event(machine.SlotsFreed{}).nothing()
			p.slots = nil
			p.now = p.now.Add(900 * time.Millisecond)
		}
		if v := p.view("a"); v.Why != "secret is not set" || !v.Until.Equal(noon.Add(second(3))) {
			t.Errorf("got %q until %v", v.Why, v.Until)
		}
		p.now = noon
		p.wait(second(3), "do a")
		p.ok("a")
		p.ok("b").is("succeeded")
	})
	t.Run("not sent: a circuit that opened meanwhile is news", func(t *testing.T) {
		p := start(t, flow(do("a")), "do a")
		p.event(machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt, Until: noon.Add(second(3)), Why: "agent is down"})
		p.slots = map[string]machine.Slot{"shop": {Until: noon.Add(second(9)), Why: "circuit open"}}
		p.event(machine.SlotsFreed{}).state("a held")
		if v := p.view("a"); v.Why != "circuit open" || !v.Until.Equal(noon.Add(second(9))) {
			t.Errorf("got %q until %v", v.Why, v.Until)
		}
		p.slots = map[string]machine.Slot{"shop": {Free: 1}} // it closed sooner
		p.event(machine.SlotsFreed{}, "do a")
	})
	t.Run("not sent: another engine tries at once", func(t *testing.T) {
		p := start(t, flow(do("a")), "do a")
		p.event(machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt, Until: noon.Add(second(60)), Why: "secret is not set"})
		p.event(machine.TakenOver{By: 2, From: 1}, "do a")
	})
	t.Run("not sent, reported after complete-by", func(t *testing.T) {
		p := start(t, flow(do("a")), "do a")
		p.now = p.now.Add(second(31))
		p.event(machine.AttemptDeferred{Attempt: p.call("a", 0).Attempt}).state("a held").effects("a none")
		p.event(machine.SlotsFreed{}, "do a")
	})
}

// S19, S22, S26, S29: another engine goes on from what is in the state.
func TestWhatCountsAfterATakeover(t *testing.T) {
	t.Run("idempotent: repeated at once, the first result settles", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent), do("b", after("a"))), "do a")
		p.event(machine.TakenOver{By: 2, From: 1}, "do a")
		p.event(machine.AttemptOK{Attempt: p.call("a", 1).Attempt, Output: js(`{}`)}, "do b") // the old engine's agent was faster
		p.event(machine.AttemptOK{Attempt: p.call("a", 2).Attempt, Output: js(`{}`)}).nothing()
	})
	t.Run("idempotent: a definite failure of one does not close the other", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent)), "do a")
		p.event(machine.TakenOver{By: 2, From: 1}, "do a")
		p.event(machine.AttemptFailed{Attempt: p.call("a", 2).Attempt, Code: "declined"}).state("a running")
		p.event(machine.AttemptOK{Attempt: p.call("a", 1).Attempt, Output: js(`{}`)}).is("succeeded")
	})
	t.Run("not idempotent: awaited", func(t *testing.T) {
		p := start(t, flow(do("a", lookup)), "do a")
		p.event(machine.TakenOver{By: 2, From: 1}).state("a running")
		p.wait(second(30)).state("a backoff")
		p.wait(second(2), "lookup a")
		p.ok("a").is("succeeded")
	})
	t.Run("no attempts left: awaited", func(t *testing.T) {
		p := start(t, flow(do("a", idempotent, tries(1))), "do a")
		p.event(machine.TakenOver{By: 2, From: 1})
		p.ok("a").is("succeeded")
	})
	t.Run("undo: repeated only if it is idempotent", func(t *testing.T) {
		for _, once := range []bool{false, true} {
			a := do("a")
			if once {
				undoOnce(a)
			}
			p := start(t, flow(a, do("b", after("a"))), "do a")
			p.ok("a", "do b")
			p.fail("b", "declined", "undo a")
			if once {
				p.event(machine.TakenOver{By: 2, From: 1})
			} else {
				p.event(machine.TakenOver{By: 2, From: 1}, "undo a")
			}
			p.ok("a").is("compensated")
		}
	})
	t.Run("holds of the former engine mean nothing", func(t *testing.T) {
		open := map[string]machine.Slot{"shop": {Until: noon.Add(second(60)), Why: "circuit open"}}
		p := startWith(t, flow(do("a")), open)
		p.slots = nil
		p.event(machine.TakenOver{By: 2, From: 1}, "do a")
	})
}
