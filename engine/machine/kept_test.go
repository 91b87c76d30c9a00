package machine_test

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/story"
)

// failKeeping lets the child run of a node fail. Some of its effects stay.
func (p *play) failKeeping(node string, kept status.Kept, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptFailed{Attempt: p.call(node, 0).Attempt, Code: "declined", Permanent: true, Kept: kept}, want...)
}

// okKeeping ends a call for a child run with a result. Some of the effects of the child run stay.
func (p *play) okKeeping(node string, kept status.Kept, want ...string) *play {
	p.t.Helper()
	return p.event(machine.AttemptOK{Attempt: p.call(node, 0).Attempt, Output: js(`{"id":"1"}`), Kept: kept}, want...)
}

// counts checks how many effects were undone, left by persons, and left by declaration.
func (p *play) counts(undone, left, declared int) *play {
	p.t.Helper()
	if r := p.s.Run(); int(r.Undone) != undone || int(r.Left) != left || int(r.Undeclared) != declared {
		p.t.Errorf("%d effects are undone, %d left and %d declared, want %d, %d and %d\n%s", r.Undone, r.Left, r.Undeclared, undone, left, declared, p.dump())
	}
	return p
}

// The effects that a failed child run keeps stay in its step. They are counted once: by persons and by
// declaration.
func TestKeptEffectsOfAFailedChild(t *testing.T) {
	for kept, want := range map[status.Kept][2]int{
		status.KeptLeft:                         {1, 0},
		status.KeptDeclared:                     {0, 1},
		status.KeptLeft | status.KeptDeclared:   {1, 1},
		status.KeptDeclared | status.KeptUndone: {0, 1},
		status.KeptLeft | status.KeptInDoubt:    {1, 0},
		status.KeptUndone:                       {0, 0},
	} {
		p := start(t, flow(do("a"), do("c", child, after("a"))), "do a").ok("a", "do c")
		p.failKeeping("c", kept, "undo a").ok("a").is("compensated").counts(1, want[0], want[1])
		v := p.view("c")
		if v.LeftAsIs != (want[0] > 0) || v.NotUndoneByDeclaration != (want[1] > 0) || v.State == status.StepUndone {
			t.Errorf("kept %b: the view is %+v", kept, v)
		}
		if effect := v.Effect; (effect == status.EffectDone) != (want[0]+want[1] > 0) {
			t.Errorf("kept %b: the effect is %v", kept, effect)
		}
		if names := story.KeptByDeclaration(p.s, p.wf); (len(names) == 1) != (want[1] > 0) {
			t.Errorf("kept %b: the kept steps are %q", kept, names)
		}
	}
}

// If the failure is caught, the counts are there at the end of the run, whether it succeeds or not.
func TestKeptEffectsOfACaughtChild(t *testing.T) {
	caught := catch(`{"id":"none"}`, "*")
	p := start(t, flow(do("c", child, caught), do("b", after("c"))), "do c")
	p.failKeeping("c", status.KeptLeft|status.KeptDeclared, "do b").ok("b").is("succeeded").counts(0, 1, 1)
	p = start(t, flow(do("c", child, caught), do("b", after("c"))), "do c")
	p.failKeeping("c", status.KeptLeft|status.KeptDeclared, "do b").permanent("b", "no").is("compensated").counts(0, 1, 1)
}

// The undo of a child run that has succeeded keeps effects. If the child has undone nothing, neither has
// its step.
func TestKeptEffectsOfAnUndo(t *testing.T) {
	for kept, want := range map[status.Kept][3]int{
		0:                                       {1, 0, 0},
		status.KeptLeft:                         {0, 1, 0},
		status.KeptDeclared:                     {0, 0, 1},
		status.KeptLeft | status.KeptDeclared:   {0, 1, 1},
		status.KeptDeclared | status.KeptUndone: {1, 0, 1},
	} {
		p := start(t, flow(do("c", child), do("b", after("c"))), "do c").ok("c", "do b").permanent("b", "no", "undo c")
		p.okKeeping("c", kept).counts(want[0], want[1], want[2])
	}
}

