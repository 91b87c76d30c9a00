package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// told returns the facts of a kind about a step, oldest first.
func (p *play) told(kind story.FactKind, step string) []story.Fact {
	p.t.Helper()
	var found []story.Fact
	for _, f := range p.facts {
		if f.Kind == kind && f.Step == step {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		p.t.Fatalf("no %s about %q in %+v", kind, step, p.facts)
	}
	return found
}

// S87: the call that learns an output before the undo is no try of the undo,
// for the facts and for the views alike.
func TestFactsOfACallThatLearns(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), idempotent, tries(1))), "do a")
	p.ok("a", "do b")
	p.unknown("b", "lost", "do b")
	p.okWith("b", `{"id":"learned"}`, "undo b")
	p.ok("b", "undo a")
	starts := p.told(story.FactAttemptStarted, "b")
	if len(starts) != 3 || starts[0].Purpose != story.PurposeDo || starts[1].Purpose != story.PurposeLearn || starts[2].Purpose != story.PurposeUndo {
		t.Fatalf("got %+v", starts)
	}
	if starts[1].Action != "shop.b" || starts[2].Action != "shop.unb" || starts[0].Undo || !starts[1].Undo || starts[2].Attempt != 1 {
		t.Errorf("got %+v", starts)
	}
	if f := p.told(story.FactUndoFinished, "b")[0]; f.Attempt != 1 || f.Status != "undone" {
		t.Errorf("got %+v, want one try", f)
	}
	v := p.view("b")
	if v.UndoAttempts != 1 || len(v.Calls) != 3 || v.Calls[1].Purpose != story.PurposeLearn {
		t.Errorf("got %d undo attempts, calls %+v", v.UndoAttempts, v.Calls)
	}
}

// S29: each call is shown with the key it was sent under.
func TestViewShowsTheKeyOfEachCall(t *testing.T) {
	p := start(t, flow(do("a", idempotent, tries(1), lookup, undoOnce, undoLookup), do("b", after("a"))), "do a")
	p.unknown("a", "lost", "lookup a")
	p.okWith("a", `{"id":"a-1"}`, "do b")
	p.now = p.now.Add(second(1))
	p.fail("b", "declined", "undo a")
	p.now = p.now.Add(second(1))
	p.unknown("a", "lost", "lookup a")
	v := p.view("a")
	if len(v.Calls) != len(p.calls)-1 {
		t.Fatalf("%d calls are shown of %d", len(v.Calls), len(p.calls)-1)
	}
	for _, c := range v.Calls {
		if sent := p.call("a", c.Call); sent.IdempotencyKey != c.Key || c.Key == "" {
			t.Errorf("call %d (%s): shown %q, sent %q", c.Call, c.Purpose, c.Key, sent.IdempotencyKey)
		}
	}
	if v.UndoKey == v.IdempotencyKey || v.Calls[2].Key != v.UndoKey || !v.Calls[3].Undo || v.Calls[1].Undo {
		t.Errorf("got %+v", v)
	}
}

// A fact about a verb, a signal or a takeover says whether the run rests afterwards: whether it needs
// a person, or has ended.
func TestFactsSayThatARunRests(t *testing.T) {
	last := func(p *play, kind story.FactKind, want string) {
		t.Helper()
		var f story.Fact
		for _, x := range p.facts {
			if x.Kind == kind {
				f = x
			}
		}
		if f.Kind != kind || f.Rest != want {
			t.Errorf("got %+v, want a %s with Rest %q", f, kind, want)
		}
	}
	p := start(t, flow(do("a", tries(1)), do("b", tries(1)), manual), "do a", "do b")
	p.event(machine.PauseRequested{By: "ann"})
	last(p, story.FactVerb, "")
	p.event(machine.ResumeRequested{By: "ann"})
	p.permanent("a", "declined", "alert parked").is("parked")
	p.ok("b").is("parked")
	p.event(machine.ResumeRequested{By: "ann"}).refused("the run is parked")
	p.event(machine.Refused{Verb: "resume", By: "ann", Reason: "the run is not paused"})
	last(p, story.FactVerb, "parked")
	p.event(machine.TakenOver{By: 2, From: 1})
	last(p, story.FactRunTakenOver, "parked")
	p.event(machine.RetryRequested{By: "ann"}, "do a").is("running")
	last(p, story.FactVerb, "")
}

