package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// leftoverFlow has the same steps in a group and in a child run. The workflows "group" and "child" differ
// only in that. In "caught" the failure of the group is caught, and "deep" has the group in a group.
const leftoverFlow = `
workflow "kid" {
  step "mail" {
    action       = agent.shop.charge
    compensation = "none"
    input { name = "mail" }
  }
  step "pick" {
    action     = agent.shop.charge
    depends_on = [step.mail]
    input { name = "pick" }
  }
  step "box" {
    action     = agent.shop.charge
    depends_on = [step.pick]
    input { name = "box" }
  }
}
workflow "child" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  step "g" {
    workflow   = workflow.kid
    depends_on = [step.first]
  }
  step "after" {
    action     = agent.shop.charge
    depends_on = [step.g]
    input { name = "after" }
  }
}
workflow "group" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  group "g" {
    depends_on = [step.first]
    GROUP
  }
  step "after" {
    action     = agent.shop.charge
    depends_on = [group.g]
    input { name = "after" }
  }
}
workflow "caught" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  group "g" {
    depends_on = [step.first]
    catch { errors = ["*"] }
    GROUP
  }
  step "after" {
    action     = agent.shop.charge
    depends_on = [group.g]
    input { name = "after" }
  }
}
workflow "above" {
  step "g" { workflow = workflow.caught }
}
workflow "deep" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  group "g" {
    depends_on = [step.first]
    group "h" {
      GROUP
    }
  }
  step "after" {
    action     = agent.shop.charge
    depends_on = [group.g]
    input { name = "after" }
  }
}
workflow "pivot" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  group "g" {
    depends_on = [step.first]
    step "pick" {
      action = agent.shop.charge
      pivot  = true
      input { name = "pick" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      input { name = "box" }
      catch { errors = ["*"] }
    }
  }
}
`

// leftoverSteps are the steps of the groups of leftoverFlow.
const leftoverSteps = `
    step "mail" {
      action       = agent.shop.charge
      compensation = "none"
      input { name = "mail" }
    }
    step "pick" {
      action     = agent.shop.charge
      depends_on = [step.mail]
      input { name = "pick" }
    }
    step "box" {
      action     = agent.shop.charge
      depends_on = [step.pick]
      input { name = "box" }
    }`

// leftoverWorld returns a world with the workflows of leftoverFlow.
func leftoverWorld(t *testing.T) *world {
	return newWorld(t, strings.ReplaceAll(leftoverFlow, "GROUP", leftoverSteps))
}

// leftoverKinds are the workflows of leftoverFlow with a group, with a child run, and with a group in a
// group.
var leftoverKinds = []string{"group", "child", "deep"}

// refusals returns why the run cannot be restarted from a step; "" = it can.
func (w *world) refusals(run status.RunID, step string, again bool) string {
	w.t.Helper()
	told, err := journal.Load(w.t.Context(), w.store, nil, journal.NewDefinitions(w.store, nil), run)
	if err != nil {
		w.t.Fatal(err)
	}
	past := &moving.Past{Run: told.State.Run(), Nodes: told.State.Nodes(), Flow: told.Flow}
	var all []string
	for _, r := range past.Succession(told.Flow, moving.From{Run: run, Step: step, Again: again}).Refusals {
		all = append(all, r.String())
	}
	return strings.Join(all, "\n")
}

// wantSecondEffect checks that a restart from the step is refused, because step g would take effect a
// second time, and that --again allows the restart.
func (w *world) wantSecondEffect(run status.RunID, step string) {
	w.t.Helper()
	if why := w.refusals(run, step, false); !strings.Contains(why, "a child run of step g keeps effects: in the new run the step would take effect a second time") {
		w.t.Errorf("a restart from %s is refused because of %q, want: g would take effect a second time", step, why)
	}
	if why := w.refusals(run, step, true); why != "" {
		w.t.Errorf("a restart from %s with --again is refused: %s", step, why)
	}
}

// An account says what a run reports of its effects, and of the step g with the child run.
type account struct {
	undone, left, declared int
	kept                   string // steps whose effects stay by declaration
	leftAsIs               bool   // g has effects that a person left
	state                  status.StepState
}

