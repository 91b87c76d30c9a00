package story

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A NotRepeated says why a failed call was not repeated. "" means that there is nothing to explain,
// for example because a further call was allowed, but all attempts were used.
type NotRepeated string

// Reasons why no further attempt followed the last failure of a step.
const (
	// NotIdempotent means that the outcome is unknown, and a repetition could cause the effect a
	// second time.
	NotIdempotent NotRepeated = "not_idempotent"
	// NotPermanent means that the agent or a fail_when block says that a repetition would fail in
	// the same way.
	NotPermanent NotRepeated = "permanent"
	NotOn        NotRepeated = "not_on" // `not_on` of the step's retry names the failure code
	// NotTransient means that the failure code is not transient, and that `on` of the step's retry
	// does not name the code.
	NotTransient NotRepeated = "not_transient"
)

// notRepeated returns why the last call of a node was not repeated, by the rules of
// machine.MayRepeat. It looks only at calls that do the step's work, not at undos. It returns
// "" if there is no reason to show.
func notRepeated(step *dsl.Step, s *dsl.Settings, n *model.Node) NotRepeated {
	if !step.Calls() || s == nil || n.Expanded || n.State != status.StepFailed && n.State != status.StepCaught {
		return ""
	}
	m := n.Fwd.Blamed()
	switch {
	case m.Kind == model.MissUnknown && !step.Do.Idempotent && !step.Do.ReadOnly && step.OnRerun != dsl.RerunUndoFirst:
		return NotIdempotent
	case s.Retry.MaxAttempts == 1:
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

// Because returns the reason as a text for people. The parameter `action` is the name of the action
// in the text. Because returns "" if there is no reason.
func (r NotRepeated) Because(action string) string {
	switch r {
	case NotIdempotent:
		return action + " is not idempotent and may have done its work"
	case NotPermanent:
		return "it would fail in the same way again"
	case NotOn:
		return "not_on names its code"
	case NotTransient:
		return "its code is not transient and on does not name it"
	}
	return ""
}
