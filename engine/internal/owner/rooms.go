package owner

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// SetRoom sets the concurrency limit of a submitted run in its first transition. If the run does
// not wait in line, the store commits the transition only if there is a place. SetRoom does nothing
// if the run has no limit. The parameter `accepted` is the time at which the run was accepted.
func SetRoom(t *store.Transition, workflow string, accepted time.Time, e machine.Started) {
	if e.Line.Limit == 0 {
		return
	}
	rank := e.Line.Rank(accepted)
	t.Room = &naming.Room{Workflow: workflow, Key: e.Line.Key, Limit: e.Line.Limit, Rank: rank}
	t.Admit = !e.Waits
}

// noteRoom notes in a transition whether the record admits its run, and whether the record ends the
// run, so that a place or a unique key becomes free, for which another run may wait. The parameter
// `before` is the run's state before the record. The parameter `flow` is the workflow of the run;
// nil = not known.
func noteRoom(t *store.Transition, rec machine.Record, before *machine.State, flow *dsl.Workflow) {
	if rec.Admits() {
		t.Admit = true
	}
	run := before.Run()
	if t.State.Final() && (run.Line.Limit > 0 || run.Key != "" && flow != nil && flow.Unique.Replace) {
		t.Frees = true
	}
}

// Beaten cancels a run that waits for its unique key, because another run has reached the goal of
// the key.
func (s *Scheduler) Beaten(b naming.Beaten) {
	why := "run " + naming.RunName(b.By) + " had the unique key and has reached the goal, so this run did not start"
	ev := machine.CancelRequested{By: "engine", Reason: why, Code: naming.CodeGoalReached}
	s.deliver(b.Run, &delivery{Answer: call.Answer{Event: ev, Arrived: s.n.Clock.Now()}})
}

// Next notifies a run that it is the next in line and that there is a place for it, or that its
// unique key is free.
func (s *Scheduler) Next(run status.RunID) {
	s.deliver(run, &delivery{Answer: call.Answer{Event: machine.SlotsFreed{Admitted: true}, Arrived: s.n.Clock.Now()}})
}
