package machine_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

var updateChild = flag.Bool("update-child", false, "write the golden journal of a child run anew")

// startChild starts a run as the child run of another one.
func startChild(t *testing.T, wf *dsl.Workflow, ev machine.Started, want ...string) *play {
	t.Helper()
	p := &play{t: t, wf: wf, s: machine.NewState(), twin: machine.NewState(), plain: machine.NewState(), now: noon}
	ev.RunID, ev.Name, ev.Vars, ev.Trigger = 43, "o-42.ship.0123456789", js(`{"x":1}`), "parent"
	ev.Parent, ev.ParentName, ev.ParentStep = 42, "o-42", "ship"
	return p.event(ev, want...)
}

// undoByParent is the verb of a parent that is being undone.
var undoByParent = machine.CompensateRequested{Parent: true, By: "o-42", Reason: "the parent run is being undone"}

// A child run that has succeeded turns back with its parent, once.
func TestChildTurnsBackWithItsParent(t *testing.T) {
	p := startChild(t, flow(do("a"), do("b", after("a"))), machine.Started{}, "do a")
	p.event(undoByParent).refused("the run has not ended").is("running")
	p.ok("a", "do b")
	p.ok("b").is("succeeded")
	p.event(undoByParent, "undo b").is("compensating").failure("undone_by_parent")
	p.event(undoByParent).refused("the run has not ended")
	p.ok("b", "undo a")
	p.ok("a").is("compensated")
	if rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: undoByParent}); !rec.Empty() {
		t.Error("a compensated child run is undone again")
	}
}

// A child run that has succeeded and has nothing to undo ends at once when its parent is undone.
func TestChildWithNothingToUndo(t *testing.T) {
	startChild(t, flow(value("a")), machine.Started{}).is("succeeded").event(undoByParent).is("failed").failure("undone_by_parent")
}

// Only a child run turns back after its end, and only without a pivot.
func TestWhoDoesNotTurnBackWithAParent(t *testing.T) {
	for name, p := range map[string]*play{
		"a run without a parent": start(t, flow(do("a")), "do a").ok("a"),
		"a run after its pivot":  startChild(t, flow(do("a", noUndo, pivot)), machine.Started{}, "do a").ok("a"),
		"a run that failed":      startChild(t, flow(do("a")), machine.Started{}, "do a").permanent("a", "declined"),
	} {
		rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: undoByParent})
		if _, refused := rec.Refused(); !rec.Empty() || !refused {
			t.Errorf("%s turns back", name)
		}
	}
}

// A child run whose parent has turned back before begins no step.
func TestVoidChildBeginsNothing(t *testing.T) {
	startChild(t, flow(do("a"), do("b", after("a"))), machine.Started{Void: true}).is("cancelled")
}

// The time until which the parent waits is a deadline of the child run.
func TestParentGivesADeadline(t *testing.T) {
	for _, c := range []struct {
		until, want time.Duration
	}{{60 * time.Second, 60 * time.Second}, {700 * time.Second, 600 * time.Second}} {
		p := startChild(t, flow(do("a", timeout(second(5000))), runDeadline(second(600))), machine.Started{Until: noon.Add(c.until)}, "do a")
		if got := p.call("a", 0).CompleteBy.Sub(noon); got != c.want {
			t.Errorf("with a parent that waits for %s, the call is complete by %s, want %s", c.until, got, c.want)
		}
	}
}

// A takeover sends the open call for a child run again, as the same attempt, and asks the child to
// stop if the run has turned back.
func TestTakeoverAttachesToChildren(t *testing.T) {
	p := start(t, flow(do("c", child)), "do c")
	key := p.call("c", 0).IdempotencyKey
	p.event(machine.TakenOver{By: 2, From: 1}, "do c")
	if c := p.call("c", 0); c.Attempt.Call != 1 || c.IdempotencyKey != key {
		t.Errorf("the call for the child run is %+v, want attempt 1 with the same key", c)
	}
	p.event(machine.CancelRequested{By: "ann"}, "stop c")
	p.event(machine.TakenOver{By: 3, From: 2}, "do c", "stop c")
	p.permanent("c", "cancelled").is("cancelled")
}

// A cancel without compensation goes down to the child run as such, with the reason. It follows from
// the state of the run, so a takeover repeats it.
func TestCancelWithoutCompensationAsksTheChildToLeave(t *testing.T) {
	p := start(t, flow(do("a"), do("c", child, after("a"))), "do a").ok("a", "do c")
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann", Reason: "closed"}, "leave c")
	for range 2 {
		if stop := p.last.Commands()[len(p.last.Commands())-1]; stop != (machine.Stop{Attempt: p.call("c", 0).Attempt, NoCompensate: true, Reason: "closed"}) {
			t.Errorf("the command is %+v, want the reason of the person", stop)
		}
		p.event(machine.TakenOver{By: 2, From: 1}, "do c", "leave c")
	}
	p.permanent("c", "cancelled").is("cancelled")
	if r := p.s.Run(); r.Left != 1 || r.Undone != 0 {
		t.Errorf("%d effects are left and %d undone, want that of a left", r.Left, r.Undone)
	}
}

