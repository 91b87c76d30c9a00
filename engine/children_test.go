package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
	"github.com/saga-engine/engine/sdk"
)

// familyFlow has a parent that starts a child run between two steps of its own.
const familyFlow = `
workflow "parcel" {
  variable "name" { type = string }
  step "reserve" {
    action = agent.shop.reserve
    input { name = "reserve-${var.name}" }
  }
  step "label" {
    action     = agent.shop.charge
    depends_on = [step.reserve]
    input { name = "label-${var.name}" }
  }
  output "id" { value = step.label.output.id }
}
workflow "order" {
  step "first" {
    action = agent.shop.charge
    input { name = "first" }
  }
  step "ship" {
    workflow   = workflow.parcel
    depends_on = [step.first]
    input { name = "berlin" }
  }
  step "last" {
    action = agent.shop.charge
    input {
      name = "last"
      note = step.ship.output.id
    }
  }
  output "id" { value = step.ship.output.id }
}
workflow "careful" {
  step "ship" {
    workflow = workflow.parcel
    input { name = "berlin" }
    catch {
      errors = ["card_declined"]
      output = { id = "none: ${self.error.code} ${self.error.data.status}" }
    }
  }
  step "last" {
    action     = agent.shop.charge
    depends_on = [step.ship]
    input { name = "last" }
  }
  output "id" { value = step.ship.output.id }
}
workflow "hurried" {
  step "ship" {
    workflow = workflow.parcel
    deadline = "1m"
    input { name = "berlin" }
  }
  step "last" {
    action     = agent.shop.charge
    depends_on = [step.ship]
    input { name = "last" }
  }
}
workflow "many" {
  step "ship" {
    workflow = workflow.parcel
    for_each = toset(["a", "b", "c"])
    input { name = each.key }
  }
  step "last" {
    action     = agent.shop.charge
    depends_on = [step.ship]
    input { name = "last" }
  }
}
workflow "nested" {
  step "order" { workflow = workflow.order }
  step "after" {
    action     = agent.shop.charge
    depends_on = [step.order]
    input { name = "after" }
  }
}
`

// children returns the child runs of a run.
func (w *world) children(run status.RunID) []store.RunRow {
	w.t.Helper()
	rows, err := w.mem.Runs(context.WithoutCancel(w.t.Context()), store.RunFilter{Parent: run})
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// wantChildren checks how the child runs of a run have ended, in the order of their start.
func (w *world) wantChildren(run status.RunID, want ...status.RunState) []store.RunRow {
	w.t.Helper()
	rows := w.children(run)
	var got []status.RunState
	for _, r := range rows {
		got = append(got, r.State)
		w.check(r.Run)
	}
	if len(got) != len(want) {
		w.t.Fatalf("the child runs are %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Errorf("child run %d is %v, want %v\n%s", i, got[i], want[i], w.transcript(rows[i].Run))
		}
	}
	return rows
}

// refuse makes the calls for a name fail for good.
func refuse(code string) script {
	return func(context.Context, int) error { return &sdk.Failure{Code: code, Permanent: true} }
}

// A child run gives its outputs to its parent. It knows its parent, and its name follows from the
// parent's name and step.
func TestChildSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		n := w.start()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunSucceeded)
		if id := output(t, s, "id"); id != "id-label-berlin" {
			t.Errorf("output id = %s, want that of the child run", id)
		}
		child := w.wantChildren(run, status.RunSucceeded)[0]
		if !strings.HasPrefix(child.Name, s.Name()+".ship.") {
			t.Errorf("the child run has the name %s, want it to begin with the parent's name and step", child.Name)
		}
		if r := w.check(child.Run).Run(); r.Parent.Run != run || r.Parent.Name != s.Name() || r.Parent.Step != "ship" || r.Trigger != "parent" {
			t.Errorf("the child run has the parent %+v and the trigger %s", r.Parent, r.Trigger)
		}
		w.shop.wantEffects(t, map[string]string{"first": "done", "reserve-berlin": "done", "label-berlin": "done", "last": "done"})
		n.drain(t)
	})
}

