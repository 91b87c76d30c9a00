package machine_test

import (
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// S1, S6, S20, S23: a failure turns the run; everything done is undone,
// backwards along the graph.
func TestFailureAndCompensationBackwards(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("b"))), "do a")
	p.ok("a", "do b")
	p.ok("b", "do c")
	p.fail("c", "no_carrier", "undo b").is("compensating").failure("c no_carrier")
	p.ok("b", "undo a").state("b undone", "a undoing")
	p.ok("a").is("compensated")
	if int(p.s.Run().Undone) != 2 || int(p.s.Run().Left) != 0 {
		t.Errorf("got %d undone, %d left", int(p.s.Run().Undone), int(p.s.Run().Left))
	}
}

func TestFailureAndCompensationInParallelWhereTheGraphAllows(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("c", after("a")), do("d", after("b", "c"))), "do a")
	p.ok("a", "do b", "do c")
	p.ok("b")
	p.ok("c", "do d")
	p.fail("d", "declined", "undo b", "undo c")
	p.ok("c")
	p.ok("b", "undo a")
	p.ok("a").is("compensated")
}

func TestFailureAndCompensationPassesThroughWhatHasNothingToUndo(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), readOnly), do("c", after("b"), noUndo), do("d", after("c"))), "do a")
	p.ok("a", "do b")
	p.ok("b", "do c")
	p.ok("c", "do d")
	p.fail("d", "declined", "undo a")
	p.ok("a").is("compensated")
	if int(p.s.Run().Undeclared) != 1 {
		t.Errorf("got %d, want c listed as not undone by declaration", int(p.s.Run().Undeclared))
	}
}

// The end of a run names the steps whose effects stay by declaration, because the
// exit code does not tell them from a run that left nothing.
func TestFailureAndCompensationNamesWhatStaysByDeclaration(t *testing.T) {
	p := start(t, flow(do("a"), do("tell", after("a"), noUndo, each("k", "l"), maxFailures(1)), do("d", after("tell"))), "do a")
	p.ok("a", "do tell[k]", "do tell[l]")
	p.ok("tell[k]")
	p.fail("tell[l]", "declined", "do d") // it did nothing, so nothing of it stays
	p.fail("d", "declined", "undo a")
	p.ok("a").is("compensated")
	want := []string{`tell["k"]`}
	if got := story.KeptByDeclaration(p.s, p.wf); !slices.Equal(got, want) {
		t.Errorf("the state names %q, want %q", got, want)
	}
	end := p.facts[len(p.facts)-1]
	if end.Kind != story.FactRunFinished || !slices.Equal(end.Kept, want) || end.Undeclared != 1 {
		t.Errorf("the last fact is %s, names %q and counts %d, want run_finished, %q and 1", end.Kind, end.Kept, end.Undeclared, want)
	}
}

func TestFailureAndCompensationAwaitsWhatRuns(t *testing.T) {
	p := start(t, flow(do("a"), do("b"), do("c", after("b"))), "do a", "do b")
	p.fail("a", "declined").state("c cancelled", "b running")
	p.ok("b", "undo b") // its result counts; c does not start
	p.ok("b").is("compensated")
}

// Only read-only actions and those that may be interrupted are told to stop:
// interrupting any other call would turn a result into an unknown outcome.
func TestFailureAndCompensationStopsOnlyWhatMayBeInterrupted(t *testing.T) {
	for _, c := range []struct {
		name  string
		turn  func(*play, ...string)
		state string
	}{
		{"a failure elsewhere", func(p *play, want ...string) { p.fail("a", "declined", want...) }, "compensated"},
		{"cancel", func(p *play, want ...string) {
			p.event(machine.CancelRequested{By: "op"}, want...)
			p.fail("a", "declined")
		}, "cancelled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, flow(do("a"), do("post"), do("watch", readOnly), do("copy", cancellable)), "do a", "do post", "do watch", "do copy")
			c.turn(p, "stop watch", "stop copy")
			p.unknown("watch", "aborted")
			p.permanent("copy", "aborted")
			p.ok("post", "undo post")
			p.ok("post").is(c.state).state("post undone")
		})
	}
}

// A lookup that is under way when the run turns is awaited: the undo needs its
// answer.
func TestFailureAndCompensationAwaitsALookup(t *testing.T) {
	p := start(t, flow(do("a"), do("b", lookup, cancellable)), "do a", "do b")
	p.unknown("b", "internal", "lookup b")
	p.fail("a", "declined")
	p.event(machine.AttemptNotDone{Attempt: p.call("b", 0).Attempt}).is("failed")
}