// group makes a step start the run of a group.
func group(s *spec) {
	child(s)
	inside := *s.Child
	inside.Group = true
	s.Child = &inside
}

// A pause goes down to the open runs of groups, and so does its end. Child runs of other steps, and
// groups that have ended, are left alone. After a takeover the calls for groups say that the run is
// paused.
func TestPauseGoesDownToGroups(t *testing.T) {
	pause, resume := machine.PauseRequested{By: "ann", Reason: "audit"}, machine.ResumeRequested{By: "ann"}
	p := start(t, flow(do("g", group), do("c", child), do("end", group), do("after", group, after("end"))), "do c", "do end", "do g")
	p.event(pause, "pause end", "pause g")
	p.ok("end") // the group "after" begins when the run is resumed
	p.event(machine.TakenOver{By: 2, From: 1}, "do c", "do g")
	for _, cmd := range p.last.Commands() {
		inv, _ := cmd.(machine.Invoke)
		if got := inv.Pause.On && inv.Pause.Reason == "audit"; got != (inv.Attempt == p.call("g", 0).Attempt) {
			t.Errorf("after a takeover the call of %s says paused: %t", p.node(inv), got)
		}
	}
	p.event(resume, "do after", "resume g")
	p.event(machine.TakenOver{By: 3, From: 2}, "do after", "do c", "do g")
	for _, cmd := range p.last.Commands() {
		if inv, _ := cmd.(machine.Invoke); inv.Pause.On {
			t.Errorf("after the pause the call of %s says that the run is paused", p.node(inv))
		}
	}
	p.event(pause, "pause after", "pause g")
	p.event(machine.CancelRequested{By: "ann"}, "stop after", "stop c", "stop g")
	p.permanent("after", "cancelled").permanent("c", "cancelled").ok("g")
	p.event(resume, "undo end", "undo g")
	p.event(pause, "pause end", "pause g")
}

// The parent of a run ends only the pause that came from the parent. A person ends each pause.
func TestParentEndsOnlyItsOwnPause(t *testing.T) {
	parent, ann := machine.ResumeRequested{By: "o-42"}, machine.ResumeRequested{By: "ann"}
	p := startChild(t, flow(do("a")), machine.Started{}, "do a")
	p.event(machine.PauseRequested{By: "ann"}).event(parent).refused("paused by ann").is("paused")
	p.event(machine.PauseRequested{By: "o-42"}).refused("already paused").event(ann).is("running")
	p.event(machine.PauseRequested{By: "o-42"}).is("paused")
	if x := story.Explain(p.s, p.wf, p.now); !slices.Contains(x.Remedies, "engine resume o-42") {
		t.Errorf("the advice for a run that is paused with its parent is %q, want to resume the parent", x.Remedies)
	}
	p.event(parent).is("running")
	p.event(machine.PauseRequested{By: "o-42"}).is("paused").event(ann).is("running")
}

// A child run has no time limit of its own; a deadline of its step limits it.
func TestChildHasTime(t *testing.T) {
	p := start(t, flow(do("c", child), do("d", child, deadline(second(40)))), "do c", "do d")
	if left := p.call("c", 0).CompleteBy.Sub(noon); left < 9*365*24*time.Hour {
		t.Errorf("the child run has %s, want 10 years", left)
	}
	if left := p.call("d", 0).CompleteBy.Sub(noon); left != 40*time.Second {
		t.Errorf("the child run has %s, want the deadline of its step", left)
	}
}

// The verb retry starts a new child run if the former one left no effect. It asks for the same
// child again while its outcome is not known.
func TestRetryOfAChild(t *testing.T) {
	p := start(t, flow(do("c", child), manual), "do c")
	key := p.call("c", 0).IdempotencyKey
	p.permanent("c", "declined", "alert parked")
	p.event(machine.RetryRequested{By: "ann"}, "do c")
	if again := p.call("c", 0).IdempotencyKey; again == key {
		t.Error("the retry asks for the child run that has failed")
	}
	q := start(t, flow(do("c", child, tries(1)), manual), "do c")
	key = q.call("c", 0).IdempotencyKey
	q.unknown("c", "internal", "alert parked")
	q.event(machine.RetryRequested{By: "ann"}, "do c")
	if again := q.call("c", 0).IdempotencyKey; again != key {
		t.Error("the retry starts a second child run, although the first one may have had effects")
	}
}

