package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// beforeMigration has a step that never succeeds. afterMigration has another step instead, under
// another agent block.
const beforeMigration = `
workflow "w" {
  deadline     = "30m"
  compensation { mode = "manual" }
  step "good" {
    action = agent.shop.charge
    input { name = "good" }
  }
  step "bad" {
    depends_on = [step.good]
    action     = agent.shop.charge
    input { name = "bad" }
  }
}`

const afterMigration = `
agent "store" { plugin = "shop" }
moved {
  from = step.good
  to   = step.best
}
workflow "w" {
  deadline     = "30m"
  compensation { mode = "manual" }
  step "first" {
    action = agent.store.charge
    input { name = "first" }
  }
  step "best" {
    action = agent.shop.charge
    input { name = "good" }
  }
  step "last" {
    action = agent.store.charge
    input {
      name = "last"
      note = step.first.output.id
    }
  }
}`

// askMigration asks the owner of the run to move it to the definition.
func (w *world) askMigration(ctx context.Context, run status.RunID, next *dsl.Definition) store.MessageID {
	w.t.Helper()
	op := w.operator()
	ids, err := op.Defs.Put(ctx, next)
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := w.mem.Runs(ctx, store.RunFilter{IDs: []status.RunID{run}})
	if err != nil || len(rows) != 1 {
		w.t.Fatalf("%d runs, err = %v", len(rows), err)
	}
	now, err := op.Defs.Workflow(ctx, rows[0].Workflow)
	if err != nil {
		w.t.Fatal(err)
	}
	id, err := op.Ask(ctx, run, machine.Migrated{Workflow: int32(ids[now.Name]), Digest: next.Digest(), By: "ann"}, "ann")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// moveRun asks for the migration and waits until the owner has answered.
func (w *world) moveRun(run status.RunID, next *dsl.Definition) {
	w.t.Helper()
	if err := w.operator().Answer(w.t.Context(), run, w.askMigration(w.t.Context(), run, next)); err != nil {
		w.t.Fatal(err)
	}
}

// A withoutStore is the invoker of an engine that does not have the agent named store.
type withoutStore struct{ invoke.Invoker }

func (withoutStore) Check(_ context.Context, spec invoke.AgentSpec) error {
	if spec.Agent.Name == "store" {
		return errors.New("no such agent here")
	}
	return nil
}

// An engine that dies before or after any commit of a migration leaves a run that another engine
// finishes with the new definition. That includes a death between the commit and the reload.
func TestCrashWhileARunIsMoved(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			for k, crashed := 1, true; crashed; k++ {
				synctest.Test(t, func(t *testing.T) { crashed = crashMigration(t, k, after) })
			}
		})
	}
}

// crashMigration moves a run and lets the engine die at its k-th commit from then on. It reports
// whether there was a k-th commit.
func crashMigration(t *testing.T, k int, after bool) (crashed bool) {
	w := newWorld(t, beforeMigration)
	next := define(t, afterMigration, w.shop.agent)
	w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
	faulty := w.faulty()
	first := w.start()
	run := w.submit(first, "w", nil)
	w.wait(first, run, status.RunParked)
	begin := 0
	faulty.plan = func(n int, isAfter bool) error {
		if begin == 0 {
			begin = n
		}
		if n-begin+1 == k && isAfter == after {
			crashed = true
			faulty.down.Store(true)
			first.StopNow()
			return errDown
		}
		return nil
	}
	w.askMigration(t.Context(), run, next)
	select {
	case <-first.Done():
	case <-time.After(time.Minute):
	}
	first.kill(t)
	w.store = w.mem
	second := w.start()
	time.Sleep(w.opts.Lease) // the dead engine's lease passes
	if _, err := second.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wait(second, run, status.RunSucceeded)
	w.check(run)
	if rows, err := w.mem.Runs(t.Context(), store.RunFilter{Digest: next.Digest()}); err != nil || len(rows) != 1 || rows[0].Run != run || rows[0].Moved == 0 {
		t.Errorf("lists show %+v, err = %v, want the run with its new definition", rows, err)
	}
	w.shop.wantEffects(t, map[string]string{"good": "done", "bad": "nothing", "first": "done", "last": "done"})
	second.drain(t)
	return crashed
}

// An engine without the agents of the new definition leaves the run to an engine that has them.
func TestMovedRunGoesToAnEngineWithItsAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, beforeMigration)
		w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		w.cfg = func(c *engine.Config) {
			c.Invoker = withoutStore{w.inv}
		}
		old := w.start()
		w.cfg = nil
		run := w.submit(old, "w", nil)
		w.wait(old, run, status.RunParked)
		other := w.start()
		w.moveRun(run, define(t, afterMigration, w.shop.agent))
		w.wait(other, run, status.RunSucceeded)
		w.shop.wantEffects(t, map[string]string{"good": "done", "bad": "nothing", "first": "done", "last": "done"})
		old.drain(t)
		other.drain(t)
	})
}

// A run that was moved shows the names of its new definition, and its facts have the numbers that
// a follower counts.
func TestFactsOfAMovedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, beforeMigration)
		w.shop.on("bad", func(context.Context, int) error { return &sdk.Failure{Code: "card_declined", Permanent: true} })
		n := w.start()
		run := w.submit(n, "w", nil)
		w.wait(n, run, status.RunParked)
		w.moveRun(run, define(t, afterMigration, w.shop.agent))
		w.wait(n, run, status.RunSucceeded)
		story, err := journal.Load(t.Context(), w.mem, w.sealer(), journal.NewDefinitions(w.mem, w.sealer()), run)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range story.Flow.Steps {
			names = append(names, s.Name)
		}
		if got, want := fmt.Sprint(names), "[best bad (removed) first last]"; got != want {
			t.Errorf("steps %s, want %s", got, want)
		}
		rows, err := w.mem.StepRows(t.Context(), run)
		if err != nil || len(rows) != 4 || rows[0].Name != "best" || rows[3].State != status.StepSucceeded {
			t.Errorf("views %+v, err = %v", rows, err)
		}
		n.drain(t)
	})
}

// A step that starts a child run keeps the child when it gets another name: another engine waits for
// the same child, and does not start a second one.
func TestMovedStepKeepsItsChild(t *testing.T) {
	const source = `
workflow "approval" {
  step "wait" {
    wait { signal = "go" }
  }
  output "by" { value = step.wait.signal }
}
workflow "w" {
  step "ask" { workflow = workflow.approval }
  output "by" { value = step.ask.output.by }
}`
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, source+orderFlow)
		first := w.start()
		run := w.submit(first, "w", nil)
		time.Sleep(time.Minute)
		next := strings.Replace(strings.Replace(source, `step "ask"`, `step "request"`, 1), "step.ask", "step.request", 1)
		w.moveRun(run, define(t, next+orderFlow+`
moved {
  from = step.ask
  to   = step.request
}`, w.shop.agent))
		first.kill(t)
		time.Sleep(w.opts.Lease)
		second := w.start()
		if _, err := second.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		child := w.wantChildren(run, status.RunWaiting)[0]
		w.signal(child.Run, machine.SignalReceived{Name: "go"})
		if by := output(t, w.wait(second, run, status.RunSucceeded), "by"); by != "go" {
			t.Errorf("output by = %s, want go", by)
		}
		w.wantChildren(run, status.RunSucceeded)
		second.drain(t)
	})
}
