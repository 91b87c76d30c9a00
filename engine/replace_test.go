package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/naming"
)

const replacedFlow = `
workflow "keyed" {
  deadline = "10h"
  variable "order" { default = "o-1" }
  variable "name" { default = "reserve" }
  unique {
    key         = var.order
    on_conflict = "replace"
    RULE
  }
  LIMIT
  step "reserve" {
    action = agent.shop.reserve
    input { name = var.name }
    PIVOT
  }
  step "wait" {
    timer { duration = "1h" }
    depends_on = [step.reserve]
  }
}`

// replaced returns a world with a workflow whose submissions replace the open run of their key.
func replaced(t *testing.T, rule, limit, pivot string) *world {
	return newWorld(t, strings.NewReplacer("RULE", rule, "LIMIT", limit, "PIVOT", pivot).Replace(replacedFlow))
}

// begun submits a run and waits until its timer runs.
func (w *world) begun(n *testNode) status.RunID {
	w.t.Helper()
	run := w.submit(n, "keyed", nil)
	w.until(run, "waits for its timer", func(s *machine.State) bool { return s.Status() == status.RunWaiting })
	return run
}

// until waits until the state of a run is as the test wants it.
func (w *world) until(run status.RunID, what string, ok func(*machine.State) bool) {
	w.t.Helper()
	start := time.Now()
	for pause := 10 * time.Millisecond; !ok(w.check(run)); pause = min(2*pause, time.Minute) {
		if time.Sleep(pause); time.Since(start) > 5*time.Hour {
			w.t.Fatalf("run %d is %v and never %s\n%s", run, w.check(run).Status(), what, w.transcript(run))
		}
	}
}

// wantReplacedBy checks that the run was cancelled because the run in the parameter `by` replaced it.
func (w *world) wantReplacedBy(run, by status.RunID) {
	w.t.Helper()
	s := w.check(run)
	if f := s.Run().Failure; s.Status() != status.RunCancelled || f.Code != naming.CodeReplaced || !strings.Contains(f.Message, w.check(by).Run().Name) {
		w.t.Errorf("run %d is %v with %+v, want that run %d replaced it", run, s.Status(), f, by)
	}
}

// S95: with on_conflict = "replace" a submission cancels the open run of its key. The new run starts when
// the effects of the old one are undone, and not before. This is also so if the run is queued in the store.
func TestReplaceCancelsTheOpenRun(t *testing.T) {
	for _, queued := range []bool{false, true} {
		for _, limit := range []string{"", "concurrency {\n limit = 1\n }", "concurrency {\n limit = 1\n when_full = \"reject\"\n }"} {
			t.Run(fmt.Sprint(queued, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := replaced(t, "", limit, "")
					n := w.start()
					first := w.begun(n)
					var sub store.Submitted
					var err error
					if queued {
						sub, err = engine.Enqueue(t.Context(), engine.Config{Store: w.store, Options: w.opts}, again(w))
					} else {
						sub, err = n.Submit(t.Context(), again(w))
					}
					if err != nil || sub.Exists || sub.Run == first {
						t.Fatalf("submitted %+v, err = %v", sub, err)
					}
					if s := w.check(sub.Run); s.Status() != status.RunQueued || !s.Run().Awaits {
						t.Errorf("the new run is %v", s.Status())
					}
					w.wait(n, first, status.RunCancelled)
					w.until(sub.Run, "ended", func(s *machine.State) bool { return s.Status().Final() })
					w.wantReplacedBy(first, sub.Run)
					if s := w.check(sub.Run); s.Status() != status.RunSucceeded || s.Run().Key != "o-1" {
						t.Errorf("the new run is %v with key %q\n%s", s.Status(), s.Run().Key, w.transcript(sub.Run))
					}
					if calls := w.shop.called("reserve"); len(calls) != 2 {
						t.Errorf("%d calls, want 2", len(calls))
					}
					began, ended := w.firstCall(sub.Run), w.check(first).Run().Finished.Time()
					if began.Before(ended) {
						t.Errorf("the new run began at %s, and the old one ended at %s", began, ended)
					}
					if g, err := goals.Find(t.Context(), w.store, "keyed", "o-1"); err != nil || g.Run != sub.Run || g.State != goals.Reached || g.Next != 0 {
						t.Errorf("goal = %+v, err = %v", g, err)
					}
					n.drain(t)
				})
			})
		}
	}
}