// The undo that ran before attempt 2 is shown without a key, because the node has another key now.
// Its key is not the key of the undo that may follow later.
func TestViewOfAnUndoBeforeAnotherAttempt(t *testing.T) {
	p := start(t, flow(do("a", undoByKey, undoFirst, tries(2))), "do a")
	p.unknown("a", "agent_lost")
	p.wait(second(1), "undo a")
	sent := p.call("a", 0)
	if v := p.view("a"); v.Calls[1].Key != sent.IdempotencyKey || v.Calls[1].Purpose != story.PurposeUndo {
		t.Errorf("while the undo runs: got %+v, sent %q", v.Calls[1], sent.IdempotencyKey)
	}
	p.ok("a", "do a")
	v := p.view("a")
	if v.UndoKey == sent.IdempotencyKey || v.UndoKey == "" {
		t.Errorf("got the undo key %q, and the first undo had %q", v.UndoKey, sent.IdempotencyKey)
	}
	for i, want := range []string{"", "", p.lastKey("a")} {
		if got := v.Calls[i]; got.Key != want {
			t.Errorf("call %d (%s): got key %q, want %q", got.Call, got.Purpose, got.Key, want)
		}
	}
	business := func(s *spec) { s.IdempotencyKey = func(*dsl.Scope) (string, error) { return "order-7", nil } }
	p = start(t, flow(do("a", undoByKey, undoFirst, tries(2), business)), "do a")
	p.unknown("a", "agent_lost")
	p.wait(second(1), "undo a")
	p.ok("a", "do a")
	for i, want := range []string{"order-7", "order-7:undo", "order-7"} {
		if got := p.view("a").Calls[i]; got.Key != want {
			t.Errorf("call %d (%s): got key %q, want %q", got.Call, got.Purpose, got.Key, want)
		}
	}
}

// The deadline of a for_each step holds for each of its instances, so the facts and the views of an
// instance show it.
func TestInstancesShowTheDeadlineOfTheirStep(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), deadline(second(50)), undoDeadline(second(700)), tries(2)), do("b", after("a"))), "do a[k]", "do a[l]")
	by := noon.Add(second(50))
	if f := p.told(story.FactAttemptStarted, `a["k"]`)[0]; !f.StepDeadline.Equal(by) {
		t.Errorf("started: got %v", f.StepDeadline)
	}
	p.now = p.now.Add(second(1))
	p.fail("a[k]", "flaky")
	for _, kind := range []story.FactKind{story.FactAttemptFinished, story.FactRetryScheduled} {
		if f := p.told(kind, `a["k"]`)[0]; !f.StepDeadline.Equal(by) {
			t.Errorf("%s: got %v", kind, f.StepDeadline)
		}
	}
	for _, name := range []string{"a", "a[k]", "a[l]"} {
		if v := p.view(name); !v.Deadline.Equal(by) {
			t.Errorf("view of %s: got %v", name, v.Deadline)
		}
	}
	p.wait(second(1), "do a[k]")
	p.ok("a[k]")
	p.ok("a[l]", "do b")
	p.fail("b", "declined", "undo a[k]", "undo a[l]")
	starts := p.told(story.FactAttemptStarted, `a["k"]`)
	if f := starts[len(starts)-1]; !f.Undo || !f.StepDeadline.IsZero() || !f.UndoDeadline.Equal(p.now.Add(second(700))) {
		t.Errorf("undo: got %v and %v", f.StepDeadline, f.UndoDeadline)
	}
}

// The deadline told with an attempt is that of its own direction, also after
// the run has turned.
func TestFactsTellTheDeadlineOfTheDirection(t *testing.T) {
	p := start(t, flow(do("a", deadline(second(50)), undoDeadline(second(700))), do("b"), runDeadline(second(300))), "do a", "do b")
	p.fail("b", "declined")
	p.now = p.now.Add(second(1))
	p.ok("a", "undo a")
	step, undo := noon.Add(second(50)), noon.Add(second(701))
	if f := p.told(story.FactAttemptFinished, "a")[0]; !f.StepDeadline.Equal(step) || !f.UndoDeadline.IsZero() {
		t.Errorf("finished: got %v and %v", f.StepDeadline, f.UndoDeadline)
	}
	if f := p.told(story.FactAttemptStarted, "a")[1]; !f.UndoDeadline.Equal(undo) || !f.StepDeadline.IsZero() {
		t.Errorf("undo started: got %v and %v", f.StepDeadline, f.UndoDeadline)
	}
	if v := p.view("a"); !v.Deadline.Equal(step) || !v.UndoDeadline.Equal(undo) {
		t.Errorf("view: got %v and %v", v.Deadline, v.UndoDeadline)
	}
	if f, s := p.s.Run().Deadline.Time().Sub(noon), p.s.Run().UndoDeadline.Time().Sub(noon); f != second(300) || s != 24*time.Hour {
		t.Errorf("run: got %v and %v", f, s)
	}
	if f := p.told(story.FactRunTurned, "b")[0]; f.CompensationDeadline.Sub(noon) != 24*time.Hour {
		t.Errorf("turned: got %v", f.CompensationDeadline)
	}
}

