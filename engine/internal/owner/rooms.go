package owner

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// SetRoom sets the concurrency limit of a submitted run in its first transition. If the run does not
// wait in line, the store commits the transition only if there is room. SetRoom does nothing if the
// run has no limit. The parameter accepted is the time at which the run was accepted.
func SetRoom(t *store.Transition, workflow string, accepted time.Time, e machine.Started) {
	if e.Line.Limit == 0 {
		return
	}
	rank := e.Line.Rank(accepted)
	t.Room = &naming.Room{Workflow: workflow, Key: e.Line.Key, Limit: e.Line.Limit, Rank: rank}
	t.Admit = !e.Waits
}

// noteRoom notes in a transition that a record admits its run, or that the run ends and frees its
// place. The parameter before is the run's state before the record.
func noteRoom(t *store.Transition, rec machine.Record, before *machine.State) {
	if rec.Admits() {
		t.Admit = true
	}
	if before.Run().Line.Limit > 0 && t.State.Final() {
		t.Frees = true
	}
}

// Next notifies a run that it is the next in line and that there is room for it.
func (s *Scheduler) Next(run status.RunID) {
	s.deliver(run, &delivery{Answer: call.Answer{Event: machine.SlotsFreed{Admitted: true}, Arrived: s.n.Clock.Now()}})
}
