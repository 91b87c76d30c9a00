package noun

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// Lines evaluates and completes expressions that are not part of a definition, such as the lines
// of the console. Package link implements it.
type Lines interface {
	Evaluate(text string, s *eval.Scope) (value.Value, diag.Diagnostics)
	Complete(text string, inRun bool) (from int, words []string)
}

// SetLines sets the Lines of a workflow.
func SetLines(w *Workflow, l Lines) { w.lines = l }

// Evaluate evaluates an expression that is not part of the definition, such as a line of the
// console. The expression may refer to the variables and locals of the workflow. If s.Step is not
// nil, it may also refer to steps and to run.*. An expression has the same limits as one in a file.
// Evaluate returns a value or errors. The texts of the errors contain no sensitive text.
func (w *Workflow) Evaluate(text string, s *eval.Scope) (value.Value, diag.Diagnostics) {
	return w.lines.Evaluate(text, s)
}

// Complete returns the words that may replace text[from:], the unfinished reference or function
// name at the end of the text. The words are sorted. inRun says whether the expression may refer to
// steps and to run.*.
func (w *Workflow) Complete(text string, inRun bool) (from int, words []string) {
	return w.lines.Complete(text, inRun)
}
