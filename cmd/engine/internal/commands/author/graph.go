package author

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/graph"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/dsl/diag"
)

type graphOptions struct {
	workflow, format string
	undo             bool
	agents           module.AgentFlags
}

// Graph returns the command `engine graph`, which prints the graph of a workflow's steps.
func Graph(a *cli.App) *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph PATH",
		Short: "Print the dependency graph, or the undo graph",
		Long: `Prints the graph of a workflow's steps. An edge leads from a step to a step that
waits for it. With --undo an edge leads from an undo to an undo that waits for it.
Steps that are not undone are left out: edges then lead past them.`,
		Args: cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return printGraph(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.StringVar(&o.format, "format", "dot", "dot, mermaid or json")
	f.BoolVar(&o.undo, "undo", false, "the undo graph")
	o.agents.Add(cmd)
	return cmd
}

func printGraph(ctx context.Context, a *cli.App, path string, o graphOptions) error {
	if a.JSON {
		o.format = "json"
	}
	draw := map[string]func(graph.Graph) string{"dot": graph.Graph.DOT, "mermaid": graph.Graph.Mermaid}[o.format]
	if draw == nil && o.format != "json" {
		return cli.Failed("Invalid flag", "--format must be dot, mermaid or json, not %q.%s", o.format,
			diag.DidYouMean(o.format, []string{"dot", "mermaid", "json"}))
	}
	l, err := module.Link(ctx, a, path, o.agents)
	if err != nil {
		return err
	}
	wf, err := module.Choose(l.Def, o.workflow)
	if err != nil {
		return err
	}
	g := graph.New(wf, o.undo)
	if o.format == "json" {
		return a.PrintJSON(map[string]any{"workflow": g.Workflow, "undo": o.undo, "nodes": g.Nodes, "edges": g.Edges})
	}
	return a.Print("%s", draw(g))
}
