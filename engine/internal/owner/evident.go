package owner

import (
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// keepLate keeps an answer as evidence that was decided on, or would have
// been, had its run not ended. One that counted and was only delivered again,
// because this engine could not know that, did not come late.
func (sh *shard) keepLate(r *ownedRun, d *delivery) {
	if !evident(r.state, d) {
		return
	}
	step := ""
	if r.wf != nil && d.Attempt.Node >= 0 && d.Attempt.Node < r.state.NodeCount() {
		step = story.Node(r.state, r.wf, d.Attempt.Node).Name
	}
	sh.s.n.Calls.KeepLate(r.id, step, d.Attempt, d.Event, d.Arrived)
}

// evident reports whether an answer that changes nothing is evidence of
// something: not one that says what the run has recorded of that very attempt,
// and nothing that is no answer.
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
