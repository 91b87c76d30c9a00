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
