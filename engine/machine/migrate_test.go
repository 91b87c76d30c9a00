package machine_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// migrate moves the run of a play to another workflow.
func (p *play) migrate(next *dsl.Workflow) *play {
	p.t.Helper()
	next.Digest = "next"
	in := machine.Input{At: p.now, Event: machine.Migrated{Workflow: 9, By: "ann", Ask: 1}, Next: next}
	rec, err := decideTwice(p.wf, p.s, in)
	if err != nil {
		p.t.Fatal(err)
	}
	if refused, ok := rec.Refused(); ok {
		p.t.Fatalf("refused: %s", refused.Reason)
	}
	for _, c := range rec.Commands() {
		if _, ok := c.(machine.Invoke); ok {
			p.t.Errorf("the migration starts a call: %+v", c)
		}
	}
	p.last = rec
	var j journal
	if err := j.append(rec); err != nil {
		p.t.Fatal(err)
	}
	if err := foldRow(p.twin, j.rows[0]); err != nil {
		p.t.Fatal(err)
	}
	p.s.Apply(rec)
	p.plain.Apply(rec)
	if got, want := p.twin.Run().Moves, p.s.Run().Moves; !reflect.DeepEqual(got, want) {
		p.t.Errorf("the journal says that the run was moved to %v, want %v", got, want)
	}
	if to := rec.MovedTo(); to != 9 {
		p.t.Errorf("the record moves the run to workflow %d, want 9", to)
	}
	p.wf = rec.Moved(p.wf, next)
	return p
}

func TestMigrateRunsANewStepAndUndoesIt(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a").ok("a", "do b")
	p.migrate(flow(do("a"), do("b", after("a")), do("c")))
	if got := p.s.Status(); got != status.RunRunning {
		t.Fatalf("the run is %s", got)
	}
	p.event(machine.SlotsFreed{}, "do c").ok("c").permanent("b", "no", "undo a", "undo c")
}

func TestMigrateStartsANewStepBehindAnEndedOne(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a").ok("a", "do b")
	p.migrate(flow(do("a"), do("b", after("a")), do("c", after("a")))).event(machine.SlotsFreed{}, "do c")
	p.ok("b").ok("c").is("succeeded")
}

func TestMigrateKeepsTheKeysOfARenamedStep(t *testing.T) {
	p := start(t, flow(do("a"), do("b", after("a"))), "do a")
	want := p.call("a", 1).IdempotencyKey
	next := flow(do("z"), do("b", after("z")), do("a"))
	next.Steps[0].Do.Name, next.Steps[0].Undo.Do.Name = "a", "una"
	next.Moved = map[string]string{"a": "z"}
	p.ok("a", "do b").migrate(next).event(machine.SlotsFreed{}, "do a")
	if p.call("a", 1).IdempotencyKey == want {
		t.Error("the new step a has the key of the step that had its name before")
	}
	work, _ := machine.Keys(p.wf, p.s.Run(), p.s.Nodes()[0])
	if work != want {
		t.Errorf("the key of step z is %s, and was %s as step a", work, want)
	}
}

func TestMigrateStartsAFailedStepAgain(t *testing.T) {
	p := start(t, flow(manual, do("a")), "do a")
	p.permanent("a", "no", "alert parked").is("parked")
	old := p.call("a", 1).IdempotencyKey
	next := flow(manual, do("a"))
	next.Steps[0].Do.Name = "better"
	p.migrate(next).event(machine.SlotsFreed{}, "do a")
	if p.call("a", 2).IdempotencyKey == old {
		t.Error("the step is called with another input under the old key")
	}
}

func TestMigrateOfARunThatNeedsNothingMore(t *testing.T) {
	p := start(t, flow(manual, do("a"), do("b", after("a"))), "do a").ok("a", "do b")
	p.permanent("b", "no", "alert parked").is("parked").migrate(flow(manual, do("a"))).is("succeeded")
}

