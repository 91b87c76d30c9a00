package machine_test

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// nobody are the slots of an engine that records runs and starts nothing.
var nobody = map[string]machine.Slot{"shop": {Why: "no engine"}, "bank": {Why: "no engine"}}

// S14, S52, S55: a run that nobody starts yet is queued, whatever could be told
// of it without starting anything, and has spent nothing.
func TestQueued(t *testing.T) {
	for name, wf := range map[string]*dsl.Workflow{
		"one step":           flow(do("a")),
		"several":            flow(do("a"), do("b", agent("bank")), do("c", after("a", "b"))),
		"instances":          flow(do("a", each("k", "l"), parallel(1))),
		"a skipped step":     flow(do("s", when(false)), do("a", after("s"))),
		"an empty for_each":  flow(do("s", each()), do("a", after("s"))),
		"input that fails":   flow(brokenInput("a")),
		"precondition fails": flow(do("a", pre(false))),
	} {
		t.Run(name, func(t *testing.T) {
			p := startWith(t, wf, nobody)
			p.is("queued")
			for v := range story.Nodes(p.s, wf) {
				if v.Attempts != 0 || v.Failures != 0 || v.Effect != status.EffectNone || v.State == status.StepRunning || !v.CompleteBy.IsZero() {
					t.Errorf("got %+v", v)
				}
			}
			p.event(machine.SlotsFreed{}).is("queued") // still nobody
			p.event(machine.TimePassed{}).is("queued")
		})
	}
}

func brokenInput(name string) *spec {
	s := do(name)
	s.Input = func(*dsl.Scope) (dsl.Value, error) { return dsl.Value{}, errBroken }
	return s
}

// S19, S55: whoever takes a queued run over starts it.
func TestQueuedStarts(t *testing.T) {
	wf := func() *dsl.Workflow { return flow(do("a"), do("b", each("k"), agent("bank")), do("c", after("a"))) }
	t.Run("by a takeover", func(t *testing.T) {
		p := startWith(t, wf(), nobody)
		p.slots = nil
		p.event(machine.TakenOver{By: 2}, "do a", "do b[k]").is("running")
		p.event(machine.SlotsFreed{}).nothing()
	})
	t.Run("by a takeover with slots of its own", func(t *testing.T) {
		p := startWith(t, wf(), nobody)
		p.slots = map[string]machine.Slot{"shop": {Free: 3}, "bank": {Free: 3}}
		p.event(machine.TakenOver{By: 2}, "do a", "do b[k]").is("running")
	})
	t.Run("when slots free", func(t *testing.T) {
		p := startWith(t, wf(), nobody)
		p.event(machine.TakenOver{By: 2}).is("queued")
		p.slots = map[string]machine.Slot{"shop": {}, "bank": {Free: 1}}
		p.event(machine.SlotsFreed{}, "do b[k]").is("running")
		p.slots = nil
		p.event(machine.SlotsFreed{}, "do a")
	})
}

