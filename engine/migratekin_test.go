package engine_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// beforeKin waits for a signal, and then starts a group and a child run. afterKin changes both of them,
// and adds a group and a child run of another workflow. Every child of afterKin rests for an hour between
// two steps, so that an engine reads the child again from the store.
const beforeKin = `
workflow "parcel" {
  step "pack" {
    action = agent.shop.charge
    input { name = "old-pack" }
  }
  output "id" { value = step.pack.output.id }
}
workflow "w" {
  step "go" {
    wait { signal = "go" }
  }
  group "box" {
    depends_on = [step.go]
    step "seal" {
      action = agent.shop.charge
      input { name = "old-seal" }
    }
  }
  step "ship" {
    depends_on = [step.go]
    workflow   = workflow.parcel
  }
}`

var afterKin = `
workflow "parcel" {` + restful("parcel", `
  step "inner" { workflow = workflow.label }`) + `
  output "id" { value = step.parcel_b.output.id }
}
workflow "label" {` + restful("label", "") + `
}
workflow "w" {
  step "go" {
    wait { signal = "go" }
  }
  group "box" {
    depends_on = [step.go]` + restful("box", "") + `
  }
  group "crate" {
    depends_on = [step.go]` + restful("crate", "") + `
  }
  step "ship" {
    depends_on = [step.go]
    workflow   = workflow.parcel
  }
  step "print" {
    depends_on = [step.go]
    workflow   = workflow.label
  }
  output "id" { value = step.ship.output.id }
}`

// restful returns two steps with a pause of an hour between them, and other steps.
func restful(name, more string) string {
	return strings.ReplaceAll(`
    step "NAME_a" {
      action = agent.shop.charge
      input { name = "NAME-a" }
    }
    step "NAME_rest" {
      depends_on = [step.NAME_a]
      timer { duration = "1h" }
    }
    step "NAME_b" {
      depends_on = [step.NAME_rest]
      action     = agent.shop.charge
      input { name = "NAME-b" }
    }`, "NAME", name) + more
}

// wantDefinition checks which definition a run has now, as the store says.
func (w *world) wantDefinition(run status.RunID, want *dsl.Definition) {
	w.t.Helper()
	told, err := journal.Load(w.t.Context(), w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
	if err != nil {
		w.t.Fatal(err)
	}
	if told.Flow.Digest != want.Digest() {
		w.t.Errorf("the run of workflow %s has definition %.12s, want %.12s", told.Flow.Name, told.Flow.Digest, want.Digest())
	}
}

// Child runs and groups that a run starts after its migration have the new definition, also in an engine
// that reads them from the store: after a rest, and after a takeover.
func TestChildrenAfterAMigration(t *testing.T) {
	for name, replace := range map[string]bool{"rest": false, "takeover": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, beforeKin)
				next := define(t, afterKin, w.shop.agent)
				n := w.start()
				run := w.submit(n, "w", nil)
				time.Sleep(time.Minute)
				w.moveRun(run, next)
				w.signal(run, machine.SignalReceived{Name: "go"})
				time.Sleep(2 * time.Minute)
				open := w.children(run)
				if len(open) != 4 {
					t.Fatalf("%d child runs, want 4\n%s", len(open), w.transcript(run))
				}
				for _, c := range open {
					w.wantDefinition(c.Run, next)
				}
				if replace {
					n.kill(t)
					time.Sleep(w.opts.Lease)
					n = w.start()
					if _, err := n.TakeOver(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if id := output(t, w.wait(n, run, status.RunSucceeded), "id"); id != "id-parcel-b" {
					t.Errorf("output id = %s, want that of the new definition", id)
				}
				for _, c := range w.wantChildren(run, status.RunSucceeded, status.RunSucceeded, status.RunSucceeded, status.RunSucceeded) {
					w.wantDefinition(c.Run, next)
					for _, inner := range w.children(c.Run) {
						w.wantDefinition(inner.Run, next)
					}
				}
				w.shop.wantEffects(t, map[string]string{
					"old-pack": "nothing", "old-seal": "nothing", "box-a": "done", "box-b": "done", "crate-a": "done", "crate-b": "done", "parcel-a": "done", "parcel-b": "done",
				})
				n.drain(t)
			})
		})
	}
}

// A blindStore does not find the row of one run, while a test says which.
type blindStore struct {
	store.Full
	blind atomic.Int64 // the run; 0 = none
	asked atomic.Int64 // number of questions about the run
}

func (s *blindStore) Runs(ctx context.Context, f store.RunFilter) ([]store.RunRow, error) {
	if blind := s.blind.Load(); blind != 0 && f.Name == strconv.FormatInt(blind, 10) {
		s.asked.Add(1)
		return nil, errDown
	}
	return s.Full.Runs(ctx, f)
}

