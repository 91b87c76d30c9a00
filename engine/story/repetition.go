package story

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// NotRepeated says why a failed call was not repeated although its step may
// have further attempts, or although nobody knows what the call did. "" means
// that there is nothing to say: the attempts or the time were used up.
type NotRepeated string

// The reasons.
const (
	NotIdempotent NotRepeated = "not_idempotent" // the outcome is not known, and a repetition could do it twice
	NotPermanent  NotRepeated = "permanent"      // the agent says that it will fail again
	NotOn         NotRepeated = "not_on"         // the step's retry excludes the code
	NotTransient  NotRepeated = "not_transient"  // the code is none that is repeated, and on does not name it
)

// notRepeated says why the last failure of a node's forward part was not
// repeated, by the rules of repeatable.
func notRepeated(step *dsl.Step, s *dsl.Settings, n *model.Node) NotRepeated {
	if step.Do == nil || s == nil || n.Expanded || n.State != status.StepFailed && n.State != status.StepCaught {
		return ""
	}
	m := n.Fwd.Blamed()
	switch {
	case m.Kind == model.MissUnknown && !step.Do.Idempotent && !step.Do.ReadOnly && step.OnRerun != dsl.RerunUndoFirst:
		return NotIdempotent
	case s.Retry.MaxAttempts == 1: // none was promised
		return ""
	case m.Kind == model.MissPermanent:
		return NotPermanent
	case m.Kind != model.MissFailed && m.Kind != model.MissUnknown:
		return ""
	case slices.Contains(s.Retry.NotOn, m.Code):
		return NotOn
	case m.Kind == model.MissFailed && !machine.MayRepeat(m, s.Retry, step.Do.Idempotent, step.Retryable):
		return NotTransient
	}
	return ""
}

// Because says the reason for people, of the action named; "" for none.
func (r NotRepeated) Because(action string) string {
	switch r {
	case NotIdempotent:
		return action + " is not idempotent and may have done its work"
	case NotPermanent:
		return "the agent says that it would fail again"
	case NotOn:
		return "not_on names its code"
	case NotTransient:
		return "its code is not transient and on does not name it"
	}
	return ""
}