// wantAccount checks what the run reports of its effects.
func (w *world) wantAccount(run status.RunID, want account) {
	w.t.Helper()
	s := w.check(run)
	told, err := journal.Load(w.t.Context(), w.store, nil, journal.NewDefinitions(w.store, nil), run)
	if err != nil {
		w.t.Fatal(err)
	}
	g, r := story.Node(s, told.Flow, slices.IndexFunc(told.Flow.Steps, func(x *dsl.Step) bool { return x.Name == "g" })), s.Run()
	got := account{int(r.Undone), int(r.Left), int(r.Undeclared), strings.Join(story.KeptByDeclaration(s, told.Flow), " "), g.LeftAsIs, g.State}
	if got != want {
		w.t.Errorf("the run reports %+v, want %+v\n%s", got, want, w.transcript(run))
	}
	if g.Effect != status.EffectDone {
		w.t.Errorf("the effect of g is %v, want done", g.Effect)
	}
}

// innermost returns the run of the group or child that has the steps.
func (w *world) innermost(run status.RunID) status.RunID {
	w.t.Helper()
	for {
		rows := w.children(run)
		if len(rows) == 0 {
			return run
		}
		run = rows[0].Run
	}
}

// no is a definite failure that is not repeated.
func no(context.Context, int) error { return &sdk.Failure{Code: "no", Permanent: true} }

// e. What a failed child run keeps by declaration counts in the parent, and a restart knows it.
func TestParentKnowsWhatAFailedChildKeeps(t *testing.T) {
	for _, kind := range leftoverKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				w.shop.on("box", no)
				n := w.start()
				run := w.submit(n, kind, nil)
				w.wait(n, run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"first": "undone", "mail": "done", "pick": "undone", "box": "nothing"})
				w.wantAccount(run, account{undone: 1, declared: 1, kept: "g", state: status.StepFailed})
				w.wantSecondEffect(run, "first")
				n.drain(t)
			})
		})
	}
}

// d. A child run that has succeeded is undone. An undo in it fails, and a person skips this undo.
func TestParentKnowsWhatAPersonSkippedInAChild(t *testing.T) {
	for _, kind := range leftoverKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				w.shop.on("after", no)
				w.shop.on("undo", no)
				n := w.start()
				run := w.submit(n, kind, nil)
				time.Sleep(10 * time.Second)
				kid := w.innermost(run)
				w.wait(n, kid, status.RunCompensationFailed)
				w.shop.on("undo", nil)
				w.verb(n, kid, machine.CompensateRequested{Step: "box", Skip: true, By: "ann", Reason: "gone"})
				w.wait(n, run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"first": "undone", "mail": "done", "pick": "undone", "box": "done"})
				w.wantAccount(run, account{undone: 2, left: 1, declared: 1, kept: "g", leftAsIs: true, state: status.StepUndone})
				for _, step := range []string{"g", "after", "first"} {
					if why := w.refusals(run, step, true); !strings.Contains(why, "nobody knows whether step g has an effect") {
						t.Errorf("a restart from %s is refused because of %q, want: the effect of g is in doubt", step, why)
					}
				}
				n.drain(t)
			})
		})
	}
}

// c. A group fails, an undo in it fails, and a person skips this undo. The failure of the group is
// caught. The counts still report this when the run succeeds, and also when it turns back. If the run
// is a child run and has succeeded, its parent reports it, too.
func TestParentCatchesAFailedChildThatKeepsEffects(t *testing.T) {
	for name, end := range map[string]status.RunState{"the run succeeds": status.RunSucceeded, "the run turns back": status.RunCompensated} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				w.shop.on("box", no)
				w.shop.on("undo", no)
				want := account{left: 1, declared: 1, kept: "g", leftAsIs: true, state: status.StepCaught}
				if end == status.RunCompensated {
					w.shop.on("after", no)
					want.undone = 1
				}
				n := w.start()
				run := w.submit(n, "above", nil)
				time.Sleep(10 * time.Second)
				above := run
				run = w.children(above)[0].Run
				kid := w.innermost(run)
				w.wait(n, kid, status.RunCompensationFailed)
				w.shop.on("undo", nil)
				w.verb(n, kid, machine.CompensateRequested{Step: "pick", Skip: true, By: "ann", Reason: "gone"})
				w.wait(n, run, end)
				w.wantAccount(run, want)
				w.wait(n, above, end)
				if want.undone, want.state = 0, status.StepFailed; end == status.RunSucceeded {
					want.state = status.StepSucceeded
				}
				w.wantAccount(above, want)
				if why := w.refusals(above, "g", true); !strings.Contains(why, "nobody knows whether step g has an effect") {
					t.Errorf("a restart from g is refused because of %q, want: its effect is in doubt", why)
				}
				n.drain(t)
			})
		})
	}
}