// A child run that fails undoes itself. Its parent gets its code and turns back, or catches it.
func TestChildFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		w.shop.on("label-berlin", refuse("card_declined"))
		n := w.start()
		run := w.submit(n, "order", nil)
		s := w.wait(n, run, status.RunCompensated)
		if f := s.Failure(); f.Step != "ship" || f.Code != "card_declined" {
			t.Errorf("the parent failed with %+v, want the code of the child run", f)
		}
		child := w.wantChildren(run, status.RunCompensated)[0]
		var data struct{ Run, Status string }
		if err := json.Unmarshal(story.Node(s, nil, 1).Data.JSON(), &data); err != nil || data.Run != child.Name || data.Status != "compensated" {
			t.Errorf("error.data = %s, err = %v, want the name and status of the child run", story.Node(s, nil, 1).Data.JSON(), err)
		}
		w.shop.wantEffects(t, map[string]string{"first": "undone", "reserve-berlin": "undone", "last": "nothing"})

		caught := w.submit(n, "careful", nil)
		if id := output(t, w.wait(n, caught, status.RunSucceeded), "id"); id != "none: card_declined compensated" {
			t.Errorf("output id = %s, want that of the catch block, with the failure", id)
		}
		n.drain(t)
	})
}

// A child run that has succeeded is undone with its parent.
func TestChildIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		w.shop.on("last", refuse("card_declined"))
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunCompensated)
		child := w.wantChildren(run, status.RunCompensated)[0]
		if f := w.check(child.Run).Failure(); f.Code != "undone_by_parent" {
			t.Errorf("the child run was undone because of %+v, want %s", f, "undone_by_parent")
		}
		w.shop.wantEffects(t, map[string]string{"first": "undone", "reserve-berlin": "undone", "label-berlin": "undone", "last": "nothing"})
		n.drain(t)
	})
}

// The child runs of for_each are undone, each on its own, and so are the children of children.
func TestFamiliesAreUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		n := w.start()
		w.shop.on("last", refuse("card_declined"))
		run := w.submit(n, "many", nil)
		w.wait(n, run, status.RunCompensated)
		w.wantChildren(run, status.RunCompensated, status.RunCompensated, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"label-a": "undone", "label-b": "undone", "label-c": "undone", "reserve-a": "undone"})

		w.shop.on("last", nil)
		w.shop.on("after", refuse("card_declined"))
		run = w.submit(n, "nested", nil)
		w.wait(n, run, status.RunCompensated)
		order := w.wantChildren(run, status.RunCompensated)[0]
		w.wantChildren(order.Run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"reserve-berlin": "undone", "label-berlin": "undone"})
		n.drain(t)
	})
}

// A cancel of the parent goes down to a child run in flight, and the parent waits for its end.
func TestCancelGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		proceed := make(chan struct{})
		w.shop.on("label-berlin", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		if err := n.Deliver(t.Context(), run, machine.CancelRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if s := w.check(run).Status(); s != status.RunCompensating {
			t.Errorf("while the child run works, the parent is %v, want compensating", s)
		}
		close(proceed)
		w.wait(n, run, status.RunCancelled)
		w.wantChildren(run, status.RunCancelled)
		w.shop.wantEffects(t, map[string]string{"first": "undone", "reserve-berlin": "undone", "label-berlin": "undone"})
		n.drain(t)
	})
}

// The deadline of a step is the deadline of its child run. The parent waits until the child has
// undone itself.
func TestDeadlineGoesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		w.shop.on("label-berlin", func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		n := w.start()
		run := w.submit(n, "hurried", nil)
		s := w.wait(n, run, status.RunFailed)
		if f := s.Failure(); f.Code != machine.CodeDeadlineExceeded {
			t.Errorf("the parent failed with %+v, want %s", f, machine.CodeDeadlineExceeded)
		}
		w.wantChildren(run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"reserve-berlin": "undone", "last": "nothing"})
		n.drain(t)
	})
}