// S57, S65: only limits that the language starts at acceptance pass in the
// queue, and no attempt is counted.
func TestQueuedLimits(t *testing.T) {
	t.Run("the run's deadline ends it", func(t *testing.T) {
		p := startWith(t, flow(do("a"), runDeadline(second(60))), nobody)
		p.wait(second(60)).is("failed").failure("deadline_exceeded").state("a cancelled")
		if v := p.view("a"); v.Failures != 0 || v.Attempts != 0 {
			t.Errorf("got %+v", v)
		}
	})
	t.Run("or parks it", func(t *testing.T) {
		p := startWith(t, flow(do("a"), runDeadline(second(60)), manual), nobody)
		p.wait(second(60), "alert parked").is("parked")
		p.slots = nil
		p.event(machine.RetryRequested{Extend: second(60)}, "do a")
	})
	t.Run("without a deadline it waits for ever", func(t *testing.T) {
		p := startWith(t, flow(do("a")), nobody)
		p.wait(1000 * second(3600)).is("queued")
		p.slots = nil
		p.event(machine.TakenOver{By: 2}, "do a")
		if c := p.call("a", 0); c.Number != 1 || !c.CompleteBy.Equal(p.now.Add(second(30))) {
			t.Errorf("got attempt %d until %v", c.Number, c.CompleteBy)
		}
	})
	t.Run("start_by ends it", func(t *testing.T) {
		for name, opts := range map[string][]any{"plain": nil, "manual": {tweak(manual)}} {
			t.Run(name, func(t *testing.T) {
				p := mustStart(t, 60, opts...)
				if got, ok := p.s.NextDue(); !ok || !got.Equal(p.now.Add(second(60))) {
					t.Errorf("due at %v, %v", got, ok)
				}
				p.wait(second(59)).is("queued")
				p.wait(second(1)).is("failed").failure("not_started").state("a cancelled")
			})
		}
	})
	t.Run("start_by ends it while it is paused or in line", func(t *testing.T) {
		p := mustStart(t, 60)
		p.event(machine.PauseRequested{By: "ann"}).is("paused").wait(second(60)).is("failed").failure("not_started")
		p = newPlay(t, flow(do("a")), nil)
		p.event(machine.Started{RunID: 42, Line: line.Line{Limit: 1}, Waits: true, StartBy: p.now.Add(second(60))})
		p.wait(second(60)).is("failed").failure("not_started")
		p.event(machine.SlotsFreed{Admitted: true}).nothing()
	})
	t.Run("start_by has passed before an engine takes it", func(t *testing.T) {
		p := mustStart(t, 60)
		p.now, p.slots = p.now.Add(second(61)), nil
		p.event(machine.TakenOver{By: 2}).is("failed").failure("not_started")
		p = newPlay(t, flow(do("a")), nil)
		p.event(machine.Started{RunID: 42, StartBy: p.now}).is("failed").failure("not_started")
	})
	t.Run("a run that has begun goes on after start_by", func(t *testing.T) {
		p := mustStart(t, 60)
		p.slots = nil
		p.event(machine.SlotsFreed{}, "do a")
		p.ok("a").is("succeeded")
		p = newPlay(t, flow(do("a"), do("b", after("a"))), nil)
		p.event(machine.Started{RunID: 42, StartBy: p.now.Add(second(5))}, "do a")
		p.now = p.now.Add(second(6))
		p.ok("a", "do b").is("running")
	})
	t.Run("the step's deadline covers queueing", func(t *testing.T) {
		p := startWith(t, flow(do("a", deadline(second(20)))), nobody)
		p.wait(second(20)).is("failed").failure("a deadline_exceeded")
	})
}

// mustStart accepts a run that no engine starts, and whose first step must begin in the given number of
// seconds.
func mustStart(t *testing.T, seconds int, opts ...any) *play {
	t.Helper()
	p := newPlay(t, flow(append([]any{do("a")}, opts...)...), nobody)
	return p.event(machine.Started{RunID: 42, StartBy: p.now.Add(second(seconds))}).is("queued")
}

// Verbs on a queued run.
func TestQueuedVerbs(t *testing.T) {
	p := startWith(t, flow(do("a")), nobody)
	p.event(machine.RetryRequested{}).refused("queued, not parked")
	p.event(machine.CompensateRequested{}).refused("queued, not parked")
	p.event(machine.ResumeRequested{}).refused("not paused")
	p.event(machine.SettleRequested{Step: "a", As: machine.SettleNotDone}).refused("not in doubt")
	p.event(machine.PauseRequested{By: "ann"}).is("paused")
	p.slots = nil
	p.event(machine.TakenOver{By: 2}).is("paused")
	p.event(machine.ResumeRequested{By: "ann"}, "do a").is("running")

	// S53: what was paused in the queue does not return to it.
	p = startWith(t, flow(do("a")), nobody)
	p.event(machine.PauseRequested{By: "ann"}).is("paused").event(machine.ResumeRequested{By: "ann"})
	if got := p.s.Status(); got == status.RunQueued {
		t.Errorf("resumed in the queue: %v", got)
	}

	p = startWith(t, flow(do("a"), do("b", after("a"))), nobody)
	p.event(machine.CancelRequested{By: "ann"}).is("cancelled").failure("cancelled") // ends at once
	if int(p.s.Run().Undone)+int(p.s.Run().Left) != 0 {
		t.Error("something was undone in a run that did nothing")
	}
}