// A child run that has succeeded may keep effects of its own child runs. They count at once, and not
// again when the child is undone.
func TestKeptEffectsAreCountedOnce(t *testing.T) {
	p := start(t, flow(do("c", child), do("b", after("c"))), "do c").okKeeping("c", status.KeptDeclared, "do b").counts(0, 0, 1)
	p.permanent("b", "no", "undo c").okKeeping("c", status.KeptDeclared|status.KeptUndone).counts(1, 0, 1).is("compensated")
	// A cancel without compensation leaves the rest of the child in place, too.
	p = start(t, flow(do("c", child), do("b", after("c"))), "do c").okKeeping("c", status.KeptLeft, "do b").counts(0, 1, 0)
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann"}).permanent("b", "no").is("cancelled").counts(0, 1, 0)
}

// The pivot of a child run has succeeded, and then the child was cancelled without compensation. The
// parent is not undone: a person must act. It ends if it was cancelled in the same way.
func TestKeptPivotOfAChild(t *testing.T) {
	kept := status.KeptLeft | status.KeptPivot
	start0 := func(more ...option) *play {
		return start(t, flow(do("a"), do("c", append([]option{child, noUndo, pivot, after("a")}, more...)...)), "do a").ok("a", "do c")
	}
	p := start0().failKeeping("c", kept, "alert parked").is("parked").counts(0, 1, 0)
	p.event(machine.CancelRequested{By: "ann"}).refused("the pivot has succeeded")
	p.event(machine.CompensateRequested{By: "ann"}).refused("the pivot has succeeded")
	p.event(machine.RetryRequested{By: "ann"}).refused("retry with a new key")
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann"}).is("cancelled").counts(0, 2, 0)

	p = start0()
	p.event(machine.CancelRequested{NoCompensate: true, By: "ann"}, "leave c").failKeeping("c", kept).is("cancelled").counts(0, 2, 0)
	if why := p.refusals(p.wf, moving.From{Step: "c", Again: true}); !strings.Contains(why, "the pivot has taken effect, but its step has failed") {
		t.Errorf("a restart from the pivot is refused because of %q", why)
	}

	p = start0()
	p.event(machine.CancelRequested{By: "ann"}, "stop c").failKeeping("c", kept, "alert parked").is("parked")

	start0(catch(`1`, "*")).failKeeping("c", kept).is("succeeded").counts(0, 1, 0)

	// The child fails before its pivot: nothing holds the parent back, although an effect stays.
	p = start0()
	p.event(machine.CancelRequested{By: "ann"}, "stop c").failKeeping("c", status.KeptDeclared, "undo a").ok("a").is("cancelled").counts(1, 0, 1)
}

// The verb retry starts a second child run only if the person accepts second effects.
func TestRetryOfAChildThatKeepsEffects(t *testing.T) {
	p := start(t, flow(do("c", child), manual), "do c")
	key := p.call("c", 0).IdempotencyKey
	p.failKeeping("c", status.KeptDeclared, "alert parked")
	p.event(machine.RetryRequested{By: "ann"}).refused("retry with a new key")
	p.event(machine.RetryRequested{By: "ann", NewKey: true}, "do c")
	if again := p.call("c", 0).IdempotencyKey; again == key {
		t.Error("the retry asks for the child run that has failed")
	}
	p.ok("c").is("succeeded").counts(0, 0, 1)
}

