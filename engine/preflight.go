package engine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"

	"github.com/saga-engine/engine/engine/invoke"
)

// AgentSpecs returns the agents that a run may call if it is submitted with this workflow and
// these variables. The keys of the map are the names of the agent blocks. A Checker can check
// these agents before the run is submitted. AgentSpecs returns an error for variables with
// which Submit would fail.
func AgentSpecs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	return (&owner.SpecCache{}).Specs(wf, vars)
}