func TestFailureAndCompensationOfWhatNeverBegan(t *testing.T) {
	p := start(t, flow(do("a", tries(2)), do("b")), "do a", "do b")
	p.fail("a", "flaky").state("a backoff")
	p.fail("b", "declined").is("failed").state("a cancelled")
}

func TestFailureAndCompensationCatchChangesNothingAboutUndo(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), catch(`{"id":"none"}`, "*")), do("c", after("b"))), "do a")
	p.ok("a", "do b")
	p.fail("b", "declined", "do c").state("b caught")
	if in := string(p.call("c", 0).Input.JSON()); in != `{"step":"c","in1":{"id":"none"}}` {
		t.Errorf("got %s", in)
	}
	p.fail("c", "declined", "undo a")
	p.ok("a").is("compensated")
}

func TestFailureAndCompensationUndoSeesOutputAndFailure(t *testing.T) {
	a := do("a")
	a.Undo.Input = func(sc *dsl.Scope) (dsl.Value, error) {
		return js(`{"code":"` + sc.Failure.Code + `","step":"` + sc.Failure.Step + `","of":` + string(sc.Self.Output.JSON()) + `,"key":"` + sc.Self.Key + `"}`), nil
	}
	p := start(t, flow(a, do("b", after("a"))), "do a")
	key := p.call("a", 0).IdempotencyKey
	p.ok("a", "do b")
	p.fail("b", "no_carrier", "undo a")
	if in := string(p.call("a", 0).Input.JSON()); in != `{"code":"no_carrier","step":"b","of":{"id":"a-1"},"key":"`+key+`"}` {
		t.Errorf("got %s", in)
	}
}

// S24: undo has its own attempts and limits.
func TestWhenAnUndoFails(t *testing.T) {
	failed := func(t *testing.T, a *spec) *play {
		p := start(t, flow(a, do("b", after("a"))), "do a")
		p.ok("a", "do b")
		return p.fail("b", "declined", "undo a")
	}
	t.Run("transient", func(t *testing.T) {
		p := failed(t, do("a"))
		p.fail("a", "unavailable").state("a undoing")
		p.wait(second(1), "undo a")
		p.fail("a", "unavailable")
		p.wait(second(2), "undo a")
		p.ok("a").is("compensated")
	})
	t.Run("permanent", func(t *testing.T) {
		p := failed(t, do("a"))
		p.permanent("a", "unavailable", "alert compensation_failed").is("compensation_failed").state("a undo_failed")
		if !p.s.Run().State.NeedsHuman() {
			t.Errorf("got %s", p.s.Status())
		}
		if _, due := p.s.NextDue(); due {
			t.Error("nothing loops: want no due time")
		}
	})
	t.Run("unknown, idempotent", func(t *testing.T) {
		p := failed(t, do("a"))
		p.unknown("a", "internal")
		p.wait(second(1), "undo a")
	})
	t.Run("unknown, not idempotent", func(t *testing.T) {
		p := failed(t, do("a", undoOnce))
		p.unknown("a", "internal", "alert compensation_failed")
		p.event(machine.CompensateRequested{Step: "a", Retry: true}).refused("settle")
		p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}, "undo a")
		p.ok("a").is("compensated")
	})
	t.Run("unknown, asked by lookup", func(t *testing.T) {
		p := failed(t, do("a", undoOnce, undoLookup))
		p.unknown("a", "internal", "lookup a")
		p.notDone("a")
		p.wait(second(1), "undo a")
		p.unknown("a", "internal", "lookup a")
		p.ok("a").is("compensated")
	})
	t.Run("attempts used up", func(t *testing.T) {
		p := failed(t, do("a", undoTries(2)))
		p.fail("a", "unavailable")
		p.wait(second(1), "undo a")
		p.fail("a", "unavailable", "alert compensation_failed")
	})
}

