package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Codes of failures that the machine itself reports.
const (
	CodeDeadlineExceeded = "deadline_exceeded" // a step's, an undo's or the run's deadline passed
	CodeCancelled        = "cancelled"         // the run was cancelled
	CodeEngineLost       = "engine_lost"       // engines ended one after the other while they had the run in hand
	CodeExpression       = "expression_error"  // an expression could not be evaluated
	CodeOutcomeUnknown   = "outcome_unknown"   // an undo is impossible because nobody knows what there is to undo
	CodeLimit            = "limit_exceeded"    // a step was not started because its run would then exceed a ceiling
)

// expressionMiss is the failure of a step with an expression that cannot be evaluated.
func expressionMiss(what string, err error) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeExpression, Message: what + ": " + err.Error()}
}

// limitMiss is the failure of a step that was not begun, or not once more: like
// that of an expression, it is never repeated. It says which ceiling a step would pass. A ceiling that is raised does
// not bring back what has failed: the message is for the next run.
func limitMiss(name, format string, args ...any) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeLimit, Message: fmt.Sprintf(format, args...) + " (--limit " + name + "=N sets another)"}
}

// noTime is the failure of a step whose deadline leaves no time for another
// attempt. It has the code of a deadline, so that one code covers everything that
// a deadline ends. The message keeps the code and message of the last attempt.
func noTime(last model.Miss) model.Miss {
	message := "the deadline leaves no time for another attempt; the last one ended with " + last.Code
	if last.Message != "" {
		message += ": " + last.Message
	}
	return model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: message}
}

// LostFailure is why the run is parked, as people see it.
func LostFailure(r *model.Run) dsl.Failure {
	return dsl.Failure{Code: CodeEngineLost, Message: r.LostWhy}
}

// maxLookups is how often a lookup is tried. After that the run continues without its
// answer.
const maxLookups = 3

// hopeless reports whether neither a lookup nor an undo can deal with the effect that a
// node may have. Then only a person can.
func hopeless(wf *dsl.Workflow, n *model.Node) bool {
	step := wf.Steps[n.Step]
	if n.Effect() != status.EffectMaybe || n.Known || step.NoUndo || step.Undo == nil {
		return false
	}
	if step.Undo.Do.ByKey || !step.Undo.UsesSelf || step.Do.Idempotent {
		return false
	}
	return !step.Do.Lookup || n.Fwd.Lookups >= maxLookups
}
