package story

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A NotRepeated says why a failed call was not repeated, although the step has attempts
// left or the outcome is unknown. "" means that attempts or time were used up, so there is
// nothing to explain.
type NotRepeated string

// Reasons why the last failure of a step was not repeated.
const (
	// The outcome is unknown, and a repetition could cause the effect a second time.
	NotIdempotent NotRepeated = "not_idempotent"
	NotPermanent  NotRepeated = "permanent" // the agent says that a repetition would fail as well
	NotOn         NotRepeated = "not_on"    // the step's retry excludes the code
	// The code is not repeated unless `on` names it, and `on` does not.
	NotTransient NotRepeated = "not_transient"
)

// notRepeated says why the last forward failure of a node was not repeated, by the rules of
// machine.MayRepeat.
func notRepeated(step *dsl.Step, s *dsl.Settings, n *model.Node) NotRepeated {
	if step.Do == nil || s == nil || n.Expanded || n.State != status.StepFailed && n.State != status.StepCaught {
		return ""
	}
	m := n.Fwd.Blamed()
	switch {
	case m.Kind == model.MissUnknown && !step.Do.Idempotent && !step.Do.ReadOnly && step.OnRerun != dsl.RerunUndoFirst:
		return NotIdempotent
	case s.Retry.MaxAttempts == 1: // the workflow allows only one attempt
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

// Because returns the reason as a text for people that contains the name of the action; ""
// if there is no reason.
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
