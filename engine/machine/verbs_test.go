package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

func TestParkedNothingNewStarts(t *testing.T) {
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("b"), do("c", after("b")), do("d", idempotent, deadline(second(40))), runDeadline(second(50))), "do a", "do b", "do d")
	p.fail("a", "flaky", "alert parked")
	p.ok("b").state("c pending") // what is in flight ends and is recorded
	p.fail("d", "flaky").state("d backoff")
	p.wait(second(45)).state("d backoff").is("parked") // no forward limit expires
	p.wait(second(5), "alert overdue").is("parked")
	if !p.s.Run().Overdue {
		t.Error("want overdue")
	}
	p.event(machine.RetryRequested{}).refused("extend")
	p.event(machine.RetryRequested{Extend: second(100)}, "do a", "do c", "do d").is("running")
	p.ok("d")
	p.ok("c")
	p.ok("a").is("succeeded")
}

// S60, S80, S83: the failed step is resubmitted, not the whole run.
func TestParkedRetryGivesAFreshRound(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), tries(2), deadline(second(100)), exhausted(dsl.ExhaustedPark))), "do a")
	p.ok("a", "do b")
	p.fail("b", "flaky")
	p.wait(second(1), "do b")
	p.fail("b", "flaky", "alert parked")
	p.wait(second(200)).is("parked")
	p.event(machine.RetryRequested{Step: "c"}).refused("no failed step")
	p.event(machine.RetryRequested{Step: "b"}, "do b")
	c := p.call("b", 0)
	if c.Number != 1 {
		t.Errorf("got attempt %d, want a fresh round", c.Number)
	}
	if v := p.view("b"); v.Deadline.Sub(p.now) != second(100) {
		t.Errorf("got deadline in %v, want a fresh one", v.Deadline.Sub(p.now))
	}
	p.fail("b", "flaky")
	p.wait(second(1), "do b") // intervals start over, too
	p.ok("b").is("succeeded")
}

func TestParkedRetryOfOneOfTwo(t *testing.T) {
	p := start(t, flow(do("a", exhausted(dsl.ExhaustedPark)), do("b", exhausted(dsl.ExhaustedPark))), "do a", "do b")
	p.fail("a", "flaky", "alert parked")
	p.fail("b", "flaky").is("parked")
	p.event(machine.RetryRequested{Step: "a"}, "do a").is("running")
	p.ok("a", "alert parked").is("parked").failure("b flaky") // b is still unsolved
	p.event(machine.RetryRequested{}, "do b")
	p.ok("b").is("succeeded")
}

func TestParkedRetryOfInstances(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l", "m"), parallel(1), exhausted(dsl.ExhaustedPark))), "do a[k]")
	p.fail("a[k]", "flaky", "alert parked").state("a failed", "a[l] pending")
	p.event(machine.RetryRequested{Step: `a["k"]`}, "do a[k]").state("a waiting")
	p.ok("a[k]", "do a[l]")
	p.ok("a[l]", "do a[m]")
	p.ok("a[m]").is("succeeded")
}

func TestParkedRunResume(t *testing.T) {
	p := start(t, flow(do("a"), manual, runDeadline(second(100))), "do a")
	p.fail("a", "declined", "alert parked")
	p.event(machine.ResumeRequested{}).refused("parked")
	p.event(machine.ResumeRequested{Extend: second(500)}).is("parked")
	if got := p.s.Run().Deadline.Time().Sub(noon); got != second(500) {
		t.Errorf("got deadline after %v", got)
	}
	p.event(machine.PauseRequested{}).refused("parked")
}

func TestPausedHoldsAllDispatch(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", tries(2))), "do a", "do c")
	p.event(machine.PauseRequested{By: "ann"}).is("paused")
	p.event(machine.PauseRequested{}).refused("already")
	p.ok("a").state("b held").is("paused")
	p.fail("c", "flaky").state("c backoff")
	p.wait(second(10)).state("c backoff")
	p.event(machine.ResumeRequested{}, "do b", "do c").is("running")
	p.event(machine.ResumeRequested{}).refused("not paused")
}

func TestPausedClocksRun(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), runDeadline(second(20))), "do a")
	p.event(machine.PauseRequested{})
	p.ok("a").state("b held")
	p.wait(second(20)).is("paused").failure("deadline_exceeded").state("b cancelled", "a undoing")
	p.event(machine.ResumeRequested{}, "undo a").is("compensating") // the first undo starts after resume
	p.ok("a").is("compensated")
}

func TestPausedUndo(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("b"))), "do a")
	p.ok("a", "do b")
	p.ok("b", "do c")
	p.fail("c", "declined", "undo b")
	p.event(machine.PauseRequested{}).is("paused")
	p.ok("b").state("b undone")
	p.event(machine.ResumeRequested{}, "undo a")
	p.ok("a").is("compensated")
}

func TestCancel(t *testing.T) {
	t.Run("compensates by default", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(machine.CancelRequested{By: "ann", Reason: "wrong order"}).is("compensating").failure("cancelled")
		p.fail("b", "aborted", "undo a")
		p.event(machine.CancelRequested{}).refused("already")
		p.event(machine.CancelRequested{NoCompensate: true}).refused("already being undone")
		p.ok("a").is("cancelled")
		p.event(machine.CancelRequested{}).refused("ended").nothing()
	})
	t.Run("a run that turned back says why", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a")), runDeadline(second(10))), "do a")
		p.ok("a", "do b")
		p.wait(second(10))
		p.event(machine.CancelRequested{}).refused("deadline has passed")
	})
	t.Run("no-compensate stops dead", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(machine.CancelRequested{NoCompensate: true})
		p.ok("b").is("cancelled").state("a succeeded", "b succeeded")
		if int(p.s.Run().Left) != 2 {
			t.Errorf("got %d left as is", int(p.s.Run().Left))
		}
	})
	t.Run("queued ends at once", func(t *testing.T) {
		p := startWith(t, flow(do("a")), map[string]machine.Slot{"shop": {}})
		p.is("queued").event(machine.CancelRequested{}).is("cancelled")
	})
	t.Run("parked starts its undo", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a")), manual), "do a")
		p.ok("a", "do b")
		p.fail("b", "declined", "alert parked")
		p.event(machine.CancelRequested{}, "undo a")
		p.ok("a").is("cancelled")
	})
	t.Run("paused", func(t *testing.T) {
		p := start(t, flow(do("a"), do("b", after("a"))), "do a")
		p.ok("a", "do b")
		p.event(machine.PauseRequested{})
		p.event(machine.CancelRequested{}).is("paused")
		p.fail("b", "aborted").is("paused")
		p.event(machine.ResumeRequested{}, "undo a")
	})
}

func TestSettleRefusals(t *testing.T) {
	p := start(t, flow(do("a"), do("b", catch("", "*"))), "do a", "do b")
	p.event(machine.SettleRequested{Step: "zzz", As: machine.SettleNotDone}).refused("no step")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}).refused("still awaited")
	p.unknown("b", "agent_lost").state("b caught").effects("b maybe")
	p.event(machine.SettleRequested{Step: "b"}).refused("say what happened")
	p.event(machine.SettleRequested{Step: "b", As: machine.SettleNotDone}).effects("b none").state("b caught").is("running")
	p.event(machine.SettleRequested{Step: "b", As: machine.SettleNotDone}).refused("not in doubt")
	p.event(machine.RetryRequested{}).refused("not parked")
}
