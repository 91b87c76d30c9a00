package machine

import "github.com/saga-engine/engine/dsl"

// Scope returns the values that expressions can read in this state: var.*, run.* and step.*. They
// are the values that the expressions of the workflow itself would read now. The Scope uses caches
// of the state, so only one goroutine at a time may use either of them.
func (s *State) Scope(wf *dsl.Workflow) *dsl.Scope {
	d := &decider{}
	d.open(wf, s, Input{})
	return d.scope(nil)
}