// S59: a compensation that is stuck names the undos that failed, not what
// turned the run, and counts what they hold up.
func TestStuckCompensationNamesTheUndo(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"), each("k")), do("c", after("a")), do("d", after("b", "c"))), "do a")
	p.ok("a", "do b[k]", "do c")
	p.ok("b[k]")
	p.ok("c", "do d")
	p.fail("d", "declined", "undo b[k]", "undo c")
	p.ok("c")
	p.permanent("b[k]", "denied", "alert compensation_failed")
	f := p.told(story.FactRunParked, "d")[0]
	if len(f.UndoFailures) != 1 || f.UndoFailures[0].Step != `b["k"]` || f.UndoFailures[0].Code != "denied" || f.Undone != 1 || f.UndoBlocked != 1 {
		t.Errorf("got %+v", f)
	}
	var alert machine.Alert
	for _, c := range p.last.Commands() {
		if a, ok := c.(machine.Alert); ok {
			alert = a
		}
	}
	if alert.Step != `b["k"]` || alert.Code != "denied" {
		t.Errorf("got alert %+v", alert)
	}
	if failures, blocked := story.UndoFailures(p.twin, p.wf); len(failures) != 1 || blocked != 1 {
		t.Errorf("from the journal: %+v and %d", failures, blocked)
	}
}

// A wait is told as what it is for.
func TestFactsOfWaits(t *testing.T) {
	t.Run("cool-down", func(t *testing.T) { // S41
		p := start(t, flow(do("a", tries(1), exhausted(dsl.ExhaustedCoolDown))), "do a")
		p.fail("a", "flaky")
		if f := p.told(story.FactRetryScheduled, "a")[0]; !f.CoolDown || f.Attempt != 1 || !f.Until.Equal(noon.Add(15*time.Minute)) {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("backoff", func(t *testing.T) {
		p := start(t, flow(do("a", tries(2))), "do a")
		p.fail("a", "flaky")
		if f := p.told(story.FactRetryScheduled, "a")[0]; f.CoolDown || f.Purpose != story.PurposeDo || f.Attempt != 2 {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("grace before a lookup", func(t *testing.T) {
		p := start(t, flow(do("a", lookup)), "do a")
		p.wait(second(30))
		if f := p.told(story.FactRetryScheduled, "a")[0]; f.Purpose != story.PurposeLookup || f.Attempt != 0 || !f.Until.Equal(p.now.Add(machine.Grace)) {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("a slot, for an instance", func(t *testing.T) { // S65
		p := startWith(t, flow(do("a", each("k", "l"))), map[string]machine.Slot{"shop": {Free: 1}}, "do a[k]")
		if f := p.told(story.FactStepHeld, `a["l"]`)[0]; f.Agent != "shop" {
			t.Errorf("got %+v", f)
		}
	})
}

// S82: what an instance says of itself is told under its name and attempt.
func TestFactsOfProgress(t *testing.T) {
	p := start(t, flow(do("a", each("k"))), "do a[k]")
	p.event(machine.AttemptProgress{Attempt: p.call("a[k]", 0).Attempt, Number: 7, Note: "half", Blob: []byte("x")})
	if f := p.told(story.FactAttemptProgress, `a["k"]`)[0]; f.Attempt != 1 || f.Purpose != story.PurposeDo || f.Message != "half" {
		t.Errorf("got %+v", f)
	}
}

// The story's first line names the run and its key.
func TestFactsNameTheRun(t *testing.T) {
	p := start(t, flow(do("a")), "do a")
	if f := p.told(story.FactRunCreated, "")[0]; f.Run != "o-42" || f.Key != "k" {
		t.Errorf("got %+v", f)
	}
}

// Whoever shows an instance can say of how many: the others may not have begun,
// and then no fact is about them.
func TestFactsOfAnInstanceTellHowManyThereAre(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l", "m"), parallel(1), idempotent, tries(2)), do("b", after("a"))), "do a[k]")
	p.fail("a[k]", "unavailable")
	p.wait(second(1), "do a[k]")
	for _, kind := range []story.FactKind{story.FactAttemptStarted, story.FactAttemptFinished, story.FactRetryScheduled} {
		if f := p.told(kind, `a["k"]`)[0]; f.Among != 3 {
			t.Errorf("%s is of an instance among %d, want 3", kind, f.Among)
		}
	}
	p.ok("a[k]", "do a[l]")
	p.ok("a[l]", "do a[m]")
	if f := p.told(story.FactAttemptStarted, `a["m"]`)[0]; f.Among != 3 {
		t.Errorf("the last instance is among %d, want 3", f.Among)
	}
	p.ok("a[m]", "do b")
	if f := p.told(story.FactAttemptStarted, "b")[0]; f.Among != 0 {
		t.Errorf("a step without for_each is among %d instances", f.Among)
	}
}

// The duration of a for_each step runs from when it became ready to the end of
// its last instance.
func TestFactsOfAForEachStepTellHowLongItTook(t *testing.T) {
	p := start(t, flow(do("a", each("k", "l"), parallel(1))), "do a[k]")
	p.wait(second(3))
	p.ok("a[k]", "do a[l]")
	p.wait(second(4))
	p.ok("a[l]")
	if f := p.told(story.FactStepFinished, "a"); len(f) != 1 || f[0].Took != 7*time.Second {
		t.Errorf("the step's end is told as %+v, want one that took 7 s", f)
	}
}
