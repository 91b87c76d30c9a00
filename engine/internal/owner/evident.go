package owner

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// keepLate keeps the late answer d as evidence. It does nothing if the run has already
// recorded the same answer.
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

// evident reports whether a late answer must be kept as evidence. It returns false if d is not an
// answer, or if the run has already recorded an answer to the same call with the same outcome and
// code.
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

// lateReply returns the row that stores the late answer d as evidence. The answer must have
// come in a message of the inbox.
func lateReply(run status.RunID, wf *dsl.Workflow, state *machine.State, d *delivery) store.LateReply {
	step := ""
	if wf != nil && d.Attempt.Node >= 0 && d.Attempt.Node < state.NodeCount() {
		step = story.Node(state, wf, d.Attempt.Node).Name
	}
	outcome, code, _ := call.OutcomeOf(d.Event)
	return store.LateReply{
		Run: run, Node: int32(d.Attempt.Node), Call: int32(d.Attempt.Call), Step: naming.CleanText(step),
		At: d.Arrived, Outcome: outcome, Code: naming.CleanText(code), Data: d.data,
	}
}

const doingLate = "keep a late answer"

// KeepSurely stores a late answer as evidence. While the store does not answer, KeepSurely tries
// again. It returns true once the answer is stored, or if the run was removed from the store. It
// returns false if ctx ends first.
func (n *Shared) KeepSurely(ctx context.Context, l store.LateReply) bool {
	pause := 20 * time.Millisecond
	for {
		err := n.cfg.Store.KeepLate(ctx, l)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			n.Outage.Worked(doingLate, time.Time{})
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.Outage.Failed(doingLate, err, "run", naming.RunName(l.Run))
		if wait.For(ctx, pause) != nil {
			return false
		}
		pause = min(2*pause, n.cfg.Options.RetryStore)
	}
}
