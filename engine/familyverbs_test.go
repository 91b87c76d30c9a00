package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// leave is the verb `cancel --no-compensate`.
var leave = machine.CancelRequested{NoCompensate: true, By: "ann", Reason: "the shop is closed"}

// wantLeft checks that a run was stopped without an undo, for the reason in `leave`.
func (w *world) wantLeft(run status.RunID) {
	w.t.Helper()
	s := w.check(run)
	if f := s.Failure(); f.Code != machine.CodeCancelled || !strings.HasSuffix(f.Message, leave.Reason) {
		w.t.Errorf("%s has failed with %+v, want the code %s and the reason of the person", s.Name(), f, machine.CodeCancelled)
	}
	if r := s.Run(); !r.NoUndo || r.Undone != 0 || r.Left == 0 {
		w.t.Errorf("%s: %d effects were undone and %d left, want some left and none undone\n%s", s.Name(), r.Undone, r.Left, w.transcript(run))
	}
}

// A cancel without compensation goes down as the same verb, also to the children of children, so
// that the whole family keeps its effects. The next engine repeats the verb, if the engine of the
// parent ended before its message reached the child.
func TestCancelWithoutCompensationGoesDown(t *testing.T) {
	for name, dies := range map[string]bool{"one engine": false, "the engine dies before it posts the message": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, familyFlow)
				proceed := make(chan struct{})
				w.shop.on("label-berlin", func(context.Context, int) error { <-proceed; return nil })
				faulty := w.faulty()
				n := w.start()
				run := w.submit(n, "nested", nil)
				time.Sleep(time.Second)
				faulty.noPost.Store(dies)
				if err := n.Deliver(t.Context(), run, leave); err != nil {
					t.Fatal(err)
				}
				if dies {
					time.Sleep(time.Second)
					n.kill(t)
					faulty.noPost.Store(false)
					n = w.start()
				}
				time.Sleep(5 * time.Second)
				close(proceed)
				w.wait(n, run, status.RunCancelled)
				w.wantLeft(run)
				order := w.wantChildren(run, status.RunCancelled)[0]
				w.wantLeft(order.Run)
				w.wantLeft(w.wantChildren(order.Run, status.RunCancelled)[0].Run)
				w.shop.wantEffects(t, map[string]string{"first": "done", "reserve-berlin": "done", "label-berlin": "done", "last": "nothing", "after": "nothing"})
				n.drain(t)
			})
		})
	}
}

// A cancel without compensation leaves the effects of a group in place: of a key that has ended and
// of a key that is open.
func TestCancelWithoutCompensationOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parcelsFlow)
		proceed := make(chan struct{})
		w.shop.on("box-a", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "pace", nil)
		time.Sleep(5 * time.Second)
		if err := n.Deliver(t.Context(), run, leave); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		close(proceed)
		if left := w.wait(n, run, status.RunCancelled).Run().Left; left != 2 {
			t.Errorf("%d effects of the run are left, want those of both keys", left)
		}
		ends := map[status.RunState]int{} // the keys have started in any order
		for _, r := range w.children(run) {
			if ends[r.State]++; r.State == status.RunCancelled {
				w.wantLeft(r.Run)
			}
		}
		if ends[status.RunSucceeded] != 1 || ends[status.RunCancelled] != 1 {
			t.Errorf("the runs of the group are %v, want one that has succeeded and one that is cancelled", ends)
		}
		w.shop.wantEffects(t, map[string]string{"pick-a": "done", "box-a": "done", "pick-b": "done", "box-b": "done"})
		n.drain(t)
	})
}

