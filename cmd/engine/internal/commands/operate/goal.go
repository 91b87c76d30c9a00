package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/goal"
)

// Goal returns the command `engine goal`, which shows unique keys and resets goals.
func Goal(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "goal",
		Short: "List unique keys, and reset goals that were reached",
		RunE:  a.Group,
	}
	var o goal.ListOptions
	list := &cobra.Command{
		Use:   "list",
		Short: "List unique keys and the runs that hold them",
		Long: `Lists the unique keys of all workflows, with the run that took each key last. STATE
is open, needs_person, reached (the run has succeeded), used (no other run may ever
have the key), or free. A run in brackets was removed by retention.`,
		Args: cli.Wants(),
		RunE: func(cmd *cobra.Command, _ []string) error { return goal.List(cmd.Context(), a, o) },
	}
	list.Flags().StringVar(&o.Workflow, "workflow", "", "only keys of this workflow")
	list.Flags().IntVar(&o.Limit, "limit", 100, "number of keys at most")
	var reason string
	reset := &cobra.Command{
		Use:   "reset WORKFLOW KEY",
		Short: "Let a new run start for a key whose goal was reached",
		Long: `Frees the unique key of a run that has succeeded, so that a new run of the workflow
can have it. The command does not change or undo the earlier run. It is refused while
a run of the key is open. The state keeps who reset the goal, when and why.`,
		Args: cli.Wants("WORKFLOW", "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return goal.Reset(cmd.Context(), a, args[0], args[1], reason)
		},
	}
	reset.Flags().StringVar(&reason, "reason", "", "why the goal may be reached again; it is kept")
	cmd.AddCommand(list, reset)
	return cmd
}
