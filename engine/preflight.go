package engine

import (
	"maps"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/owner"

	"github.com/saga-engine/engine/engine/invoke"
)

// AgentSpecs returns the agents that a run with this workflow and these variables may call. It
// includes the agents that the notifications of the run may call. The keys of the map are the names
// of the agent blocks. A Checker can check these agents before the run is submitted. AgentSpecs
// returns an error for variables with which Submit would fail.
func AgentSpecs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	cache := &owner.SpecCache{}
	specs, err := cache.Specs(wf, vars)
	if err != nil || len(wf.Notify) == 0 {
		return specs, err
	}
	all := maps.Clone(specs)
	for _, n := range wf.Notify {
		more, err := cache.Specs(n.Flow, vars)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, more)
	}
	return all, nil
}
