// Package aspects helps to compare two definitions. It has the names of the aspects of a step. It
// also gives the values of a run's variables to the variables of a workflow in another definition.
package aspects

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// Names that Step.Aspects gives to the aspects of a step. Each other aspect has the name of an
// attribute or of an inner block of the step.
const (
	Kind   = noun.AspectKind
	Action = noun.AspectAction
	Undo   = noun.AspectUndo
)

// Rebind gives values to the variables of the workflow w, for a run that is moved to a definition
// with this workflow. The parameter `vars` holds the values of the run's variables. Rebind leaves
// out a variable that w does not declare. A variable of w that is not in `vars` gets its default.
// Rebind reports an error if such a variable has no default, or if a value does not fit its
// variable.
func Rebind(w *noun.Workflow, vars value.Value) (value.Value, diag.Diagnostics) {
	return link.Rebind(w, vars)
}