// A restart would repeat the effects that a child run keeps. It is refused without --again, and in any
// case if nobody knows the effects. A new run that takes over the step knows its effects.
func TestRestartAfterAChildThatKeepsEffects(t *testing.T) {
	wf := func() *dsl.Workflow {
		return flow(do("c", child, catch(`{"id":"none"}`, "*")), do("b", after("c")), do("d", after("b")))
	}
	end := func(kept status.Kept) *play {
		p := start(t, wf(), "do c").failKeeping("c", kept, "do b").ok("b", "do d")
		p.event(machine.CancelRequested{NoCompensate: true, By: "ann"})
		return p.permanent("d", "no").is("cancelled")
	}
	p := end(status.KeptDeclared)
	if why := p.refusals(wf(), moving.From{Step: "c"}); !strings.Contains(why, "a child run of step c keeps effects: in the new run") {
		t.Errorf("a restart is refused because of %q, want: c would take effect a second time", why)
	}
	if why := p.refusals(wf(), moving.From{Step: "c", Again: true}); why != "" {
		t.Errorf("a restart with --again is refused: %s", why)
	}
	q := p.restart(wf(), moving.From{Step: "d"}, "do d").state("c caught", "b succeeded", "d running").counts(0, 0, 1)
	q.permanent("d", "no", "undo b").ok("b").is("compensated").counts(1, 0, 1)
	if why := q.refusals(wf(), moving.From{Step: "c"}); !strings.Contains(why, "a child run of step c keeps effects: in the new run") {
		t.Errorf("the new run does not know the effects that it has taken over: %q", why)
	}
	for _, step := range []string{"c", "d"} {
		if why := end(status.KeptLeft|status.KeptInDoubt).refusals(wf(), moving.From{Step: step, Again: true}); !strings.Contains(why, "nobody knows whether step c has an effect") {
			t.Errorf("a restart from %s is refused because of %q, want: the effect is in doubt", step, why)
		}
	}
	// The child has undone nothing, so the new run could build on it. But only the old run can undo it.
	p = start(t, flow(do("c", child), do("b", after("c"))), "do c").ok("c", "do b").permanent("b", "no", "undo c").okKeeping("c", status.KeptDeclared)
	if why := p.refusals(flow(do("c", child), do("b", after("c"))), moving.From{Step: "c"}); !strings.Contains(why, "step c has taken effect") {
		t.Errorf("a restart is refused because of %q, want: c would take effect a second time", why)
	}
	// The child has undone a part.
	p = start(t, flow(do("c", child), do("b", after("c"))), "do c").ok("c", "do b").permanent("b", "no", "undo c").okKeeping("c", status.KeptDeclared|status.KeptUndone)
	if why := p.refusals(flow(do("c", child), do("b", after("c"))), moving.From{Step: "c"}); !strings.Contains(why, "a child run of step c keeps effects, although the run has undone the step") {
		t.Errorf("a restart is refused because of %q, want: c would take effect a second time", why)
	}
}

// A run says what remains of its effects, in every kind of end.
func TestRemains(t *testing.T) {
	leaves := machine.CancelRequested{NoCompensate: true, By: "ann"}
	begin := func(more ...option) *play {
		return startChild(t, flow(do("a", more...), do("b", after("a"))), machine.Started{}, "do a").ok("a", "do b")
	}
	for name, c := range map[string]struct {
		p    *play
		want status.Kept
	}{
		"it succeeds":                {begin().ok("b"), 0},
		"everything is undone":       {begin().permanent("b", "no", "undo a").ok("a"), 0},
		"a step keeps its effect":    {begin(noUndo).permanent("b", "no"), status.KeptDeclared},
		"a person leaves the effect": {begin().event(leaves).permanent("b", "no"), status.KeptLeft},
		"an outcome is unknown":      {begin().event(leaves).unknown("b", "lost"), status.KeptLeft | status.KeptInDoubt},
		"the pivot has succeeded":    {startChild(t, flow(do("a", noUndo, pivot), do("b", after("a"))), machine.Started{}, "do a").ok("a", "do b").event(leaves).permanent("b", "no"), status.KeptDeclared | status.KeptPivot},
	} {
		if !c.p.s.Status().Final() {
			t.Errorf("%s: the run is %v", name, c.p.s.Status())
		}
		if got := moving.Remains(c.p.s.Run(), c.p.s.Nodes()); got != c.want {
			t.Errorf("%s: kept %b, want %b", name, got, c.want)
		}
	}
}