// Each refusal says which step stands in the way, and what to do.
func TestMigrateRefusals(t *testing.T) {
	two := func(options ...option) *dsl.Workflow { return flow(do("a"), do("b", append(options, after("a"))...)) }
	other := func(step int) *dsl.Workflow {
		wf := two()
		wf.Steps[step].Do.Name = "other"
		return wf
	}
	undone := two()
	undone.Steps[0].Undo.Do.Name = "other"
	renamed := two()
	renamed.Name = "invoice"
	same := two()
	same.Digest = "next"
	for name, c := range map[string]struct {
		next    *dsl.Workflow
		want    string
		prepare func(p *play)
	}{
		"gone":           {flow(do("b")), "step a has finished (succeeded), and the new definition does not have it", nil},
		"action":         {other(0), "step a has finished (succeeded), and its action has changed", nil},
		"undo":           {undone, "step a has finished (succeeded), and its undo has changed", nil},
		"in flight":      {other(1), "pause the run, wait until the call has ended", nil},
		"gone in flight": {flow(do("a")), "a call of step b is in flight, and the new definition does not have the step", nil},
		"workflow":       {renamed, `the run is of workflow "order", not of workflow "invoice"`, nil},
		"unreadable":     {nil, "cannot read the new definition", nil},
		"dependency":     {flow(do("a"), do("n"), do("b", after("a", "n"))), "call of step b is in flight", nil},
		"pivot":          {flow(do("a", pivot), do("b", after("a"))), "the pivot is another step", nil},
		"undoing":        {two(), "the run is being undone", func(p *play) { p.event(machine.CancelRequested{}) }},
		"unknown": {other(1), "step b may have taken effect, and its action has changed", func(p *play) {
			p.unknown("b", "agent_lost", "alert parked")
		}},
		"group": {other(1), "wait until the group has ended", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, flow(do("a"), do("b", after("a"))), "do a").ok("a", "do b")
			if name == "group" {
				p = start(t, flow(do("a"), do("b", group, after("a"))), "do a").ok("a", "do b")
			}
			if name == "unknown" {
				p = start(t, flow(manual, do("a"), do("b", after("a"))), "do a").ok("a", "do b")
			}
			if c.prepare != nil {
				c.prepare(p)
			}
			if c.next != nil {
				c.next.Digest = "next"
			}
			rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.Migrated{Ask: 3}, Next: c.next})
			refused, ok := rec.Refused()
			if !ok || !strings.Contains(refused.Reason, c.want) || refused.Ask != 3 {
				t.Errorf("answer %+v, want a refusal with %q", rec.Event(), c.want)
			}
		})
	}
}

func TestMigrateChangesTheDeadline(t *testing.T) {
	p := start(t, flow(do("a"), runDeadline(time.Hour)), "do a")
	p.migrate(flow(do("a"), runDeadline(2*time.Hour)))
	if got, want := p.s.Run().Deadline.Time(), noon.Add(2*time.Hour); !got.Equal(want) {
		t.Errorf("the deadline is %v, want %v", got, want)
	}
	p.now = noon.Add(90 * time.Minute)
	next := flow(do("a"), runDeadline(time.Minute))
	next.Digest = "third"
	rec := machine.Decide(p.wf, p.s, machine.Input{At: p.now, Event: machine.Migrated{}, Next: next})
	if _, refused := rec.Refused(); !refused {
		t.Error("a deadline that has passed was accepted")
	}
	if to := rec.MovedTo(); to != 0 {
		t.Errorf("a refused migration moves the run to workflow %d", to)
	}
}

// A run that was overdue is not overdue any more when the new definition has no deadline.
func TestMigrationWithoutADeadlineEndsOverdue(t *testing.T) {
	wf := func(deadline ...any) *dsl.Workflow {
		return flow(append([]any{do("a", exhausted(dsl.ExhaustedPark))}, deadline...)...)
	}
	p := start(t, wf(runDeadline(second(50))), "do a").fail("a", "flaky", "alert parked").wait(second(50), "alert overdue")
	if p.migrate(wf()); p.s.Run().Overdue || p.s.Run().Deadline != 0 {
		t.Errorf("the moved run has deadline %v, overdue %t", p.s.Run().Deadline, p.s.Run().Overdue)
	}
}