// The call for a child run may begin before a migration, and submit the child after it. Then the child has
// the definition with which the call began, in the store as in memory.
func TestChildOfACallBeforeAMigration(t *testing.T) {
	source := func(pack string) string { return strings.ReplaceAll(beforeKin, "old-pack", pack) }
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, source("first-pack"))
		second, third := define(t, source("second-pack"), w.shop.agent), define(t, source("third-pack"), w.shop.agent)
		blind := &blindStore{Full: store.Complete(w.mem)}
		w.store = blind
		n := w.start()
		run := w.submit(n, "w", nil)
		time.Sleep(time.Minute)
		w.moveRun(run, second)
		blind.blind.Store(int64(run))
		w.signal(run, machine.SignalReceived{Name: "go"})
		time.Sleep(5 * time.Second)
		if blind.asked.Load() == 0 {
			t.Fatal("the engine has not asked for the parent of a child run")
		}
		w.moveRun(run, third)
		blind.blind.Store(0)
		time.Sleep(time.Minute)
		w.wantChildren(run, status.RunSucceeded, status.RunSucceeded)
		w.wait(n, run, status.RunSucceeded)
		for _, c := range w.wantChildren(run, status.RunSucceeded, status.RunSucceeded) {
			w.wantDefinition(c.Run, second)
		}
		w.shop.wantEffects(t, map[string]string{"first-pack": "nothing", "second-pack": "done", "third-pack": "nothing"})
		n.drain(t)
	})
}

// movedBell returns a workflow with the given notify blocks. The run waits for a signal, and then books.
func movedBell(notify string) string {
	return `
workflow "order" {
  deadline     = "1h"
  compensation { mode = "manual" }
  step "go" {
    wait { signal = "go" }
  }
  step "book" {
    depends_on = [step.go]
    action     = agent.shop.book
    input { name = "book" }
  }` + notify + `
}`
}

func ring(text, on string) string {
	return `
  notify {
    on     = [` + on + `]
    action = agent.bell.ring
    input { text = "` + text + ` ${run.status}: ${failure.code}" }
  }`
}

// After a migration, the notify blocks of the new definition announce what the run reaches: blocks that the
// migration adds, and blocks that it changes. That also holds if another engine makes the call.
func TestNotifyAfterAMigration(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"added":        {"", ring("added", allStates), []string{"added succeeded: "}},
		"one more":     {ring("kept", allStates), ring("kept", allStates) + ring("added", allStates), []string{"added succeeded: ", "kept succeeded: "}},
		"changed":      {ring("old", allStates), ring("new", allStates), []string{"new succeeded: "}},
		"other states": {ring("old", `"failed"`), ring("new", allStates), []string{"new succeeded: "}},
		"removed":      {ring("old", allStates), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, b := belled(t, movedBell(c.before))
				next := define(t, movedBell(c.after), w.shop.agent, b.agent)
				var down atomic.Bool
				down.Store(true)
				b.script = func(context.Context, int) error {
					if down.Load() {
						return errors.New("connection refused")
					}
					return nil
				}
				n := w.start()
				run := w.submit(n, "order", nil)
				time.Sleep(time.Minute)
				w.moveRun(run, next)
				w.signal(run, machine.SignalReceived{Name: "go"})
				w.wait(n, run, status.RunSucceeded)
				time.Sleep(time.Minute)
				n.kill(t)
				down.Store(false)
				n = w.start()
				time.Sleep(time.Hour)
				b.wantRung(t, c.want...)
				for _, s := range w.notices(run) {
					for _, r := range s.Notifications {
						w.wantDefinition(r.Run, next)
					}
				}
				n.drain(t)
			})
		})
	}
}

// A state that a run reaches before its migration is announced by the definition of that time, although the
// announcement is made after the migration. That also holds if an engine decides both at once.
func TestNotifyBeforeAMigration(t *testing.T) {
	for name, together := range map[string]bool{"one after the other": false, "at once": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, b := belled(t, movedBell(ring("old", allStates)))
				next := define(t, strings.ReplaceAll(movedBell(ring("new", allStates)), `"book"`, `"hotel"`), w.shop.agent, b.agent)
				late := &mute{Full: store.Complete(w.mem), Keeper: w.mem, open: errors.New("the store is slow")}
				w.store = late
				fail := declined("no_carrier")
				if together {
					fail = block
				}
				w.shop.on("book", fail)
				n := w.start()
				run := w.submit(n, "order", nil)
				time.Sleep(time.Second)
				w.signal(run, machine.SignalReceived{Name: "go"})
				time.Sleep(time.Second)
				if together {
					n.kill(t)
					ids, err := w.operator().Defs.Put(t.Context(), next)
					if err != nil {
						t.Fatal(err)
					}
					w.post(run, store.MessageReply, machine.AttemptFailed{Attempt: machine.AttemptID{Node: 1, Call: 1}, Code: "no_carrier", Permanent: true}, time.Now())
					w.post(run, store.MessageVerb, machine.Migrated{Workflow: int32(ids["order"]), Digest: next.Digest(), By: "ann"}, time.Now())
					n = w.start()
				} else {
					w.wait(n, run, status.RunParked)
					w.moveRun(run, next)
				}
				w.until(run, "succeeded", func(s *machine.State) bool { return s.Status() == status.RunSucceeded })
				late.mu.Lock()
				late.open = nil
				late.mu.Unlock()
				time.Sleep(time.Minute)
				b.wantRung(t, "old parked: no_carrier", "new succeeded: ")
				for _, s := range w.notices(run) {
					for _, r := range s.Notifications {
						want := w.def
						if s.State == "succeeded" {
							want = next
						}
						w.wantDefinition(r.Run, want)
					}
				}
				n.drain(t)
			})
		})
	}
}

