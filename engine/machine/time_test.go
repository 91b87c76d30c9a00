package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

func second(n int) time.Duration { return time.Duration(n) * time.Second }

// S10, S11: every attempt has a complete-by, and the agent is told.
func TestTimeCompleteByIsTheEarliestLimit(t *testing.T) {
	for _, tc := range []struct {
		name string
		flow *dsl.Workflow
		want time.Duration
	}{
		{"timeout", flow(do("a", timeout(second(10)), deadline(second(20))), runDeadline(second(30))), second(10)},
		{"step deadline", flow(do("a", timeout(second(10)), deadline(second(5))), runDeadline(second(30))), second(5)},
		{"run deadline", flow(do("a", timeout(second(10)), deadline(second(5))), runDeadline(second(3))), second(3)},
		{"default timeout", flow(do("a", timeout(0))), second(30)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := start(t, tc.flow, "do a")
			if got := p.call("a", 0).CompleteBy.Sub(noon); got != tc.want {
				t.Errorf("got complete-by after %v, want %v", got, tc.want)
			}
			if due, ok := p.s.NextDue(); !ok || due.Sub(noon) != tc.want {
				t.Errorf("got next due %v, want after %v", due, tc.want)
			}
		})
	}
}

// S17, S18, S37, S44, S58, S61, S62: no reply by complete-by ends the attempt, whatever the
// reason of the silence.
func TestTimeoutIsUnknown(t *testing.T) {
	p := start(t, flow(do("a", idempotent)), "do a")
	p.wait(second(30)).state("a backoff").effects("a maybe")
	if v := p.view("a"); v.Failures != 1 || v.Code != "timeout" {
		t.Errorf("got %d failures, code %q", v.Failures, v.Code)
	}
	p.wait(second(1), "do a")
}

// S57: the run as a whole has a deadline, too.
func TestTimeRunDeadlineTurnsTheRun(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), idempotent, timeout(time.Minute)), runDeadline(second(40))), "do a")
	p.ok("a", "do b")
	p.wait(second(40)).failure("deadline_exceeded").is("compensating").state("b failed") // b's attempt ended with it
	p.wait(second(2), "do b")                                                            // learn what b did
	p.ok("b", "undo b")
	p.ok("b", "undo a")
	p.ok("a").is("compensated")
}

func TestTimeOutermostLimitIsReported(t *testing.T) {
	p := start(t, flow(do("a", timeout(second(10)), deadline(second(10)), undoBlind), runDeadline(second(10))), "do a")
	p.wait(second(10)).failure("deadline_exceeded")
	p = start(t, flow(do("a", timeout(second(10)), deadline(second(10)), undoBlind)), "do a")
	p.wait(second(10)).failure("a deadline_exceeded")
}

func TestTimeRunDeadlineCannotBeCaught(t *testing.T) {
	p := start(t, flow(do("a", catch("", "*"), undoBlind), runDeadline(second(10))), "do a")
	p.wait(second(10)).is("compensating").failure("deadline_exceeded").state("a failed")
	p = start(t, flow(do("a", catch("", "*"), undoBlind, deadline(second(10))), do("b", after("a"))), "do a")
	p.wait(second(10), "do b").state("a caught") // a step's deadline can
}

func TestTimeBackoffBeyondTheDeadlineIsNotSlept(t *testing.T) {
	p := start(t, flow(do("a", tries(5), deadline(second(2)))), "do a")
	p.fail("a", "flaky")
	p.wait(second(1), "do a")
	p.fail("a", "flaky").is("failed").failure("a deadline_exceeded") // 2s of pause would end after the deadline
}

// S65: waiting for a slot burns no attempt, and deadlines go on.
func TestTimeHeldStepsKeepTheirDeadline(t *testing.T) {
	full := map[string]machine.Slot{"shop": {Why: "full"}}
	p := startWith(t, flow(do("a", deadline(second(10)))), full)
	p.is("queued").state("a held")
	if h := p.s.Held(); len(h) != 1 || h[0].Agent != "shop" || h[0].Why != "full" {
		t.Errorf("got held %+v", h)
	}
	p.wait(second(10)).is("failed").failure("a deadline_exceeded")
	if v := p.view("a"); v.Attempts != 0 || v.Failures != 0 {
		t.Errorf("got %d attempts, %d failures, want none", v.Attempts, v.Failures)
	}
}

