package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// keptFlow has a parent that keeps what its child run does, and a child that waits for a person if it
// fails.
const keptFlow = `
workflow "careful" {
  compensation { mode = "manual" }
  step "book" {
    action = agent.shop.reserve
    input { name = "book" }
  }
  step "label" {
    action     = agent.shop.charge
    depends_on = [step.book]
    input { name = "label" }
  }
}
workflow "kept" {
  deadline = "1m"
  step "ship" {
    workflow     = workflow.careful
    compensation = "none"
  }
}
workflow "patient" {
  step "ship" {
    workflow = workflow.careful
    deadline = "1m"
    catch { errors = ["deadline_exceeded"] }
  }
}
`

// A parent whose deadline has passed ends only after its child run has ended, also if the child was
// parked, and if nothing of the child is undone with the parent.
func TestDeadlineEndsParkedChildren(t *testing.T) {
	for flow, want := range map[string]status.RunState{"kept": status.RunFailed, "patient": status.RunSucceeded} {
		t.Run(flow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, keptFlow+orderFlow)
				w.shop.on("label", refuse("card_declined"))
				n := w.start()
				run := w.submit(n, flow, nil)
				time.Sleep(30 * time.Second)
				w.wantChildren(run, status.RunParked)
				time.Sleep(time.Minute) // until the deadline the run needs a person, so Wait would end
				parent := w.wait(n, run, want).Run()
				child := w.wantChildren(run, status.RunCancelled)[0]
				if r := w.check(child.Run).Run(); r.Finished > parent.Finished {
					t.Errorf("the child run ended at %v, after its parent, which ended at %v", r.Finished.Time(), parent.Finished.Time())
				}
				w.shop.wantEffects(t, map[string]string{"book": "undone", "label": "nothing"})
				n.drain(t)
			})
		})
	}
}

// The end of a child run counts also if it comes long after the deadline of its step, and if the engine
// has died meanwhile.
func TestChildEndsLongAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, keptFlow+orderFlow)
		w.shop.on("label", refuse("card_declined"))
		undo := make(chan struct{})
		w.shop.on("undo", func(ctx context.Context, _ int) error {
			select {
			case <-undo:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		n := w.start()
		run := w.submit(n, "patient", nil)
		time.Sleep(2 * time.Minute)
		w.wantChildren(run, status.RunCompensating)
		n.kill(t)
		n = w.start()
		time.Sleep(time.Minute)
		if s := w.check(run).Status(); s.Final() {
			t.Fatalf("the parent is %v, although its child run is not undone yet", s)
		}
		close(undo)
		w.wait(n, run, status.RunSucceeded)
		w.wantChildren(run, status.RunCancelled)
		n.drain(t)
	})
}

// patientFamily has a parent with a deadline, and a group, a group in it, and a child run that outlive it.
const patientFamily = `
workflow "late_kid" {
  step "go" {
    wait { signal = "go" }
  }
}
workflow "late" {
  deadline = "1m"
  step "kid" { workflow = workflow.late_kid }
  group "outer" {
    group "inner" {
      step "stay" {
        wait { signal = "go" }
      }
    }
  }
}
`

// A person gives a run a later deadline. It counts for its groups and child runs, at every depth, also
// if the engine dies before it has told them.
func TestLaterDeadlineGoesDown(t *testing.T) {
	for name, dies := range map[string]bool{"one engine": false, "the engine dies before it posts the message": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, patientFamily)
				faulty := w.faulty()
				n := w.start()
				run := w.submit(n, "late", nil)
				time.Sleep(5 * time.Second)
				w.verb(n, run, machine.PauseRequested{By: "ann"})
				time.Sleep(5 * time.Second)
				faulty.noPost.Store(dies)
				w.verb(n, run, machine.ResumeRequested{By: "ann", Extend: time.Hour})
				if dies {
					time.Sleep(2 * time.Second)
					n.kill(t)
					faulty.noPost.Store(false)
					n = w.start()
				}
				time.Sleep(5 * time.Minute)
				family := w.children(run)
				if len(family) != 2 {
					t.Fatalf("the run has %d child runs, want two", len(family))
				}
				for _, r := range append(family, w.children(family[0].Run)...) {
					if s := w.check(r.Run); s.Status().Final() || s.Run().Deadline != w.check(run).Run().Deadline {
						t.Errorf("%s is %v until %v, want it to wait like its parent", s.Name(), s.Status(), s.Run().Deadline.Time())
					}
				}
				time.Sleep(time.Hour)
				w.wait(n, run, status.RunFailed)
				w.wantChildren(run, status.RunFailed, status.RunFailed)
				n.drain(t)
			})
		})
	}
}

// A migration that gives a run a later deadline gives it to its groups, too.
func TestMigrationMovesTheDeadlineOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, patientFamily)
		n := w.start()
		run := w.submit(n, "late", nil)
		time.Sleep(5 * time.Second)
		w.moveRun(run, define(t, strings.Replace(patientFamily, `"1m"`, `"2h"`, 1), w.shop.agent))
		time.Sleep(time.Hour)
		for _, r := range w.children(run) {
			if r.State.Final() {
				t.Errorf("%s is %v, although its parent waits", r.Name, r.State)
			}
		}
		w.verb(n, run, machine.CancelRequested{By: "ann"})
		w.wait(n, run, status.RunCancelled)
		n.drain(t)
	})
}
