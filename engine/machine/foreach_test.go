package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

func TestForEachInstancesRunAtOnce(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l")), do("b", after("a"))), "do a[k]", "do a[l]")
	p.state("a waiting", "a[k] running", "a[l] running")
	p.ok("a[l]")
	p.ok("a[k]", "do b").state("a succeeded")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":[{"id":"a[k]-1"},{"id":"a[l]-1"}]}` {
		t.Errorf("got input %s, want both outputs by key", in)
	}
	p.ok("b").is("succeeded")
}

func TestForEachWithoutKeysSucceedsAtOnce(t *testing.T) {
	start(t, flow(do("a", each()), do("b", after("a"))), "do b").state("a succeeded")
}

func TestForEachMaxParallel(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l", "m"), parallel(2))), "do a[k]", "do a[l]")
	p.state("a[m] pending")
	p.ok("a[l]", "do a[m]")
	p.ok("a[k]")
	p.ok("a[m]").is("succeeded")
}

// S81: more failures than allowed fail the step; what was done is undone.
func TestForEachMaxFailures(t *testing.T) {
	wf := func() *dsl.Workflow {
		return flow(do("a", each("k", "l", "m"), parallel(1), maxFailures(1)))
	}
	p := start(t, wf(), "do a[k]")
	p.fail("a[k]", "declined", "do a[l]").state("a[k] failed", "a waiting")
	p.ok("a[l]", "do a[m]")
	p.ok("a[m]").is("succeeded").state("a succeeded")

	p = start(t, wf(), "do a[k]")
	p.fail("a[k]", "declined", "do a[l]")
	p.ok("a[l]", "do a[m]")
	p.fail("a[m]", "out_of_stock", "undo a[l]").failure("a declined") // the first of their codes
	p.ok("a[l]").is("compensated").state("a[l] undone")
}

func TestForEachFailureStopsFurtherInstances(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l", "m"), parallel(2))), "do a[k]", "do a[l]")
	p.fail("a[k]", "declined").state("a[m] cancelled")
	p.ok("a[l]", "undo a[l]") // awaited, and its effect undone
	p.ok("a[l]").is("compensated")
}

func TestForEachWhenIsPerInstance(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l", "m"), whenKey("l"), parallel(1)), do("b", after("a"))), "do a[l]")
	p.state("a[k] skipped", "a[m] pending")
	p.ok("a[l]", "do b").state("a[m] skipped", "a succeeded")
}

// A condition about the whole step is evaluated first: where it is false,
// for_each and the limits may need what is not there.
func TestForEachIsNotEvaluatedWhereWhenIsFalse(t *testing.T) {
	absent := func(s *spec) {
		s.ForEach = func(*dsl.Scope) (dsl.Each, error) { return dsl.Each{}, errBroken }
		s.Settings = func(*dsl.Scope) (*dsl.Settings, error) { return nil, errBroken }
	}
	p := start(t, flow(do("a", when(false), absent), do("b", after("a"))), "do b")
	p.state("a skipped")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":[]}` {
		t.Errorf("got input %s, want no instances", in)
	}
	p.fail("b", "declined").is("failed").state("a skipped")
}

func TestForEachWhenIsAskedOnceForAllInstances(t *testing.T) {
	asked := 0
	once := func(s *spec) { s.When = func(*dsl.Scope) (bool, error) { asked++; return true, nil } }
	p := start(t, flow(do("a", each("k", "l", "m"), parallel(1), once)), "do a[k]")
	if asked == 0 {
		t.Fatal("when was not evaluated")
	}
	asked = 0
	p.ok("a[k]", "do a[l]")
	p.ok("a[l]", "do a[m]")
	if p.ok("a[m]").is("succeeded"); asked != 0 {
		t.Errorf("when was evaluated %d times for later instances, want never", asked)
	}
}

func TestForEachCatchIsPerInstance(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), catch(`{"id":"none"}`, "declined")), do("b", after("a"))), "do a[k]", "do a[l]")
	p.fail("a[k]", "declined").state("a[k] caught")
	p.ok("a[l]", "do b")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":[{"id":"none"},{"id":"a[l]-1"}]}` {
		t.Errorf("got input %s", in)
	}
}

// The deadline belongs to the step: it covers all instances.
func TestForEachDeadline(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), parallel(1), deadline(10*time.Second), undoBlind)), "do a[k]")
	p.wait(8 * time.Second)
	p.ok("a[k]", "do a[l]")
	p.wait(2*time.Second, "undo a[k]").failure("a deadline_exceeded").state("a[l] failed").is("compensating")
	p.wait(2*time.Second, "undo a[l]") // its attempt may have been at work until now
}

func TestForEachUndoRunsInParallel(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l")), do("b", after("a"), noUndo)), "do a[k]", "do a[l]")
	p.ok("a[k]")
	p.ok("a[l]", "do b")
	p.fail("b", "declined", "undo a[k]", "undo a[l]").state("a undoing")
	p.ok("a[l]")
	p.ok("a[k]").is("compensated").state("a undone")
}

// An instance whose outcome nobody knows is not tolerated by max_failures: the
// run parks, and goes on when an operator has found out.
func TestForEachUnknownInstanceParks(t *testing.T) {
	p := start(t, flow(do("a", each("k"), maxFailures(1))), "do a[k]")
	p.unknown("a[k]", "agent_lost", "alert parked").is("parked").effects("a[k] maybe")
	p.event(machine.RetryRequested{}).refused("settle")
	p.event(machine.SettleRequested{Step: `a["k"]`, As: machine.SettleNotDone}).is("succeeded").state("a[k] failed", "a succeeded")
}
