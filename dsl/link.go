package dsl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/sdk/schema"
)

// An AgentUse is an agent that a module uses. The module, or a library of the module, declares the
// agent with an agent block. Without a block, the agent is implied: a step, an undo or a notify
// block names the agent in the argument `action`.
type AgentUse struct {
	Name       string // name of the block, as in agent.NAME.ACTION; LIBRARY.NAME for an agent of a library
	Plugin     string // PLUGIN in engine-agent-PLUGIN, the name of the binary
	Constraint string // condition for the version; "" = any version
	// Path of the binary, or of its directory, from the argument `source`; "" = the binary is where
	// agents are installed. A path that begins with a dot is relative to the directory of the
	// module.
	Source string
	Where  diag.Range // position of the argument `plugin`, else of the agent block, else of an action that names the agent
	// Name of the declared agent that is most similar to the field Name; only if the agent is
	// implied. Perhaps the author of the module meant this agent. "" = no declared agent is
	// similar.
	Similar string
}

// Agents returns the agents that the module uses, sorted by name.
func (mod *Module) Agents() []AgentUse {
	m := mod.m
	out := make([]AgentUse, 0, len(m.Agents))
	var declared []string
	for _, n := range sorted.Keys(m.Agents) {
		if a := m.Agents[n]; !a.Implied && a.Library == nil {
			declared = append(declared, n)
		}
	}
	for _, n := range sorted.Keys(m.Agents) {
		a := m.Agents[n]
		use := AgentUse{Name: a.Name, Plugin: a.Plugin, Constraint: a.Constraint, Source: a.Source, Where: report.Range(a.PluginAt)}
		if a.Implied {
			use.Similar = diag.Nearest(n, declared)
		}
		out = append(out, use)
	}
	return out
}

// DeclaredActions returns the schemas of the declared actions, which are the action blocks of the
// module's agents. In the result, the first key is the name of the agent block, and the second key
// is the name of the action. Actions with errors are not in the result. The keys of the map named
// `agents` are the names of the agent blocks.
func (mod *Module) DeclaredActions(agents map[string]AgentBinary) map[string]map[string]schema.Action {
	return link.DeclaredSchemas(mod.m, agents)
}

// Link checks a module against the schemas of its agents and returns the definition
// of the module. The keys of the map named `agents` are the names of the agent blocks.
// The definition is nil if Link finds an error, or if Parse has found an error. The
// diagnostics do not repeat the errors of Parse.
func Link(m *Module, agents map[string]AgentBinary) (*Definition, diag.Diagnostics) {
	r := &report.Reporter{Sources: m.m.Sources, Blocks: m.m.Blocks}
	workflows, diags := link.Workflows(m.m, agents, r)
	if workflows == nil {
		return nil, diags
	}
	def := &Definition{workflows: map[string]*Workflow{}, module: m.m}
	for _, wf := range workflows {
		def.workflows[wf.Name] = wf
		for _, n := range wf.Notify {
			def.workflows[n.Flow.Name] = n.Flow
		}
		if wf.Inner {
			def.inner = append(def.inner, wf.Name)
			continue
		}
		def.names = append(def.names, wf.Name)
	}
	if err := def.seal(agents); err != nil {
		r.Errorf(hcl.Range{}, "Cannot store the definition", "%s.", err)
		return nil, r.Finish()
	}
	for _, wf := range def.workflows {
		wf.Digest = def.digest
	}
	def.Warnings = diags
	return def, diags
}