// A child that has passed its pivot refuses the cancel at the deadline of its step. It accepts a
// cancel without compensation of its parent, as the run of a person does.
func TestCancelWithoutCompensationAfterThePivotOfAChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "parcel" {
  step "reserve" {
    action = agent.shop.reserve
    pivot  = true
    input { name = "reserve" }
  }
  step "label" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    input { name = "label" }
    retry { max_attempts = "unbounded" }
  }
}
workflow "order" {
  step "ship" {
    workflow = workflow.parcel
    deadline = "1m"
  }
}`)
		w.shop.on("label", func(context.Context, int) error { return &sdk.Failure{Code: "busy"} })
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(2 * time.Minute)
		w.wantChildren(run, status.RunRunning)
		if err := n.Deliver(t.Context(), run, leave); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if s := w.check(run).Status(); s != status.RunCancelled {
			n.kill(t) // the child would repeat its step for ever
			t.Fatalf("the run is %v, want cancelled", s)
		}
		w.wantLeft(w.wantChildren(run, status.RunCancelled)[0].Run)
		w.shop.wantEffects(t, map[string]string{"reserve": "done", "label": "nothing"})
		n.drain(t)
	})
}

// deepFlow has a group in a group, and a child run.
const deepFlow = `
workflow "kid" {
  step "pick" {
    action = agent.shop.reserve
    input { name = "kid-pick" }
  }
  step "box" {
    action     = agent.shop.charge
    depends_on = [step.pick]
    input { name = "kid-box" }
  }
}
workflow "deep" {
  step "kid" { workflow = workflow.kid }
  group "outer" {
    group "inner" {
      step "pick" {
        action = agent.shop.reserve
        input { name = "pick" }
      }
      step "box" {
        action     = agent.shop.charge
        depends_on = [step.pick]
        input { name = "box" }
      }
    }
  }
}
`

// verb sends a verb to a run.
func (w *world) verb(n *testNode, run status.RunID, e machine.Event) {
	w.t.Helper()
	if err := n.Deliver(w.t.Context(), run, e); err != nil {
		w.t.Fatal(err)
	}
}

// groupsOf returns the runs of the groups of "deep": the outer one and the inner one.
func (w *world) groupsOf(run status.RunID) (outer, inner status.RunID) {
	w.t.Helper()
	for _, r := range w.children(run) {
		if strings.Contains(r.Name, ".outer.") {
			outer = r.Run
		}
	}
	rows := w.children(outer)
	if outer == 0 || len(rows) != 1 {
		w.t.Fatalf("the run has the children %v, and its group has %d, want one", w.children(run), len(rows))
	}
	return outer, rows[0].Run
}

// The pause of a run holds the steps of its groups at every depth, but not its child runs. The groups
// continue with the run. If the engine dies before it posts the pause or the end of the pause, the
// next engine does it.
func TestPauseHoldsTheGroupsOfARun(t *testing.T) {
	for name, dies := range map[string]bool{"one engine": false, "the engine dies before it posts the messages": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, deepFlow)
				proceed := make(chan struct{})
				slow := func(context.Context, int) error { <-proceed; return nil }
				w.shop.on("pick", slow)
				w.shop.on("kid-pick", slow)
				faulty := w.faulty()
				n := w.start()
				run := w.submit(n, "deep", nil)
				time.Sleep(time.Second)
				say := func(e machine.Event) {
					faulty.noPost.Store(dies)
					w.verb(n, run, e)
					if dies {
						time.Sleep(time.Second)
						n.kill(t)
						faulty.noPost.Store(false)
						n = w.start()
					}
					time.Sleep(10 * time.Second)
				}
				say(machine.PauseRequested{By: "ann", Reason: "audit"})
				outer, inner := w.groupsOf(run)
				close(proceed)
				time.Sleep(10 * time.Second)
				for _, r := range []status.RunID{run, outer, inner} {
					if s := w.check(r); s.Status() != status.RunPaused || !strings.HasSuffix(s.Run().PauseWhy, "audit") {
						t.Errorf("%s is %v because of %q, want paused with its run", s.Name(), s.Status(), s.Run().PauseWhy)
					}
				}
				w.shop.wantEffects(t, map[string]string{"pick": "done", "box": "nothing", "kid-pick": "done", "kid-box": "done"})
				say(machine.ResumeRequested{By: "ann"})
				w.wait(n, run, status.RunSucceeded)
				w.shop.wantEffects(t, map[string]string{"box": "done"})
				n.drain(t)
			})
		})
	}
}

// A run that is cancelled while it is paused undoes nothing before it is resumed, and so do its
// groups.
func TestPauseHoldsTheUndoOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deepFlow)
		proceed := make(chan struct{})
		w.shop.on("box", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "deep", nil)
		time.Sleep(time.Second)
		w.verb(n, run, machine.PauseRequested{By: "ann"})
		time.Sleep(5 * time.Second)
		w.verb(n, run, machine.CancelRequested{By: "ann"})
		close(proceed)
		time.Sleep(time.Minute)
		w.shop.wantEffects(t, map[string]string{"pick": "done", "box": "done"})
		w.verb(n, run, machine.ResumeRequested{By: "ann"})
		w.wait(n, run, status.RunCancelled)
		w.shop.wantEffects(t, map[string]string{"pick": "undone", "box": "undone", "kid-box": "undone"})
		n.drain(t)
	})
}

// A group that a person has paused stays paused when the run around it is paused and resumed. A group
// that a person resumes while the run is paused is paused again.
func TestPauseOfAGroupByAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deepFlow)
		proceed := make(chan struct{})
		w.shop.on("pick", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "deep", nil)
		time.Sleep(time.Second)
		outer, inner := w.groupsOf(run)
		is := func(what string, want ...status.RunState) {
			t.Helper()
			time.Sleep(5 * time.Second)
			for k, r := range []status.RunID{run, outer, inner} {
				if got := w.check(r).Status(); got != want[k] {
					t.Errorf("%s: run %d of the family is %v, want %v", what, k, got, want[k])
				}
			}
		}
		running, paused := status.RunRunning, status.RunPaused
		w.verb(n, inner, machine.PauseRequested{By: "bob"})
		w.verb(n, run, machine.PauseRequested{By: "ann"})
		is("all are paused", paused, paused, paused)
		w.verb(n, run, machine.ResumeRequested{By: "ann"})
		is("the inner group was paused by a person", running, running, paused)
		for _, rec := range w.records(inner) {
			if r, refused := rec.Refused(); refused {
				t.Errorf("the group that a person has paused is asked to %s: %s", r.Verb, r.Reason)
			}
		}
		w.verb(n, run, machine.PauseRequested{By: "ann"})
		is("all are paused again", paused, paused, paused)
		w.verb(n, inner, machine.ResumeRequested{By: "bob"})
		is("a group does not continue alone", paused, paused, paused)
		w.verb(n, run, machine.ResumeRequested{By: "ann"})
		is("the run continues", running, running, running)
		close(proceed)
		w.wait(n, run, status.RunSucceeded)
		n.drain(t)
	})
}