func TestWhenAnUndoFailsItBlocksItsAncestorsOnly(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a")), do("x"), do("y", after("x")), do("z", after("b", "y"))), "do a", "do x")
	p.ok("a", "do b")
	p.ok("x", "do y")
	p.ok("b")
	p.ok("y", "do z")
	p.fail("z", "declined", "undo b", "undo y")
	p.permanent("b", "gone").is("compensating").state("b undo_failed", "a succeeded")
	p.ok("y", "undo x")
	p.ok("x", "alert compensation_failed").is("compensation_failed").state("a succeeded")
	t.Run("retry", func(t *testing.T) {
		q := *p
		q.t, q.s, q.twin, q.plain = t, p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.event(machine.CompensateRequested{Step: "b", Retry: true}, "undo b").is("compensating")
		q.ok("b", "undo a")
		q.ok("a").is("compensated")
	})
	t.Run("skip", func(t *testing.T) {
		q := *p
		q.t, q.s, q.twin, q.plain = t, p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.event(machine.CompensateRequested{Step: "b", Skip: true, By: "ann"}, "undo a")
		q.ok("a").is("compensated")
		if int(q.s.Run().Left) != 1 || int(q.s.Run().Undone) != 3 {
			t.Errorf("got %d left, %d undone", int(q.s.Run().Left), int(q.s.Run().Undone))
		}
	})
	t.Run("settle", func(t *testing.T) {
		q := *p
		q.t, q.s, q.twin, q.plain = t, p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.event(machine.SettleRequested{Step: "b", As: machine.SettleUndone}, "undo a")
		q.ok("a").is("compensated")
	})
	t.Run("refused", func(t *testing.T) {
		q := *p
		q.t, q.s, q.twin, q.plain = t, p.s.Clone(), p.twin.Clone(), p.plain.Clone()
		q.event(machine.CompensateRequested{Step: "a", Retry: true}).refused("no failed undo")
		q.event(machine.CompensateRequested{Step: "b", Retry: true, Skip: true}).refused("either")
		q.event(machine.CompensateRequested{}).refused("not parked")
		q.event(machine.RetryRequested{}).refused("not parked")
		q.event(machine.SettleRequested{Step: "y", As: machine.SettleUndone}).refused("not in doubt")
	})
}

func TestPivot(t *testing.T) {
	wf := func(more ...any) *dsl.Workflow {
		return flow(append([]any{do("a"), do("p", after("a"), pivot), do("c", after("p"))}, more...)...)
	}
	t.Run("a definite failure turns the run", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.ok("a", "do p")
		p.fail("p", "declined", "undo a")
	})
	t.Run("an unknown outcome parks", func(t *testing.T) {
		p := start(t, flow(do("a"), do("p", after("a"), pivot, undoByKey)), "do a")
		p.ok("a", "do p")
		p.unknown("p", "agent_lost", "alert parked").is("parked")
		p.event(machine.CompensateRequested{}).refused("pivot")
		p.event(machine.CancelRequested{}).refused("pivot")
		p.event(machine.SettleRequested{Step: "p", As: machine.SettleSucceeded, Output: js(`{}`)}).is("succeeded")
	})
	t.Run("nothing is undone after it", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.ok("a", "do p")
		p.ok("p", "do c")
		p.fail("c", "declined", "alert parked").is("parked")
		p.event(machine.CompensateRequested{}).refused("pivot")
		p.event(machine.CancelRequested{}).refused("pivot")
		p.event(machine.RetryRequested{}, "do c")
		p.ok("c").is("succeeded")
	})
	t.Run("a passed deadline only raises overdue", func(t *testing.T) {
		p := start(t, wf(runDeadline(second(10))), "do a")
		p.ok("a", "do p")
		p.ok("p", "do c")
		if got := p.call("c", 0).CompleteBy.Sub(noon); got != second(30) {
			t.Errorf("got complete-by after %v: the run's deadline bounds nothing here", got)
		}
		p.wait(second(10), "alert overdue").is("running")
		p.ok("c").is("succeeded")
	})
	t.Run("cancel --no-compensate", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.ok("a", "do p")
		p.ok("p", "do c")
		p.event(machine.CancelRequested{NoCompensate: true})
		p.fail("c", "aborted").is("cancelled")
		if int(p.s.Run().Left) != 2 {
			t.Errorf("got %d left as is, want a and p", int(p.s.Run().Left))
		}
	})
	t.Run("skipped it counts as not passed", func(t *testing.T) {
		p := start(t, flow(do("a"), do("p", after("a"), pivot, when(false)), do("c", after("p"))), "do a")
		p.ok("a", "do c")
		p.fail("c", "declined", "undo a")
	})
	t.Run("cancel while it runs waits for its outcome", func(t *testing.T) {
		p := start(t, wf(), "do a")
		p.ok("a", "do p")
		p.event(machine.CancelRequested{}).is("running")
		p.event(machine.CancelRequested{}).refused("already")
		p.ok("p", "do c").is("running") // too late to turn back
		p.ok("c").is("succeeded")

		p = start(t, wf(), "do a")
		p.ok("a", "do p")
		p.event(machine.CancelRequested{})
		p.fail("p", "declined", "undo a")
		p.ok("a").is("cancelled")

		p = start(t, wf(runDeadline(second(20))), "do a")
		p.ok("a", "do p")
		p.wait(second(20), "alert parked").is("parked") // unknown: nothing is undone
		p.event(machine.SettleRequested{Step: "p", As: machine.SettleNotDone}, "undo a")
		p.ok("a").is("compensated").failure("deadline_exceeded")
	})
}
