// Package parts has what only a comparison of two definitions needs: the names of the parts of a
// step, and the values of a run's variables in another definition.
package parts

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// Names of parts of a step in the result of Step.Parts.
const (
	Kind   = noun.PartKind
	Action = noun.PartAction
	Undo   = noun.PartUndo
)

// Rebind gives the values of a run's variables to the variables of another workflow, for a run that
// is moved to another definition. A variable that the other workflow does not declare is left out.
// A variable without a value gets its default. If it has no default, or a value does not fit,
// Rebind reports an error.
func Rebind(w *noun.Workflow, vars value.Value) (value.Value, diag.Diagnostics) {
	return link.Rebind(w, vars)
}
