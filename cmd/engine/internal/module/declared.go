package module

import (
	"context"
	"maps"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
)

// Agent returns the binary of the agent with the name in the parameter `name`. The parameter
// `given` is the path of a module. If the module has an agent block with this name, the returned
// schema also has the actions that the block declares. If the module has no such block, or cannot
// be read, `name` is the name of a plugin.
func Agent(ctx context.Context, a *cli.App, given, name string, catalog *agents.Catalog) (agents.Binary, error) {
	if m, err := Parse(a, given); err == nil {
		for _, use := range m.parsed.Agents() {
			if use.Name == name {
				return m.agent(ctx, use, catalog)
			}
		}
	}
	return catalog.Find(ctx, name, "")
}

// Plugins returns the plugin of each agent that a module uses, by the name of the agent. The
// parameter `given` is the path of the module. If the module cannot be read, the result is nil.
func Plugins(a *cli.App, given string) map[string]string {
	m, err := Parse(a, given)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, use := range m.parsed.Agents() {
		out[use.Name] = use.Plugin
	}
	return out
}

func (m *Module) agent(ctx context.Context, use dsl.AgentUse, catalog *agents.Catalog) (agents.Binary, error) {
	b, err := catalog.Find(ctx, use.Plugin, "")
	if err != nil {
		return b, err
	}
	declared := m.parsed.DeclaredActions(map[string]dsl.AgentBinary{use.Name: b.Pin()})[use.Name]
	b.Name, b.Schema.Actions = use.Name, maps.Clone(b.Schema.Actions)
	maps.Copy(b.Schema.Actions, declared)
	return b, nil
}
