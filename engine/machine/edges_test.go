package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
)

func TestPivotInAManualWorkflow(t *testing.T) {
	p := start(t, flow(do("a"), do("p", after("a"), pivot), manual, runDeadline(second(20))), "do a")
	p.ok("a", "do p")
	p.wait(second(20), "alert parked").failure("deadline_exceeded")
	p.event(machine.RetryRequested{Extend: second(60)}).refused("settle")
	p.event(machine.SettleRequested{Step: "p", As: machine.SettleNotDone}, "undo a")

	p = start(t, flow(do("a"), do("p", after("a"), pivot, idempotent), manual, runDeadline(second(20))), "do a")
	p.ok("a", "do p")
	p.unknown("p", "agent_lost")
	p.wait(second(1), "do p")
	p.wait(second(19), "alert parked").is("parked") // in doubt at the deadline
	p.event(machine.RetryRequested{Extend: second(60)}, "do p")
	p.ok("p").is("succeeded")
}

// After a takeover the newest attempt of the pivot fails for certain, and
// nobody hears of the older one: it is asked before anything turns.
func TestPivotIsLookedUpBeforeATurn(t *testing.T) {
	p := start(t, flow(do("a"), do("p", after("a"), pivot, idempotent, lookup)), "do a")
	p.ok("a", "do p")
	p.event(machine.TakenOver{By: 2}, "do p")
	p.event(machine.CancelRequested{})
	p.event(machine.AttemptFailed{Attempt: p.call("p", 2).Attempt, Code: "declined"})
	p.wait(second(30))
	p.wait(second(2), "lookup p")
	p.notDone("p", "undo a")
	p.ok("a").is("cancelled")
}

func TestPivotFailsInAManualWorkflowWhoseDeadlinePassed(t *testing.T) {
	p := start(t, flow(do("a"), do("p", after("a"), pivot, lookup), manual, runDeadline(second(20))), "do a")
	p.ok("a", "do p")
	p.wait(second(20)).is("running") // it has to be found out first
	p.wait(second(2), "lookup p")
	p.notDone("p", "alert parked").is("parked").failure("deadline_exceeded")
	p.event(machine.CompensateRequested{}, "undo a")
}

func TestTimeDeadlinePassedBeforeAcceptance(t *testing.T) {
	wf := flow(do("a"))
	wf.Deadline = func(*dsl.Scope) (dsl.Limit, error) { return dsl.Limit{At: noon.Add(-time.Hour)}, nil }
	start(t, wf).is("failed").failure("deadline_exceeded").state("a cancelled")
}

func TestTimeStepDeadlinePassedBeforeItIsReady(t *testing.T) {
	a := do("a")
	a.settings.Deadline.At = noon.Add(-time.Hour)
	start(t, flow(a)).is("failed").failure("a deadline_exceeded")
}

func TestTimeUndoDeadlinePassedBeforeTheUndo(t *testing.T) {
	a := do("a")
	a.undo.Deadline.At = noon.Add(-time.Hour)
	p := start(t, flow(a, do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "alert compensation_failed").state("a undo_failed")
}

// An attempt that outlives the compensation's deadline leaves a failed undo,
// not a silent one.
func TestTimeCompensationDeadlinePassesWhileAStepRuns(t *testing.T) {
	p := start(t, flow(do("a"), do("b"), compensationDeadline(second(10))), "do a", "do b")
	p.fail("b", "declined")
	p.wait(second(10)).is("compensating")
	p.ok("a", "alert compensation_failed").state("a undo_failed").effects("a done")
	p.event(machine.CompensateRequested{Step: "a", Retry: true}, "undo a") // with a new deadline
	p.ok("a").is("compensated")
}

func TestSettleNamesWhatIsAmbiguous(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l")), do("b")), "do a[k]", "do a[l]", "do b")
	p.fail("b", "declined")
	p.unknown("a[k]", "agent_lost")
	p.unknown("a[l]", "agent_lost", "alert compensation_failed")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}).refused(`a["k"], a["l"]`)
	p.event(machine.SettleRequested{Step: `a["k"]`, As: machine.SettleNotDone}).is("compensation_failed").state("a[k] failed", "a[l] undo_failed")
	p.event(machine.SettleRequested{Step: `a["l"]`, As: machine.SettleNotDone}).is("failed")
}

func TestSettleAnUndoThatMayHaveHappened(t *testing.T) {
	p := start(t, flow(do("a", undoBlind, undoOnce)), "do a")
	p.unknown("a", "agent_lost", "undo a")
	p.unknown("a", "agent_lost", "alert compensation_failed")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{}`)}).is("compensation_failed").effects("a done")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{}`)}).refused("known")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}, "undo a")
	p.ok("a").is("compensated")
}

func TestSettleTheOutputIsChecked(t *testing.T) {
	p := start(t, flow(do("a"), do("b")), "do a", "do b")
	p.fail("b", "declined")
	p.unknown("a", "agent_lost", "alert compensation_failed")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`"bad"`)}).refused("schema")
}

// A step that was caught after a definite answer of an operator lets its
// dependents run.
func TestSettleMayMakeAFailureCatchable(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	p.unknown("a", "agent_lost", "alert parked")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleSucceeded, Output: js(`{"id":"a"}`)}, "do b")
	if in := string(p.call("b", 0).Input.JSON()); in != `{"step":"b","in0":{"id":"a"}}` {
		t.Errorf("got %s", in)
	}
	p.ok("b").is("succeeded")
}

func TestForEachDeadlineAsksEachCatch(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), parallel(1), deadline(second(5)), catch("", "deadline_exceeded")), do("b", after("a"))), "do a[k]")
	p.wait(second(5), "do b").state("a succeeded", "a[k] caught", "a[l] caught")
}

// An undo without settings of its own gets the defaults.
func TestWhenAnUndoFailsDefaults(t *testing.T) {
	a := do("a")
	a.Undo.Settings = nil
	p := start(t, flow(a, do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	if got := p.call("a", 0).CompleteBy.Sub(noon); got != machine.DefaultTimeout {
		t.Errorf("got complete-by after %v", got)
	}
	p.fail("a", "unavailable")
	due, ok := p.s.NextDue()
	if !ok || due.Sub(noon) > second(1) {
		t.Errorf("got %v, want the next try within a second", due)
	}
}

// What starts and is turned back in one decision was never started.
func TestFailureAndCompensationInTheFirstRecord(t *testing.T) {
	broken := do("b")
	broken.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	p := start(t, flow(do("a"), broken))
	p.is("failed").effects("a none").state("a cancelled")
	if v := p.view("a"); v.Attempts != 0 || len(v.Calls) != 0 || !v.StartedAt.IsZero() {
		t.Errorf("got %+v", v)
	}
}
