package engine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"

	"github.com/saga-engine/engine/engine/invoke"
)

// AgentSpecs returns, by name of the agent block, the agents that a run of the
// workflow with these variables may call: what a Checker can look at before
// the run is submitted. It fails where Submit would.
func AgentSpecs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	return (&owner.SpecCache{}).Specs(wf, vars)
}
