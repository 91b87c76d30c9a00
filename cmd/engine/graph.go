package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl/diag"
)

type graphOptions struct {
	workflow, format string
	undo             bool
	agents           agentFlags
}

func graphCommand(a *app) *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph PATH",
		Short: "Print the dependency graph, or the undo graph",
		Long: `Prints the graph of a workflow's steps. An edge leads from a step to one that
waits for it. With --undo an edge leads from an undo to one that waits for it;
steps that are not undone pass the order through and are left out.`,
		Args: wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.planner().graph(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.StringVar(&o.format, "format", "dot", "dot, mermaid or json")
	f.BoolVar(&o.undo, "undo", false, "the undo graph")
	o.agents.add(cmd)
	return cmd
}

func (a planner) graph(ctx context.Context, path string, o graphOptions) error {
	if a.json {
		o.format = "json"
	}
	draw := map[string]func(graph) string{"dot": graph.dot, "mermaid": graph.mermaid}[o.format]
	if draw == nil && o.format != "json" {
		return failed("Invalid flag", "--format must be dot, mermaid or json, not %q.%s", o.format,
			diag.DidYouMean(o.format, []string{"dot", "mermaid", "json"}))
	}
	l, err := a.opener().link(ctx, path, o.agents)
	if err != nil {
		return err
	}
	wf, err := choose(l.def, o.workflow)
	if err != nil {
		return err
	}
	g := newGraph(wf, o.undo)
	if o.format == "json" {
		return a.printJSON(map[string]any{"workflow": g.Workflow, "undo": o.undo, "nodes": g.Nodes, "edges": g.Edges})
	}
	return a.print("%s", draw(g))
}
