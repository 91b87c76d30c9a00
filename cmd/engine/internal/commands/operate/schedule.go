package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/schedule"
)

// Publish returns the command `engine publish`, which stores a definition whose schedules start
// runs.
func Publish(a *cli.App) *cobra.Command {
	var o schedule.PublishOptions
	cmd := &cobra.Command{
		Use:   "publish PATH",
		Short: "Store a definition whose schedules start runs",
		Long: `Checks the module at PATH, a directory or a file, stores it, and makes it the
published definition of its workflows. Engines that serve the state start the
runs of its schedules. To publish again replaces the definition: a schedule keeps
its last tick, and stays paused if it was paused. A schedule that is not in the new
definition starts no more runs.
Runs that have started keep the definition with which they started.

Variables outside of workflows get their values now. The other variables of a run
get their values from the schedule.`,
		Args: cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.Publish(cmd.Context(), a, args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.Workflow, "workflow", "", "publish only this workflow")
	module.ValueFlags(cmd, &o.Values)
	o.Agents.Add(cmd)
	return cmd
}

// Schedule returns the command `engine schedule`, which shows and changes schedules.
func Schedule(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "List, pause and preview schedules, and start missed ticks",
		RunE:  a.Group,
	}
	byName := func(use, short, long string, run func(*cobra.Command, string) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Long: long, Args: cli.Wants("WORKFLOW.SCHEDULE"),
			RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, args[0]) },
		}
	}
	var fill schedule.BackfillOptions
	backfill := &cobra.Command{
		Use:   "backfill WORKFLOW.SCHEDULE",
		Short: "Start the runs of ticks in the past",
		Long: `Records a run for each tick of the schedule in a period: from the time --from up to
the time --to, which does not belong to the period. Engines that serve the state
work on these runs. If a tick has a run already, it gets no second run, so the
command can be repeated. The arguments overlap and catch_up do not matter here.`,
		Args: cli.Wants("WORKFLOW.SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.Backfill(cmd.Context(), a, args[0], fill)
		},
	}
	backfill.Flags().StringVar(&fill.From, "from", "", "first time: RFC 3339, or a date")
	backfill.Flags().StringVar(&fill.To, "to", "", "time after the last tick: RFC 3339, or a date")
	backfill.Flags().BoolVar(&fill.Preview, "preview", false, "only print the ticks")
	look := schedule.PreviewOptions{}
	preview := &cobra.Command{
		Use:   "preview PATH",
		Short: "Print the next ticks of each schedule of a module",
		Args:  cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.Preview(cmd.Context(), a, args[0], look)
		},
	}
	preview.Flags().IntVar(&look.Count, "count", 5, "number of ticks of each schedule")
	preview.Flags().StringVar(&look.From, "from", "", "first time, in place of now: RFC 3339, or a date")
	look.Agents.Add(preview)
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the schedules of published workflows",
			Args:  cli.Wants(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return schedule.List(cmd.Context(), a) },
		},
		byName("pause WORKFLOW.SCHEDULE", "Let a schedule start no more runs", "", func(cmd *cobra.Command, name string) error {
			return schedule.Pause(cmd.Context(), a, name)
		}),
		byName("resume WORKFLOW.SCHEDULE", "Let a paused schedule start runs again",
			"Ticks that passed during the pause are missed ticks: catch_up of the schedule says\nwhat happens to them.", func(cmd *cobra.Command, name string) error {
				return schedule.Resume(cmd.Context(), a, name)
			}),
		backfill, preview,
		&cobra.Command{
			Use:   "withdraw WORKFLOW",
			Short: "Remove a published workflow and its schedules",
			Args:  cli.Wants("WORKFLOW"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return schedule.Withdraw(cmd.Context(), a, args[0])
			},
		},
	)
	return cmd
}
