package author

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/agents"
)

// Agents returns the command `engine agents`, which shows the installed agents and their
// schemas.
func Agents(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show installed agents",
		RunE:  a.Group,
	}
	var f module.AgentFlags
	list := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List agents: which binaries are used, and which other binaries they hide",
		Args:  cli.Wants("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return agentsList(cmd.Context(), a, cli.Argument(args, "."), f)
		},
	}
	schema := &cobra.Command{
		Use:   "schema NAME [ACTION]",
		Short: "Print the schema of an agent: its inputs, outputs and error codes",
		Long: `Prints the schema of an agent, or of one of its actions, as tables; with --json as
JSON. The tables have the configuration, and for each action its inputs, outputs
and error codes. The command looks for the agent where a module in the working
directory (--chdir) would find it. If that module has an agent block of this name,
the command also prints the actions that the block declares.

The command engine schema prints the language itself.`,
		Args: cli.Wants("NAME", "[ACTION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return agentsSchema(cmd.Context(), a, args[0], cli.Argument(args[1:], ""), f)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeAgents(cmd.Context(), a, cmd, args, typed, f), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.Add(list)
	f.Add(schema)
	cmd.AddCommand(list, schema)
	return cmd
}

// lockedCatalog returns the catalogue of the agents that the module in dir may use. If the module
// has a lock file, only the locked agents may be used.
func lockedCatalog(a *cli.App, dir string, f module.AgentFlags) (*agents.Catalog, error) {
	lock, err := module.ReadLock(a.Path(dir), dir)
	if err != nil {
		return nil, err
	}
	return module.Catalog(a, a.Path(dir), lock, f)
}

func agentsList(ctx context.Context, a *cli.App, dir string, f module.AgentFlags) error {
	catalog, err := lockedCatalog(a, dir, f)
	if err != nil {
		return err
	}
	all, err := catalog.List(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"agents": agentsJSON(all)})
	}
	if len(all) == 0 {
		a.Note("No agents are installed.")
		return nil
	}
	table := render.Table{Head: []string{"AGENT", "VERSION", "SOURCE", "PATH"}}
	for _, l := range all {
		version := l.Version
		if l.Err != nil {
			version = "unusable"
		}
		table.Add(l.Name, version, string(l.Source), l.Path)
		for _, s := range l.Shadows {
			table.Add("", s.Version, string(s.Source), "shadowed: "+s.Path)
		}
		for _, s := range l.Unlocked {
			table.Add("", s.Version, string(s.Source), "not locked: "+s.Path)
		}
	}
	if err := table.Write(a.Stdout); err != nil {
		return err
	}
	for _, l := range all {
		if l.Err != nil {
			a.Show(cli.Diagnose(agentProblem(l)))
		}
	}
	return nil
}

func agentProblem(l agents.Listed) error {
	return cli.Failed("Agent \""+l.Name+"\" cannot be used", "%s", words.UpperFirst(l.Err.Error())+"."+module.Hint(l.Err))
}

func agentsJSON(all []agents.Listed) []map[string]any {
	out := make([]map[string]any, len(all))
	for i, l := range all {
		m := map[string]any{
			"name": l.Name, "version": l.Version, "source": string(l.Source), "path": l.Path, "checksum": l.Checksum,
		}
		if l.Err != nil {
			m["error"] = l.Err.Error()
		}
		shadows := []map[string]any{}
		for _, s := range l.Shadows {
			shadows = append(shadows, map[string]any{"version": s.Version, "source": string(s.Source), "path": s.Path})
		}
		m["shadows"] = shadows
		if len(l.Unlocked) > 0 {
			unlocked := []map[string]any{}
			for _, s := range l.Unlocked {
				unlocked = append(unlocked, map[string]any{"version": s.Version, "source": string(s.Source), "path": s.Path})
			}
			m["unlocked"] = unlocked
		}
		out[i] = m
	}
	return out
}

func agentsSchema(ctx context.Context, a *cli.App, name, action string, f module.AgentFlags) error {
	catalog, err := lockedCatalog(a, ".", f)
	if err != nil {
		return err
	}
	b, err := module.Agent(ctx, a, ".", name, catalog)
	var missing *agents.NotFoundError
	switch {
	case errors.As(err, &missing):
		var names []string
		if all, listErr := catalog.List(ctx); listErr == nil {
			for _, l := range all {
				names = append(names, l.Name)
			}
		}
		used := module.Plugins(a, ".")
		// Do not suggest the name that the user typed, even if the module has an agent of this
		// name.
		delete(used, name)
		names = append(names, words.Sorted(used)...)
		return cli.Failed("Unknown agent", "%s.%s", words.UpperFirst(err.Error()), diag.DidYouMean(name, names))
	case err != nil:
		return agentProblem(agents.Listed{Binary: agents.Binary{Found: agents.Found{Name: name}}, Err: err})
	}
	if _, ok := b.Schema.Actions[action]; action != "" && !ok {
		names := words.Sorted(b.Schema.Actions)
		return cli.Failed("Unknown action", "Agent %s has no action %q.%s It has: %s.", name, action, diag.DidYouMean(action, names), strings.Join(names, ", "))
	}
	if !a.JSON {
		return printSchema(a, b, action)
	}
	if action != "" {
		return a.PrintJSON(map[string]any{"name": b.Name, "version": b.Version, "action": action, "schema": b.Schema.Actions[action]})
	}
	return a.PrintJSON(map[string]any{
		"name": b.Name, "version": b.Version, "path": b.Path, "checksum": b.Checksum, "schema": b.Schema,
	})
}
