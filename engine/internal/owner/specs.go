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

// maxSpecs is the largest number of results in a SpecCache. A full cache is emptied before
// the next result is added.
const maxSpecs = 1024

// A SpecCache caches the results of its method Specs. Most runs of a workflow have the same
// agents, because the configuration of an agent depends on deployment variables only. A
// SpecCache is safe for concurrent use.
type SpecCache struct {
	mu   sync.Mutex // protects the field below
	sets map[specsID]map[string]invoke.AgentSpec
}

// A specsID is the key of a result in the cache. It contains everything on which the agents
// of a run depend.
type specsID struct {
	flow   *dsl.Workflow
	config string // configurations of all agents, as appendConfig encodes them
}

// Specs evaluates the configuration of every agent that the steps of a workflow call. It returns a
// map from the name of each agent to its spec. The parameter `vars` holds the run's variables. A
// configuration depends on deployment variables only. So an error appears before the run starts,
// and never later. Callers share the map and must not change it.
func (c *SpecCache) Specs(wf *dsl.Workflow, vars dsl.Value) (map[string]invoke.AgentSpec, error) {
	agents := map[string]*dsl.Agent{}
	names := agentNames(wf, agents)
	configs := make([]dsl.Value, len(names))
	id := specsID{flow: wf}
	for i, name := range names {
		agent := agents[name]
		if agent == nil {
			return nil, fmt.Errorf("workflow %q calls agent %q, which is not in its definition", wf.Name, name)
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
		spec := invoke.AgentSpec{Agent: agents[name], Config: configs[i]}
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

// SpecOf evaluates the configuration of one agent with the variables of a run.
func SpecOf(agent *dsl.Agent, vars dsl.Value) (invoke.AgentSpec, error) {
	spec := invoke.AgentSpec{Agent: agent}
	if agent.Config != nil {
		var err error
		if spec.Config, err = agent.Config(&dsl.Scope{Vars: vars}); err != nil {
			return spec, fmt.Errorf("evaluate the configuration of agent %q: %w", agent.Name, err)
		}
	}
	spec.Key = specKey(spec)
	return spec, nil
}

// appendConfig appends to b a text that identifies the configuration v. Different
// configurations have different texts.
func appendConfig(b []byte, v dsl.Value) []byte {
	b = fmt.Appendf(b, "%d:%s", len(v.JSON()), v.JSON())
	if len(v.Sensitive())+len(v.Secrets()) > 0 {
		b = fmt.Appendf(b, "%q%q", v.Sensitive(), v.Secrets())
	}
	return append(b, 0)
}

// agentNames returns the names of the agents that the steps of a workflow and their undos call, and
// the names of the agents of its child runs. An engine works on a run only if it also has the
// agents of the child runs, because this engine submits the child runs. agentNames returns each
// name once. It puts each agent into the map in the parameter `agents`.
func agentNames(wf *dsl.Workflow, agents map[string]*dsl.Agent) []string {
	var names []string
	seen := map[*dsl.Workflow]bool{}
	var visit func(wf *dsl.Workflow)
	visit = func(wf *dsl.Workflow) {
		if seen[wf] {
			return
		}
		seen[wf] = true
		add := func(a *dsl.Action) {
			if a == nil || a.Agent == "" || a.Agent == wf.ChildAgent() { // a step without a call has no agent; calls of ChildAgent go to the engine itself
				return
			}
			if _, known := agents[a.Agent]; !known {
				names, agents[a.Agent] = append(names, a.Agent), wf.Agents[a.Agent]
			}
		}
		for _, step := range wf.Steps {
			add(step.Do)
			if step.Undo != nil {
				add(step.Undo.Do)
			}
			if step.Child != nil {
				visit(step.Child.Workflow)
			}
		}
	}
	visit(wf)
	return names
}

// specKey computes the key of an agent from its definition and its configuration. Agents
// with equal keys share processes.
func specKey(spec invoke.AgentSpec) string {
	h := sha256.New()
	h.Write(spec.Config.JSON())
	// Everything that affects a process, its limits or its circuit breaker is part of the
	// key. Two agents that differ in one of these values must not share a process.
	rest, err := json.Marshal(struct {
		Secrets                   []dsl.Secret
		Env                       []string
		Instances, MaxConcurrency int
		Breaker                   dsl.Breaker
		Rate                      string `json:",omitempty"`
	}{spec.Config.Secrets(), spec.Env, spec.Instances, spec.MaxConcurrency, spec.Breaker, spec.RateLimit.String()})
	if err != nil { // Marshal fails only if the ratio of the circuit breaker is not a finite number
		rest = []byte(err.Error())
	}
	h.Write(rest)
	return strings.Join([]string{spec.Name, spec.Plugin, spec.Version, spec.Checksum, hex.EncodeToString(h.Sum(nil)[:8])}, "/")
}