// The deadline of a step asks its child run to turn back. Only the end of the child ends the step.
func TestDeadlineWaitsForTheChild(t *testing.T) {
	p := start(t, flow(do("c", child, noUndo, deadline(second(40)))), "do c")
	p.wait(second(40), "stop c").is("running")
	p.event(machine.TakenOver{By: 2, From: 1}, "do c", "stop c")
	p.wait(second(1000)).is("running")
	p.permanent("c", "cancelled").is("failed").failure("c deadline_exceeded")

	p = start(t, flow(do("c", child, noUndo), runDeadline(second(40))), "do c")
	p.wait(second(40), "stop c").is("compensating")
	p.event(machine.TakenOver{By: 2, From: 1}, "do c", "stop c")
	p.permanent("c", "cancelled").is("failed").failure(machine.CodeDeadlineExceeded)

	p = start(t, flow(do("c", child, noUndo), runDeadline(second(40)), manual), "do c")
	p.wait(second(40), "alert parked", "stop c")
	p.permanent("c", "cancelled").is("parked").failure(machine.CodeDeadlineExceeded)
}

// A child run that has passed its pivot does not turn back. Its result counts after the deadline.
func TestChildSucceedsAfterTheDeadline(t *testing.T) {
	p := start(t, flow(do("c", child, noUndo, deadline(second(40)))), "do c")
	p.wait(second(40), "stop c").ok("c").is("succeeded")

	p = start(t, flow(do("c", child, noUndo, pivot), runDeadline(second(40))), "do c")
	p.wait(second(40), "stop c").ok("c", "alert overdue").is("succeeded")
}

// The deadline of a for_each step waits for the children of all instances. Each instance whose child
// turns back fails the step, also if max_failures allows failures.
func TestDeadlineWaitsForEachChild(t *testing.T) {
	p := start(t, flow(do("c", child, each("a", "b"), maxFailures(1), noUndo, deadline(second(40)))), "do c[a]", "do c[b]")
	p.wait(second(40), "stop c[a]", "stop c[b]").ok("c[a]").is("running")
	p.permanent("c[b]", "cancelled").is("failed").failure("c deadline_exceeded")

	p = start(t, flow(do("c", child, each("a", "b"), noUndo, deadline(second(40)), catch(`1`, "deadline_exceeded"))), "do c[a]", "do c[b]")
	p.wait(second(40), "stop c[a]", "stop c[b]").ok("c[a]")
	p.permanent("c[b]", "cancelled").is("succeeded")
}

// A person cannot let a child run work on after the time until which its parent waits.
func TestNobodyExtendsTheTimeOfAParent(t *testing.T) {
	until := machine.Started{Until: noon.Add(second(60))}
	retry := machine.RetryRequested{By: "ann", Extend: time.Hour}
	p := startChild(t, flow(do("a"), manual), until, "do a").permanent("a", "declined", "alert parked")
	p.event(retry).refused("retry without extending it, or extend the deadline of the parent")
	p.event(machine.ResumeRequested{By: "ann", Extend: time.Hour}).refused("extend the deadline of the parent")
	p.event(machine.RetryRequested{By: "ann"}, "do a").permanent("a", "declined", "alert parked")
	p.wait(second(60), "alert overdue").event(retry).refused("waits no longer")
	p.event(machine.CompensateRequested{By: "ann"}).is("failed")

	// The deadline of the child's own workflow comes first: a person may extend that, up to the time
	// until which the parent waits.
	p = startChild(t, flow(do("a"), manual, runDeadline(second(10))), until, "do a").permanent("a", "declined", "alert parked")
	p.wait(second(10), "alert overdue").event(retry).refused("the parent o-42 does not wait so long: retry without")
	p.event(machine.RetryRequested{By: "ann", Extend: second(30)}, "do a")
}

// The journal of a child run, as the first engine that knew child runs wrote it, folds to the same
// states for ever.
func TestChildGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-child.txt")
	if *updateChild {
		p := startChild(t, flow(do("a"), do("c", child, after("a")), do("b", after("c")), runDeadline(second(600))), machine.Started{Until: noon.Add(second(500))}, "do a")
		p.ok("a", "do c")
		p.event(machine.TakenOver{By: 2, From: 1}, "do c")
		p.ok("c", "do b")
		p.event(machine.PauseRequested{By: "ann"}).event(machine.ResumeRequested{By: "ann"})
		p.ok("b").is("succeeded")
		undo := undoByParent
		undo.Ask = 7
		p.event(undo, "undo b")
		p.ok("b", "undo c")
		p.event(machine.TakenOver{By: 3, From: 2}, "undo c")
		p.ok("c", "undo a")
		p.ok("a").is("compensated")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
}
