package module

import (
	"context"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk/schema"
)

// Declared returns the plugin of an agent, and the schemas of the actions that the agent's block
// declares in the module at PATH. If the module has no such agent, or cannot be read, the agent is
// the plugin itself.
func Declared(ctx context.Context, a *cli.App, given, name string, catalog *agents.Catalog) (plugin string, actions map[string]schema.Action) {
	m, err := Parse(a, given)
	if err != nil {
		return name, nil
	}
	for _, use := range m.parsed.Agents() {
		if use.Name != name {
			continue
		}
		b, err := catalog.Find(ctx, use.Plugin, "")
		if err != nil {
			return use.Plugin, nil
		}
		return use.Plugin, dsl.DeclaredActions(m.parsed, map[string]dsl.AgentBinary{name: b.Pin()})[name]
	}
	return name, nil
}
