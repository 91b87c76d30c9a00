package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// These are the codes of failures that this package itself reports.
const (
	CodeDeadlineExceeded = "deadline_exceeded" // the deadline of a step, an undo or the run has passed
	CodeCancelled        = "cancelled"         // the run was cancelled
	// Several engines, one after the other, ended while they read or decided the run.
	CodeEngineLost = "engine_lost"
	CodeExpression = "expression_error" // an expression could not be evaluated
	// An undo is impossible, because its input depends on an outcome that is unknown.
	CodeOutcomeUnknown = "outcome_unknown"
	CodeLimit          = "limit_exceeded" // a step would have exceeded a ceiling of its run
	// A loop has made all its iterations, and `until` was never true.
	CodeMaxIterations = "max_iterations"
)

// expressionMiss returns the failure of a step if an expression cannot be evaluated. what
// names the expression in the message.
func expressionMiss(what string, err error) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeExpression, Message: what + ": " + err.Error()}
}

// limitMiss returns the failure of a step that was not started, because the run would exceed a
// ceiling. name is the ceiling's name for --limit. The step is never repeated. If an operator
// raises the ceiling later, the step does not start again. So the advice in the message is
// only for the next run.
func limitMiss(name, format string, args ...any) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeLimit, Message: fmt.Sprintf(format, args...) + " (--limit " + name + "=N sets another)"}
}

// noTime returns the failure of a step whose deadline leaves no time for another attempt. The
// failure has the same code as a passed deadline, so that users find both cases under one
// code. Its message contains the code and the message of last, the failure of the last
// attempt.
func noTime(last model.Miss) model.Miss {
	message := "the deadline leaves no time for another attempt; the last one ended with " + last.Code
	if last.Message != "" {
		message += ": " + last.Message
	}
	return model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: message}
}

// LostFailure returns the failure of a run that is parked because engines died while they
// read or decided it.
func LostFailure(r *model.Run) dsl.Failure {
	return dsl.Failure{Code: CodeEngineLost, Message: r.LostWhy}
}

// maxLookups is the number of lookups that are tried. If none of them finds the outcome, the
// run continues without knowing it.
const maxLookups = 3

// hopeless reports whether only a person can deal with the effect that a node may have. That
// is the case if neither a lookup nor an undo can help.
func hopeless(wf *dsl.Workflow, n *model.Node) bool {
	step := wf.Steps[n.Step]
	if n.Present() != status.EffectMaybe || n.Known || step.NoUndo || step.Undo == nil {
		return false
	}
	if step.Undo.Do.ByKey || !step.Undo.UsesSelf || step.Do.Idempotent {
		return false
	}
	return !step.Do.Lookup || n.Fwd.Lookups >= maxLookups
}
