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

// Rebind gives the values of a run's variables to the variables of another workflow, for a run that
// is moved to another definition. A variable that the other workflow does not declare is left out.
// A variable without a value gets its default. Rebind reports an error if such a variable has no
// default, or if a value does not fit its variable.
func Rebind(w *noun.Workflow, vars value.Value) (value.Value, diag.Diagnostics) {
	return link.Rebind(w, vars)
}
