package author

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/plan"
)

type planOptions struct {
	workflow     string
	values       []module.Value
	detailedExit bool
	agents       module.AgentFlags
}

// Plan returns the command `engine plan`, which shows what `engine apply` would do.
func Plan(a *cli.App) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan PATH",
		Short: "Show what apply would do",
		Long: `Shows the waves of steps that apply would run, how each is undone, and how long
it may take. It changes nothing.`,
		Args: cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return printPlan(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit 2 if there is work")
	module.ValueFlags(cmd, &o.values)
	o.agents.Add(cmd)
	return cmd
}

func printPlan(ctx context.Context, a *cli.App, path string, o planOptions) error {
	r, err := module.NewRequest(ctx, a, path, o.workflow, o.values, o.agents)
	if err != nil {
		return err
	}
	p, err := plan.New(ctx, a, r)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(p.JSON())
	} else {
		err = p.Write(a.Stdout)
	}
	if err == nil && o.detailedExit && p.HasWork() {
		return exit.Code(exit.Changes)
	}
	return err
}