// firstCall returns the time of the record with which the steps of a run start.
func (w *world) firstCall(run status.RunID) time.Time {
	w.t.Helper()
	story, err := journal.Load(w.t.Context(), w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, rec := range story.Records {
		if ev, ok := rec.Event().(machine.SlotsFreed); ok && ev.Admitted {
			return rec.At()
		}
	}
	w.t.Fatalf("run %d was never admitted\n%s", run, w.transcript(run))
	return time.Time{}
}

// Of several replacements in a row only the newest one starts.
func TestReplaceSeveralTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, "", "", "")
		a, b := w.start(), w.start()
		runs := []status.RunID{w.begun(a)}
		all := []engine.Submission{again(w), again(w), again(w)}
		for i, s := range all {
			sub, err := []*testNode{b, a, b}[i].Submit(t.Context(), s)
			if err != nil || sub.Exists {
				t.Fatalf("submitted %+v, err = %v", sub, err)
			}
			runs = append(runs, sub.Run)
		}
		many, err := engine.EnqueueAll(t.Context(), engine.Config{Store: w.store, Options: w.opts}, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range many {
			runs = append(runs, m.Run)
		}
		newest := runs[len(runs)-1]
		w.until(newest, "ended", func(s *machine.State) bool { return s.Status().Final() })
		for _, run := range runs[:len(runs)-1] {
			if s := w.check(run); s.Status() != status.RunCancelled || s.Run().Failure.Code != naming.CodeReplaced {
				t.Errorf("run %d is %v with %+v", run, s.Status(), s.Run().Failure)
			}
		}
		if s := w.check(newest).Status(); s != status.RunSucceeded {
			t.Errorf("the newest run is %v", s)
		}
		if calls := w.shop.called("reserve"); len(calls) != 2 {
			t.Errorf("%d calls, want one of the first run and one of the newest", len(calls))
		}
		a.drain(t)
		b.drain(t)
	})
}

// If the old run reaches the goal before it can be cancelled, the new run ends without a call. A run that
// has passed its pivot cannot be cancelled.
func TestReplaceAfterTheGoal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, "", "", "pivot = true")
		n := w.start()
		first := w.begun(n)
		sub, err := n.Submit(t.Context(), again(w))
		if err != nil || sub.Exists {
			t.Fatalf("submitted %+v, err = %v", sub, err)
		}
		w.wait(n, first, status.RunSucceeded)
		s := w.wait(n, sub.Run, status.RunCancelled)
		if f := s.Run().Failure; f.Code != naming.CodeGoalReached || !strings.Contains(f.Message, w.check(first).Run().Name) {
			t.Errorf("failure = %+v", f)
		}
		if calls := w.shop.called("reserve"); len(calls) != 1 {
			t.Errorf("%d calls, want 1", len(calls))
		}
		var held *engine.KeyError
		for _, submit := range []func() (store.Submitted, error){
			func() (store.Submitted, error) { return n.Submit(t.Context(), again(w)) },
			func() (store.Submitted, error) {
				return engine.Enqueue(t.Context(), engine.Config{Store: w.store, Options: w.opts}, again(w))
			},
		} {
			if _, err := submit(); !errors.As(err, &held) || held.State != goals.Reached {
				t.Errorf("after the goal: err = %v (%+v)", err, held)
			}
		}
		n.drain(t)
	})
}

// With the scope active, a success frees the key as every other end does.
func TestReplaceOfAnActiveKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, `scope = "active"`, "", "pivot = true")
		n := w.start()
		first := w.begun(n)
		sub, err := n.Submit(t.Context(), again(w))
		if err != nil || sub.Exists {
			t.Fatalf("submitted %+v, err = %v", sub, err)
		}
		w.wait(n, first, status.RunSucceeded)
		w.wait(n, sub.Run, status.RunSucceeded)
		n.drain(t)
	})
}

// A submission with the name of a run is the same submission, made again: it replaces nothing.
func TestReplaceUnderTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, "", "", "")
		n := w.start()
		w.begun(n)
		named := again(w)
		named.Name = "second"
		sub, err := n.Submit(t.Context(), named)
		if err != nil || sub.Exists {
			t.Fatalf("submitted %+v, err = %v", sub, err)
		}
		for range 2 {
			if again, err := n.Submit(t.Context(), named); err != nil || !again.Exists || again.Run != sub.Run {
				t.Errorf("again: %+v, err = %v", again, err)
			}
			w.until(sub.Run, "begun", func(s *machine.State) bool { return s.Status() == status.RunWaiting })
		}
		w.wait(n, sub.Run, status.RunSucceeded)
		n.drain(t)
	})
}

// The run that waits needs no engine that lives on: if the engine that accepted it dies, another one
// cancels the old run and starts the new one.
func TestReplaceSurvivesTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, "", "", "")
		a := w.start()
		first := w.begun(a)
		sub, err := a.Submit(t.Context(), again(w))
		if err != nil || sub.Exists {
			t.Fatalf("submitted %+v, err = %v", sub, err)
		}
		a.kill(t)
		b := w.start()
		w.until(sub.Run, "ended", func(s *machine.State) bool { return s.Status().Final() })
		w.wantReplacedBy(first, sub.Run)
		if s := w.check(sub.Run).Status(); s != status.RunSucceeded {
			t.Errorf("the new run is %v\n%s", s, w.transcript(sub.Run))
		}
		b.drain(t)
	})
}

// A person may cancel the run that waits, and the run that is replaced ends as before.
func TestReplacementIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := replaced(t, "", "", "pivot = true")
		n := w.start()
		first := w.begun(n)
		sub, err := n.Submit(t.Context(), again(w))
		if err != nil || sub.Exists {
			t.Fatalf("submitted %+v, err = %v", sub, err)
		}
		if err := n.Deliver(t.Context(), sub.Run, machine.CancelRequested{By: "ann", Reason: "not needed"}); err != nil {
			t.Fatal(err)
		}
		if f := w.wait(n, sub.Run, status.RunCancelled).Run().Failure; f.Code != machine.CodeCancelled || f.Message != "not needed" {
			t.Errorf("failure = %+v", f)
		}
		w.wait(n, first, status.RunSucceeded)
		n.drain(t)
	})
}
