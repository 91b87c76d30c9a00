package runs

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/migrate"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
)

// Migrate returns the command `engine migrate`, which moves open runs to another definition.
func Migrate(a *cli.App) *cobra.Command {
	var o migrate.Options
	cmd := &cobra.Command{
		Use:   "migrate RUN --to PATH",
		Short: "Move an open run to another definition of its workflow",
		Long: `A run keeps the definition with which it began. This command moves an open run to
the definition at PATH: it compares both definitions, shows what happens to each
step, asks, and moves the run. The run keeps its results, its effects and its
idempotency keys, and continues with the new definition. If a step has another name
in the new definition, a moved block must name both.

The command refuses to move a run in these cases: a finished step is not in the new
definition, or its action, undo or for_each has changed; a step with a call in
flight has changed (pause the run first); a variable has no value; the new
definition has another pivot, and the run has come to its pivot.

  --all --workflow W  all open runs of workflow W. Shows which can be moved;
                      with --yes it moves them

Exit code: 0 moved, recorded or shown, 1 a run cannot be moved.`,
		Args: cli.Wants("[RUN]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(len(args)); err != nil {
				return err
			}
			if o.All {
				return migrate.All(cmd.Context(), a, o)
			}
			return migrate.One(cmd.Context(), a, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.To, "to", "", "directory or file of the new definition")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.DryRun, "dry-run", false, "only show what would change")
	f.BoolVar(&o.All, "all", false, "all open runs of --workflow")
	f.StringVar(&o.Workflow, "workflow", "", "with --all: the workflow whose runs are moved")
	verbs.ReasonFlag(cmd, &o.Reason)
	o.Agents.Add(cmd)
	return takesRun(a, cmd)
}
