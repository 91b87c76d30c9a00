package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
)

// maxSpecs is how many sets of agents a SpecCache keeps.
const maxSpecs = 1024

// SpecCache caches the agents that Specs computes for runs. Most runs of a workflow have the
// same agents, because the configuration of an agent depends on deployment variables only.
// SpecCache is safe for concurrent use.
type SpecCache struct {
	mu   sync.Mutex // protects following field
	sets map[specsID]map[string]invoke.AgentSpec
}

// specsID identifies everything on which the agents of a run depend.
type specsID struct {
	flow   *dsl.Workflow
	config string // for each agent: its configuration as JSON, and which parts are sensitive or secret
}

// Specs evaluates the configuration of every agent that a workflow's steps call. The
// configuration depends on deployment variables only. So an error is found before the run
// starts, and it cannot appear later. Callers share the result and must not change it.
func (c *SpecCache) Specs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	names := agentNames(wf)
	configs := make([]dsl.Value, len(names))
	id := specsID{flow: wf}
	for i, name := range names {
		agent := wf.Agents[name]
		if agent == nil {
			return nil, fmt.Errorf("workflow %q calls agent %q, which its definition does not hold", wf.Name, name)
		}
		if agent.Config == nil {
			continue
		}
		var err error
		if configs[i], err = agent.Config(&dsl.Scope{Vars: vars}); err != nil {
			return nil, fmt.Errorf("evaluate the configuration of agent %q: %w", name, err)
		}
		id.config += string(appendConfig(nil, configs[i]))
	}
	c.mu.Lock()
	known := c.sets[id]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	specs := make(map[string]invoke.AgentSpec, len(names))
	for i, name := range names {
		spec := invoke.AgentSpec{Agent: wf.Agents[name], Config: configs[i]}
		spec.Key = specKey(spec)
		specs[name] = spec
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets == nil || len(c.sets) >= maxSpecs {
		c.sets = map[specsID]map[string]invoke.AgentSpec{}
	}
	c.sets[id] = specs
	return specs, nil
}

// appendConfig appends a text that identifies a configuration: different configurations
// give different texts.
func appendConfig(b []byte, v dsl.Value) []byte {
	b = fmt.Appendf(b, "%d:%s", len(v.JSON()), v.JSON())
	if len(v.Sensitive())+len(v.Secrets()) > 0 {
		b = fmt.Appendf(b, "%q%q", v.Sensitive(), v.Secrets())
	}
	return append(b, 0)
}

// agentNames returns the agents that a workflow's steps call, each once.
func agentNames(wf *dsl.Workflow) []string {
	var names []string
	add := func(a *dsl.Action) {
		if a == nil || a.Agent == "" { // a step without a call needs no agent
			return
		}
		for _, name := range names {
			if name == a.Agent {
				return
			}
		}
		names = append(names, a.Agent)
	}
	for _, step := range wf.Steps {
		add(step.Do)
		if step.Undo != nil {
			add(step.Undo.Do)
		}
	}
	return names
}

// specKey computes the key of an agent from its definition and its configuration. Agents
// with equal keys share processes.
func specKey(spec invoke.AgentSpec) string {
	h := sha256.New()
	h.Write(spec.Config.JSON())
	// Everything that affects a process, its limits or its circuit breaker is part of the
	// key. Two definitions that differ there must not share a process.
	rest, err := json.Marshal(struct {
		Secrets                   []dsl.Secret
		Env                       []string
		Instances, MaxConcurrency int
		Breaker                   dsl.Breaker
	}{spec.Config.Secrets(), spec.Env, spec.Instances, spec.MaxConcurrency, spec.Breaker})
	if err != nil { // only possible if the ratio of the circuit breaker is not a finite number
		rest = []byte(err.Error())
	}
	h.Write(rest)
	return strings.Join([]string{spec.Name, spec.Plugin, spec.Version, spec.Checksum, hex.EncodeToString(h.Sum(nil)[:8])}, "/")
}
