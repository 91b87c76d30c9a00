package module

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
)

// AgentFlags name additional directories in which to look for agents.
type AgentFlags struct {
	pluginDirs []string
	Modules    []string // directories of further modules, where the command also looks for agents
}

// Add adds --plugin-dir to a command.
func (f *AgentFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.pluginDirs, "plugin-dir", nil, "directory of agents, searched first; may be repeated")
}

// Catalog returns the catalogue of the agents that the module in dir may use. The parameter
// `dir` is "" if the agents belong to no module. The parameter `locked` is the module's lock
// file; nil = there is none.
func Catalog(a *cli.App, dir string, locked *lock.Lock, f AgentFlags) (*agents.Catalog, error) {
	search, diags := agents.DefaultSearch(a.Env)
	if diags.HasErrors() {
		return nil, cli.Problems(diags)
	}
	search.Modules = f.Modules
	if dir != "" {
		search.Modules = append([]string{dir}, f.Modules...)
	}
	for _, d := range f.pluginDirs {
		search.PluginDirs = append(search.PluginDirs, a.Path(d))
	}
	return agents.NewCatalog(agents.CatalogOptions{Search: search, Lock: locked, CacheDir: agents.CacheDir(a.Env), Logger: a.Logger()}), nil
}
