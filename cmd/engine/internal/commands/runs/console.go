package runs

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/console"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
)

// Console returns the command `engine console`, which evaluates expressions line by line.
func Console(a *cli.App) *cobra.Command {
	var o console.Options
	cmd := &cobra.Command{
		Use:   "console PATH",
		Short: "Evaluate expressions line by line, also with the values of a run",
		Long: `Evaluates one expression for each line of standard input and prints its value.
Without --run an expression may use var.*, local.* and functions. With --run it may
also use step.* and run.*, as they are in that run, which may be finished or not.
The run's own definition counts, and PATH only says where the state is. Nothing
is changed. Sensitive values are shown as (sensitive).

On a terminal the arrow keys find earlier lines, Tab completes names, and Ctrl-D or
exit leaves. From a pipe all lines are evaluated; errors go to standard error, and
the exit code is 1 if a line had one.

  echo 'local.total * 2' | engine console . --var order_id=o-7
  engine console . --run o-7`,
		Args: cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return console.Run(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "take the values from this run, named by its id or its unique key")
	f.StringVar(&o.Workflow, "workflow", "", "which workflow, if the module has several")
	module.ValueFlags(cmd, &o.Values)
	o.Agents.Add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("run", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeRuns(a, cmd, nil, typed)
	}) // RegisterFlagCompletionFunc cannot fail here: the flag "run" exists
	return cmd
}
