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
also use step.* and run.*, with the values of that run. The run may be open or ended.
The command uses the definition of the run, and PATH only says where the state is.
The command changes nothing. Sensitive values are shown as (sensitive).

On a terminal the arrow keys find earlier lines, and Tab completes names. Ctrl-D or
the line exit ends the command. If the input is a pipe, all lines are evaluated,
errors go to standard error, and the exit code is 1 if a line had an error.

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
