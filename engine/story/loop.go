package story

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// IterationText returns a text such as "iteration 7 of at most 80". The parameter `most` is the
// largest number of iterations; 0 = no limit, or it is not known.
func IterationText(number, most int) string {
	if most == 0 {
		return fmt.Sprintf("iteration %d", number)
	}
	return fmt.Sprintf("iteration %d of at most %d", number, most)
}

// loops reports whether the step of a node has a repeat block. The for_each step itself makes no
// iterations: its instances do.
func loops(wf *dsl.Workflow, n *model.Node) bool {
	if wf == nil || n.Of() >= len(wf.Steps) || wf.Steps[n.Step].Repeat == nil {
		return false
	}
	return n.Item || wf.Steps[n.Step].ForEach == nil
}

// mostIterations returns the largest number of iterations of a node. It returns 0 if there is no
// limit, or if the step's settings cannot be evaluated with `scope`, for example because they
// depend on results of steps.
func mostIterations(wf *dsl.Workflow, n *model.Node, scope *dsl.Scope) int {
	s, err := wf.Steps[n.Step].Settings(scope)
	if err != nil {
		return 0
	}
	return s.MaxIterations
}
