package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
)

const keyedFlow = `
workflow "keyed" {
  deadline = "10h"
  variable "order" { default = "o-1" }
  unique {
    key         = var.order
    on_conflict = "WHEN"
    RULE
  }
  step "wait" {
    timer { duration = "1h" }
  }
}`

// keyed returns a world with a workflow that has a unique key.
func keyed(t *testing.T, when, rule string) *world {
	return newWorld(t, strings.NewReplacer("WHEN", when, "RULE", rule).Replace(keyedFlow))
}

// again returns another submission with the same key.
func again(w *world) engine.Submission {
	return engine.Submission{Definition: w.def, Workflow: "keyed", Vars: w.vars("keyed", nil)}
}

// S95 S98: with on_conflict = "reject" a submission is refused while a run holds its key, also if it
// is queued in the store. The error names the run and the state of the key.
func TestUniqueRejects(t *testing.T) {
	for rule, want := range map[string]struct {
		state goals.State
		says  string
	}{
		``:                 {goals.Reached, `engine goal reset keyed 'o-1' --reason TEXT`},
		`scope = "ever"`:   {goals.Reached, `one run for each key, for ever`},
		`scope = "active"`: {},
		`retain = "30m"`:   {goals.Reached, `the goal of key "o-1" of workflow "keyed" is reached`},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := keyed(t, "reject", rule)
				n := w.start()
				run := w.submit(n, "keyed", nil)
				submits := []func() (store.Submitted, error){
					func() (store.Submitted, error) { return n.Submit(t.Context(), again(w)) },
					func() (store.Submitted, error) {
						return engine.Enqueue(t.Context(), engine.Config{Store: w.store, Options: w.opts}, again(w))
					},
				}
				for _, submit := range submits {
					var held *engine.KeyError
					if sub, err := submit(); !errors.As(err, &held) || held.State != goals.Open || sub.Run != 0 || !strings.Contains(err.Error(), "engine cancel "+held.Run) {
						t.Errorf("while the run is open: %+v, err = %v", sub, err)
					}
				}
				w.wait(n, run, status.RunSucceeded)
				for _, submit := range submits {
					var held *engine.KeyError
					_, err := submit()
					if want.state == "" {
						if err != nil {
							t.Errorf("after the run: err = %v", err)
						}
						break // the new run holds the key now
					}
					if !errors.As(err, &held) || held.State != want.state || !strings.Contains(err.Error(), want.says) {
						t.Errorf("after the run: err = %v, want %s and %q", err, want.state, want.says)
					}
				}
				if strings.HasPrefix(rule, "retain") {
					time.Sleep(31 * time.Minute)
					if sub, err := n.Submit(t.Context(), again(w)); err != nil || sub.Exists {
						t.Errorf("after retain: %+v, err = %v", sub, err)
					}
				}
				n.drain(t)
			})
		})
	}
}

// S98: there is no run to attach to if retention has removed it, so the submission is refused.
func TestGoalOfARemovedRunRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := keyed(t, "attach", "")
		n := w.start()
		run := w.submit(n, "keyed", nil)
		if sub, err := n.Submit(t.Context(), again(w)); err != nil || !sub.Exists || sub.Run != run {
			t.Errorf("attach: %+v, err = %v", sub, err)
		}
		w.wait(n, run, status.RunSucceeded)
		time.Sleep(time.Hour)
		if s, err := w.store.(store.Retainer).Retain(t.Context(), time.Now(), 100); err != nil || s.Runs != 1 {
			t.Fatalf("retain: %+v, err = %v", s, err)
		}
		var held *engine.KeyError
		_, err := n.Submit(t.Context(), again(w))
		if !errors.As(err, &held) || !held.Gone || held.State != goals.Reached || !strings.Contains(err.Error(), "retention has removed that run") {
			t.Errorf("err = %v (%+v)", err, held)
		}
		n.drain(t)
	})
}
