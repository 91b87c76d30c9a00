package machine

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// The first two replies of a run. The others have the name of the state that the run reaches.
const (
	ReplyAccepted = "accepted" // the run is stored
	ReplyStarted  = "started"  // the first step of the run begins
)

// Replies returns where the replies of a run go, and which replies the record causes, in order. s is
// the state before the record. The result is nil if the run has no replies. A record of EngineLost
// causes no reply, because the run must not be read.
func (r Record) Replies(s *State) (*model.ReplyTo, []string) {
	to := s.run.Reply
	if r.run != nil && r.run.Mask&model.RunReplyBit != 0 {
		to = r.run.To.Reply
	}
	if to == nil || r.run == nil {
		return nil, nil
	}
	var out []string
	if _, first := r.event.(Started); first {
		out = append(out, ReplyAccepted)
	}
	if after := &r.run.To; r.run.Mask&model.RunBegunBit != 0 && after.Begun && after.Phase == model.PhaseForward && !after.Parked {
		out = append(out, ReplyStarted)
	}
	out = append(out, slices.DeleteFunc(r.Reached(), func(state string) bool { return state == status.Overdue })...)
	return to, out
}