// Whatever engine dies, of the parent, of the child or of both, the next engine attaches to the
// same child run.
func TestChildrenOutliveEngines(t *testing.T) {
	for name, fail := range map[string]bool{"the parent succeeds": false, "the parent is undone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, familyFlow)
				if fail {
					w.shop.on("last", refuse("card_declined"))
				}
				var mu sync.Mutex
				calls := 0
				dead := map[string]bool{}
				die := make(chan struct{}, 8)
				w.inv.before = func(c invoke.Call) error {
					mu.Lock()
					defer mu.Unlock()
					calls++
					if key := fmt.Sprint(c.Request.Step, c.Request.Purpose); !dead[key] {
						dead[key] = true
						select {
						case die <- struct{}{}:
						default:
						}
					}
					return nil
				}
				n := w.start()
				run := w.submit(n, "order", nil)
				for range 6 {
					select {
					case <-die:
					case <-time.After(time.Minute):
					}
					n.kill(t)
					n = w.start()
				}
				if fail {
					w.wait(n, run, status.RunCompensated)
					w.wantChildren(run, status.RunCompensated)
					w.shop.wantEffects(t, map[string]string{"first": "undone", "reserve-berlin": "undone", "label-berlin": "undone"})
				} else {
					w.wait(n, run, status.RunSucceeded)
					w.wantChildren(run, status.RunSucceeded)
					w.shop.wantEffects(t, map[string]string{"first": "done", "reserve-berlin": "done", "label-berlin": "done", "last": "done"})
				}
				n.drain(t)
			})
		})
	}
}