// b. A person cancels the child run itself, without compensation.
func TestParentKnowsThatAPersonCancelledItsChild(t *testing.T) {
	for _, kind := range leftoverKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				proceed := make(chan struct{})
				w.shop.on("box", func(context.Context, int) error { <-proceed; return &sdk.Failure{Code: "no", Permanent: true} })
				n := w.start()
				run := w.submit(n, kind, nil)
				time.Sleep(10 * time.Second)
				w.verb(n, w.innermost(run), leave)
				close(proceed)
				w.wait(n, run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"first": "undone", "mail": "done", "pick": "done", "box": "nothing"})
				w.wantAccount(run, account{undone: 1, left: 1, declared: 1, kept: "g", leftAsIs: true, state: status.StepFailed})
				w.wantSecondEffect(run, "first")
				n.drain(t)
			})
		})
	}
}

// A cancel of the parent without compensation stops an open child run, whose run knows its effects. So
// the parent does not say that the effects are in doubt, and --again allows the restart.
func TestRestartAfterACancelWithoutCompensation(t *testing.T) {
	for _, kind := range leftoverKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				proceed := make(chan struct{})
				w.shop.on("box", func(context.Context, int) error { <-proceed; return &sdk.Failure{Code: "no", Permanent: true} })
				n := w.start()
				run := w.submit(n, kind, nil)
				time.Sleep(10 * time.Second)
				w.verb(n, run, leave)
				time.Sleep(5 * time.Second)
				close(proceed)
				w.wait(n, run, status.RunCancelled)
				w.shop.wantEffects(t, map[string]string{"first": "done", "mail": "done", "pick": "done", "box": "nothing"})
				w.wantAccount(run, account{left: 2, declared: 1, kept: "g", leftAsIs: true, state: status.StepFailed})
				w.wantSecondEffect(run, "g")
				w.shop.on("box", nil)
				sub, err := engine.Restart(t.Context(), engine.Config{Store: w.store, Options: w.opts}, engine.Restarting{Definition: w.def, Run: run, Step: "g", Again: true, Name: "heir"})
				if err != nil {
					t.Fatal(err)
				}
				w.wait(n, sub.Run, status.RunSucceeded)
				if s := w.check(sub.Run).Run(); s.Left != 0 || s.Undeclared != 0 {
					t.Errorf("the new run reports %d effects that are left and %d by declaration, want none: it has taken over only step first", s.Left, s.Undeclared)
				}
				n.drain(t)
			})
		})
	}
}

// a. The pivot in a group has succeeded. Then the parent, or the group itself, is cancelled without
// compensation. No restart applies the pivot a second time.
func TestPivotOfAChildThatIsCancelled(t *testing.T) {
	for name, of := range map[string]func(w *world, run status.RunID) status.RunID{
		"the parent is cancelled": func(_ *world, run status.RunID) status.RunID { return run },
		"the group is cancelled":  func(w *world, run status.RunID) status.RunID { return w.innermost(run) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leftoverWorld(t)
				proceed := make(chan struct{})
				w.shop.on("box", func(context.Context, int) error { <-proceed; return &sdk.Failure{Code: "no", Permanent: true} })
				n := w.start()
				run := w.submit(n, "pivot", nil)
				time.Sleep(10 * time.Second)
				cancelled := of(w, run)
				w.verb(n, cancelled, leave)
				time.Sleep(5 * time.Second)
				close(proceed)
				want := 2
				if cancelled != run {
					want = 1
					if s := w.wait(n, run, status.RunParked); s.Run().Failure.Step != "g" {
						t.Errorf("the run is parked because of %+v, want the failure of g", s.Run().Failure)
					}
					w.shop.wantEffects(t, map[string]string{"first": "done", "pick": "done"})
					w.verb(n, run, leave)
					want = 2
				}
				w.wait(n, run, status.RunCancelled)
				w.shop.wantEffects(t, map[string]string{"first": "done", "pick": "done", "box": "nothing"})
				w.wantAccount(run, account{left: want, leftAsIs: true, state: status.StepFailed})
				if !w.check(run).Run().Passed {
					t.Error("the run does not know that its pivot has taken effect")
				}
				for _, step := range []string{"g", "first"} {
					if why := w.refusals(run, step, false); !strings.Contains(why, "a child run of step g keeps effects") {
						t.Errorf("a restart from %s is refused because of %q, want: g would take effect a second time", step, why)
					}
				}
				n.drain(t)
			})
		})
	}
}
