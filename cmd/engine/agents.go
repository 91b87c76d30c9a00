package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/agents"
)

func agentsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Show installed agents",
		RunE:  a.group,
	}
	var f agentFlags
	list := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List agents: which binary wins, and what it shadows",
		Args:  wants("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.keeper().agentsList(cmd.Context(), argument(args, "."), f)
		},
	}
	schema := &cobra.Command{
		Use:   "schema NAME [ACTION]",
		Short: "Print what an agent takes, gives and declares",
		Long: `Prints the schema of an agent, or of one of its actions, as tables; with --json as
JSON. The agent is looked for where a module in the working directory (--chdir)
would find it.`,
		Args: wants("NAME", "[ACTION]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.keeper().agentsSchema(cmd.Context(), args[0], argument(args[1:], ""), f)
		},
	}
	f.add(list)
	f.add(schema)
	cmd.AddCommand(list, schema)
	return cmd
}

// argument is the first argument, or a default.
func argument(args []string, otherwise string) string {
	if len(args) > 0 {
		return args[0]
	}
	return otherwise
}

// lockedCatalog is the catalogue of a module as its lock file limits it.
func (a keeper) lockedCatalog(dir string, f agentFlags) (*agents.Catalog, error) {
	lock, err := readLock(a.path(dir), dir)
	if err != nil {
		return nil, err
	}
	return a.opener().catalog(a.path(dir), lock, f)
}

func (a keeper) agentsList(ctx context.Context, dir string, f agentFlags) error {
	catalog, err := a.lockedCatalog(dir, f)
	if err != nil {
		return err
	}
	all, err := catalog.List(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"agents": agentsJSON(all)})
	}
	if len(all) == 0 {
		a.note("No agents are installed.")
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
	if err := table.Write(a.stdout); err != nil {
		return err
	}
	for _, l := range all {
		if l.Err != nil {
			a.show(diagnose(agentProblem(l)))
		}
	}
	return nil
}

func agentProblem(l agents.Listed) error {
	return failed("Agent \""+l.Name+"\" cannot be used", "%s", upperFirst(l.Err.Error())+"."+hintText(l.Err))
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

func (a keeper) agentsSchema(ctx context.Context, name, action string, f agentFlags) error {
	catalog, err := a.lockedCatalog(".", f)
	if err != nil {
		return err
	}
	b, err := catalog.Find(ctx, name, "")
	var missing *agents.NotFoundError
	switch {
	case errors.As(err, &missing):
		var names []string
		if all, listErr := catalog.List(ctx); listErr == nil {
			for _, l := range all {
				names = append(names, l.Name)
			}
		}
		return failed("Unknown agent", "%s.%s", upperFirst(err.Error()), diag.DidYouMean(name, names))
	case err != nil:
		return agentProblem(agents.Listed{Binary: agents.Binary{Found: agents.Found{Name: name}}, Err: err})
	}
	if _, ok := b.Schema.Actions[action]; action != "" && !ok {
		names := sortedNames(b.Schema.Actions)
		return failed("Unknown action", "Agent %s has no action %q.%s It has: %s.", name, action, diag.DidYouMean(action, names), strings.Join(names, ", "))
	}
	if !a.json {
		return a.planner().printSchema(b, action)
	}
	if action != "" {
		return a.printJSON(map[string]any{"name": b.Name, "version": b.Version, "action": action, "schema": b.Schema.Actions[action]})
	}
	return a.printJSON(map[string]any{
		"name": b.Name, "version": b.Version, "path": b.Path, "checksum": b.Checksum, "schema": b.Schema,
	})
}