// A group that has finished may get another name. It keeps its child run, and the undo of the run finds it.
func TestRenamedGroupIsMoved(t *testing.T) {
	source := func(group, bad string) string {
		return strings.NewReplacer("BOX", group, "BAD", bad).Replace(`
workflow "w" {
  deadline     = "1h"
  compensation { mode = "manual" }
  group "BOX" {
    step "seal" {
      action = agent.shop.charge
      input { name = "seal" }
    }
    output "id" { value = step.seal.output.id }
  }
  step "bad" {
    action = agent.shop.charge
    input {
      name = "BAD"
      note = group.BOX.output.id
    }
  }
}`)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, source("box", "bad"))
		w.shop.on("bad", refuse("card_declined"))
		w.shop.on("worse", refuse("card_declined"))
		n := w.start()
		run := w.submit(n, "w", nil)
		w.wait(n, run, status.RunParked)
		w.moveRun(run, define(t, source("crate", "worse")+`
moved {
  from = step.box
  to   = step.crate
}`, w.shop.agent))
		w.until(run, "fails again", func(s *machine.State) bool {
			return len(w.shop.called("worse")) > 0 && s.Status() == status.RunParked
		})
		if err := w.ask(run, machine.CompensateRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, run, status.RunCompensated)
		w.wantChildren(run, status.RunCompensated)
		w.shop.wantEffects(t, map[string]string{"seal": "undone", "bad": "nothing", "worse": "nothing"})
		n.drain(t)
	})
}

// A run whose group is open and has changed cannot be moved. The remedy in the refusal works: the run is
// paused, a person brings the run of the group to its end, and then the run is moved. If the run of the group
// has succeeded, its result counts. If a person has cancelled it, the group starts again as it is now.
func TestGroupInFlightIsEnded(t *testing.T) {
	source := func(seal, last string) string {
		return strings.NewReplacer("SEAL", seal, "LAST", last).Replace(`
workflow "w" {
  deadline     = "1h"
  compensation { mode = "manual" }
  group "box" {
    step "seal" {
      action = agent.shop.charge
      input { name = "SEAL" }
    }
  }
  step "last" {
    depends_on = [group.box]
    action     = agent.shop.charge
    input { name = "LAST" }
  }
}`)
	}
	for name, c := range map[string]struct {
		verb    machine.Event
		ended   status.RunState
		effects map[string]string
	}{
		"retried":   {machine.RetryRequested{By: "ann"}, status.RunSucceeded, map[string]string{"bad": "done", "good": "nothing", "old": "nothing", "new": "done"}},
		"cancelled": {machine.CancelRequested{By: "ann"}, status.RunCancelled, map[string]string{"bad": "nothing", "good": "done", "old": "nothing", "new": "done"}},
	} {
		t.Run(name, func(t *testing.T) { groupInFlight(t, source, c.verb, c.ended, c.effects) })
	}
}

// groupInFlight does the work of TestGroupInFlightIsEnded. The verb ends the run of the group.
func groupInFlight(t *testing.T, source func(seal, last string) string, verb machine.Event, ended status.RunState, effects map[string]string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, source("bad", "old"))
		w.shop.on("bad", func(_ context.Context, n int) error {
			if n == 1 {
				return &sdk.Failure{Code: "card_declined", Permanent: true}
			}
			return nil
		})
		next := define(t, source("good", "new"), w.shop.agent)
		n := w.start()
		run := w.submit(n, "w", nil)
		time.Sleep(time.Minute)
		child := w.wantChildren(run, status.RunParked)[0]
		if err := w.ask(run, machine.PauseRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		ids, err := w.operator().Defs.Put(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		err = w.ask(run, machine.Migrated{Workflow: int32(ids["w"]), Digest: next.Digest(), By: "ann"})
		const remedy = "the group box is open, and the step has changed (step); wait until the group has ended, and migrate the run then: while it is paused, the group does not end"
		if err == nil || !strings.Contains(err.Error(), remedy) {
			t.Fatalf("migrate: %v, want a refusal with %q", err, remedy)
		}
		if err := w.ask(child.Run, verb); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.wantChildren(run, ended)
		w.moveRun(run, next)
		if err := w.ask(run, machine.ResumeRequested{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.wait(n, run, status.RunSucceeded)
		w.shop.wantEffects(t, effects)
		n.drain(t)
	})
}
