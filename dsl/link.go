package dsl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// An AgentUse is an agent that a module uses: declared by a block, or implied
// by an action that names it.
type AgentUse struct {
	Name       string     // of the block, as in agent.NAME.ACTION
	Plugin     string     // of the binary engine-agent-PLUGIN
	Constraint string     // on its version; "" = any
	Where      diag.Range // the plugin argument, else the block, else the first use
	// Similar is, of an agent that is only implied, the declared one whose name
	// is most like it: perhaps that was meant. "" = none is.
	Similar string
}

// Agents returns the agents the module uses, by name.
func (mod *Module) Agents() []AgentUse {
	m := mod.m
	out := make([]AgentUse, 0, len(m.Agents))
	var declared []string
	for _, n := range sorted.Keys(m.Agents) {
		if !m.Agents[n].Implied {
			declared = append(declared, n)
		}
	}
	for _, n := range sorted.Keys(m.Agents) {
		a := m.Agents[n]
		use := AgentUse{Name: a.Name, Plugin: a.Plugin, Constraint: a.Constraint, Where: report.Range(a.PluginAt)}
		if a.Implied {
			use.Similar = diag.Nearest(n, declared)
		}
		out = append(out, use)
	}
	return out
}

// Link checks a module against the schemas of its agents, by name of the
// agent block, and makes a definition of it. The definition is nil if there
// are errors, or were any in Parse; the diagnostics do not repeat those.
func Link(m *Module, agents map[string]AgentBinary) (*Definition, diag.Diagnostics) {
	r := &report.Reporter{Sources: m.m.Sources, Places: m.m.Places}
	workflows, diags := link.Workflows(m.m, agents, r)
	if workflows == nil {
		return nil, diags
	}
	def := &Definition{workflows: map[string]*Workflow{}, module: m.m}
	for _, wf := range workflows {
		def.workflows[wf.Name] = wf
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
