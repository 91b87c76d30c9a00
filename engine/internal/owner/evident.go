package owner

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// keepLate keeps a late answer as evidence. An answer that has counted already and was
// delivered twice is not late, and is not kept.
func (n *Shared) keepLate(r *ownedRun, d *delivery) {
	if !evident(r.state, d) {
		return
	}
	step := ""
	if r.wf != nil && d.Attempt.Node >= 0 && d.Attempt.Node < r.state.NodeCount() {
		step = story.Node(r.state, r.wf, d.Attempt.Node).Name
	}
	n.Calls.KeepLate(r.id, step, d.Attempt, d.Event, d.Arrived)
}

// evident reports whether an answer that changes nothing is worth keeping. It is not if
// it repeats what the run has recorded of that attempt, or if the event is no answer.
func evident(s *machine.State, d *delivery) bool {
	outcome, code, ok := call.OutcomeOf(d.Event)
	if !ok {
		return false
	}
	for _, c := range story.Node(s, nil, d.Attempt.Node).Calls {
		if c.Call == d.Attempt.Call {
			return c.Status != outcome || c.Code != code
		}
	}
	return true
}