// An engine that stops does not wait for child runs. The engine that takes the parent over waits
// for the same child.
func TestStoppingDoesNotWaitForChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
workflow "approval" {
  step "wait" {
    wait { signal = "go" }
  }
  output "by" { value = step.wait.signal }
}
workflow "request" {
  step "ask" { workflow = workflow.approval }
  output "by" { value = step.ask.output.by }
}`+orderFlow)
		n := w.start()
		run := w.submit(n, "request", nil)
		time.Sleep(time.Minute)
		if s := n.Status(); s.Runs != 0 {
			t.Errorf("%d runs are in memory, want none: the parent only waits for its child", s.Runs)
		}
		n.stop()
		select {
		case err := <-n.done:
			if err != nil {
				t.Fatalf("Run = %v, want nil", err)
			}
		case <-time.After(time.Minute):
			n.StopNow()
			<-n.done
			t.Fatal("after a minute the engine has not stopped: it waits for a child run")
		}
		n = w.start()
		child := w.wantChildren(run, status.RunWaiting)[0]
		w.signal(child.Run, machine.SignalReceived{Name: "go"})
		if by := output(t, w.wait(n, run, status.RunSucceeded), "by"); by != "go" {
			t.Errorf("output by = %s, want go", by)
		}
		n.drain(t)
	})
}

// The verb retry starts a new child run: the former one has ended.
func TestRetryStartsANewChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(familyFlow, `workflow "order" {`, `workflow "order" {
  compensation { mode = "manual" }`, 1))
		w.shop.on("label-berlin", func(_ context.Context, n int) error {
			if n == 1 {
				return &sdk.Failure{Code: "card_declined", Permanent: true}
			}
			return nil
		})
		n := w.start()
		run := w.submit(n, "order", nil)
		w.wait(n, run, status.RunParked)
		if err := n.Deliver(t.Context(), run, machine.RetryRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, run, status.RunSucceeded)
		w.wantChildren(run, status.RunCompensated, status.RunSucceeded)
		n.drain(t)
	})
}

// Parent and child may have different owners. The parent's engine learns of the end of a child run
// in another engine, and an ended child is undone by its owner, or by another engine if that has
// died.
func TestParentAndChildInTwoEngines(t *testing.T) {
	for name, dies := range map[string]bool{"the owner of the child lives": false, "the owner of the child has died": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, `
workflow "approval" {
  step "book" {
    action = agent.shop.reserve
    input { name = "book" }
  }
  step "wait" {
    depends_on = [step.book]
    wait { signal = "go" }
  }
}
workflow "request" {
  step "ask" { workflow = workflow.approval }
  step "pay" {
    depends_on = [step.ask]
    action     = agent.shop.charge
    input { name = "pay" }
  }
}`+orderFlow)
				decline := make(chan struct{})
				w.shop.on("pay", func(ctx context.Context, n int) error {
					<-decline
					return &sdk.Failure{Code: "card_declined", Permanent: true}
				})
				n := w.start()
				run := w.submit(n, "request", nil)
				time.Sleep(time.Second)
				n.kill(t)
				time.Sleep(time.Minute)
				child := w.wantChildren(run, status.RunWaiting)[0]
				w.opts.OnlyOwnRuns = true
				a, b := w.start(), w.start()
				for run, n := range map[status.RunID]*testNode{run: a, child.Run: b} {
					if err := n.Adopt(t.Context(), run); err != nil {
						t.Fatal(err)
					}
				}
				w.signal(child.Run, machine.SignalReceived{Name: "go"})
				time.Sleep(5 * time.Second)
				w.wantChildren(run, status.RunSucceeded)
				if calls := w.shop.called("pay"); len(calls) != 1 {
					t.Fatalf("%d calls of pay, want one: the parent goes on after its child", len(calls))
				}
				if dies {
					b.kill(t)
					time.Sleep(time.Minute)
				}
				close(decline)
				w.wait(a, run, status.RunCompensated)
				w.wantChildren(run, status.RunCompensated)
				w.shop.wantEffects(t, map[string]string{"book": "undone", "pay": "nothing"})
				if n := w.takeovers(child.Run); dies && n != 2 {
					t.Errorf("%d takeovers of the open child, want 2: the request to undo it opens it before it is taken over", n)
				}
				a.drain(t)
				if !dies {
					b.drain(t)
				}
			})
		})
	}
}

// takeovers returns the number of takeovers in the journal of a run that came while the run was open.
func (w *world) takeovers(run status.RunID) (n int) {
	w.t.Helper()
	story, err := journal.Load(w.t.Context(), w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
	if err != nil {
		w.t.Fatal(err)
	}
	fold := machine.NewState()
	for _, rec := range story.Records {
		if _, ok := rec.Event().(machine.TakenOver); ok && !fold.Status().Final() {
			n++
		}
		fold.Apply(rec)
	}
	return n
}

// A parent whose engine has lost its lease gets one answer of its child run, and no late ones.
func TestNoAnswerTwiceAfterALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, familyFlow)
		proceed := make(chan struct{})
		w.shop.on("label-berlin", func(context.Context, int) error { <-proceed; return nil })
		n := w.start()
		run := w.submit(n, "order", nil)
		time.Sleep(time.Second)
		if _, err := w.mem.Fence(t.Context(), n.Engine()); err != nil {
			t.Fatal(err)
		}
		if err := w.mem.Leave(t.Context(), n.Engine()); err != nil { // as if its lease had run out
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		close(proceed)
		w.wait(n, run, status.RunSucceeded)
		if late, err := w.mem.LateReplies(t.Context(), run); err != nil || len(late) > 0 {
			t.Errorf("%d late replies, err = %v, want none", len(late), err)
		}
		n.drain(t)
	})
}

// The agents of child runs are agents of the parent: they are checked before it starts.
func TestAgentsOfChildrenAreAgentsOfTheParent(t *testing.T) {
	w := newWorld(t, familyFlow)
	specs, err := engine.AgentSpecs(w.def.Workflow("nested"), w.vars("nested", nil))
	if err != nil || len(specs) != 1 || specs["shop"].Agent == nil {
		t.Errorf("the agents are %v, err = %v, want shop", specs, err)
	}
	only := newWorld(t, familyFlow+`
workflow "outer" {
  step "ship" {
    workflow = workflow.parcel
    input { name = "x" }
  }
}`)
	if specs, err := engine.AgentSpecs(only.def.Workflow("outer"), only.vars("outer", nil)); err != nil || len(specs) != 1 {
		t.Errorf("the agents are %v, err = %v, want shop, which only the child calls", specs, err)
	}
}