func TestTimeSlotsInOrder(t *testing.T) {
	full := map[string]machine.Slot{"shop": {Why: "full"}}
	p := startWith(t, flow(do("a"), do("b"), do("c")), full)
	p.slots = map[string]machine.Slot{"shop": {Free: 1}}
	p.event(machine.SlotsFreed{}, "do a")
	p.ok("a", "do b")
	p.slots = nil
	p.event(machine.SlotsFreed{}, "do c")
	p.event(machine.SlotsFreed{}).nothing()
	p.ok("b")
	p.ok("c").is("succeeded")
}

func TestTimeOpenCircuitHoldsUntilItsProbe(t *testing.T) {
	open := map[string]machine.Slot{"shop": {Until: noon.Add(second(5)), Why: "circuit open"}}
	p := startWith(t, flow(do("a")), open)
	if due, ok := p.s.NextDue(); !ok || due.Sub(noon) != second(5) {
		t.Fatalf("got next due %v, want the probe", due)
	}
	p.slots = nil
	p.wait(second(5), "do a")
}

func TestTimeCompensationHasItsOwnClock(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), runDeadline(second(60)), compensationDeadline(second(100))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	p.wait(second(30)) // the undo's timeout
	p.wait(second(1), "undo a")
	p.wait(second(30))
	p.wait(second(2), "undo a")
	p.wait(second(30))
	p.wait(second(4), "undo a") // its complete-by is the compensation's deadline
	p.wait(second(3), "alert compensation_failed").is("compensation_failed").state("a undo_failed")
	if v := p.view("a"); v.UndoCode != "deadline_exceeded" {
		t.Errorf("got %q", v.UndoCode)
	}
}

func TestTimeUndoDeadline(t *testing.T) {
	p := start(t, flow(do("a", undoDeadline(second(20))), do("b", after("a"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "undo a")
	if got := p.call("a", 0).CompleteBy.Sub(noon); got != second(20) {
		t.Errorf("got complete-by after %v", got)
	}
	p.wait(second(20), "alert compensation_failed").state("a undo_failed")
}

func TestTimeNothingDueChangesNothing(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	p.event(machine.TimePassed{}).nothing()
	p.wait(second(29)).nothing()
}

// One code covers everything that a deadline ends: also a step that gives up
// early, because the next attempt would begin after its deadline.
func TestTimeGivingUpBeforeTheDeadlineIsDeadlineExceeded(t *testing.T) {
	flaky := func(options ...option) *spec {
		return do("a", append([]option{idempotent, tries(9), deadline(second(2))}, options...)...)
	}
	t.Run("caught", func(t *testing.T) {
		p := start(t, flow(flaky(catch("", "deadline_exceeded")), do("b", after("a"))), "do a")
		p.fail("a", "unavailable")
		p.wait(second(1), "do a")
		p.fail("a", "unavailable", "do b").state("a caught")
	})
	t.Run("not by the last attempt's code", func(t *testing.T) {
		p := start(t, flow(flaky(catch("", "unavailable"))), "do a")
		p.fail("a", "unavailable")
		p.wait(second(1), "do a")
		p.fail("a", "unavailable").failure("a deadline_exceeded")
		n := story.Node(p.s, p.wf, p.find("a"))
		if want := "the last one ended with unavailable: the agent says unavailable"; n.Code != machine.CodeDeadlineExceeded || !strings.Contains(n.Message, want) {
			t.Errorf("got %s: %s, want the last attempt's code in the message", n.Code, n.Message)
		}
	})
	t.Run("an instance", func(t *testing.T) {
		p := start(t, flow(flaky(each("k"))), "do a[k]")
		p.fail("a[k]", "unavailable")
		p.wait(second(1), "do a[k]")
		p.fail("a[k]", "unavailable").failure("a deadline_exceeded")
	})
	t.Run("attempts had run out", func(t *testing.T) {
		p := start(t, flow(flaky(tries(1))), "do a")
		p.fail("a", "unavailable").failure("a unavailable")
	})
}
