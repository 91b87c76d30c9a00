package runs

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/restart"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
)

// Restart returns the command `engine restart`, which starts a new run from the results of an ended
// run.
func Restart(a *cli.App) *cobra.Command {
	var o restart.Options
	cmd := &cobra.Command{
		Use:   "restart RUN --from STEP",
		Short: "Start a new run from the results of an ended run",
		Long: `Starts a new run of the same workflow. The new run takes over the results of the
steps before STEP, and runs STEP and what follows. It also takes over the effects
of these steps: if the new run fails, it undoes them, with the keys of the old
run. The command shows which results and effects those are, asks, and records the
new run. An engine on the state works on it.

Refused are: a run that is open; a run that has another heir already; a step
before STEP that was undone; a step of which nobody knows whether it took effect;
a step before STEP with child runs that may have to be undone; a step at or
before a pivot that has succeeded.

  --to PATH  use the definition at PATH. A step that is taken over must have the
             same action, undo and for_each. Moved blocks count
  --again    allow steps to run whose effects in the old run stay

Exit code: 0 recorded or shown, 1 the run cannot be restarted.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			return restart.Run(cmd.Context(), a, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.From, "from", "", "step from which the new run starts")
	f.StringVar(&o.To, "to", "", "directory or file of another definition")
	f.StringVar(&o.RunID, "run-id", "", "name of the new run")
	f.BoolVar(&o.Again, "again", false, "steps may take effect a second time")
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.DryRun, "dry-run", false, "only show what the new run takes over")
	verbs.ReasonFlag(cmd, &o.Reason)
	o.Agents.Add(cmd)
	return takesRun(a, cmd)
}
