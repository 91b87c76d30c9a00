package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/schedule"
)

// Select returns the command `engine select`, which shows and changes the firings of selections.
func Select(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "select",
		Short: "Show and start firings of schedules that select rows",
		RunE:  a.Group,
	}
	limit := 20
	list := &cobra.Command{
		Use:   "list",
		Short: "List the newest firings with their reports",
		Long: `Shows how many rows each firing has selected, and what became of them: started,
refused (another run has the unique key, or a limit is full), filtered,
quarantined, vanished. MISSED are rows that others had locked to the end.`,
		Args: cli.Wants(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return schedule.ListFirings(cmd.Context(), a, limit)
		},
	}
	list.Flags().IntVar(&limit, "limit", limit, "number of firings")
	var o schedule.StartOptions
	start := &cobra.Command{
		Use:   "start WORKFLOW.SCHEDULE",
		Short: "Open a firing of a published schedule now",
		Long: `Opens a firing of a published schedule with a select block, also of a paused one.
Engines that serve the state start its runs. A firing of the same time is opened
once; a cancelled one is opened again and continues.`,
		Args: cli.Wants("WORKFLOW.SCHEDULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.StartFiring(cmd.Context(), a, args[0], o)
		},
	}
	start.Flags().StringVar(&o.At, "at", "", "tick of the firing, in place of now: RFC 3339, or a date")
	start.Flags().StringArrayVar(&o.Args, "arg", nil, "value of a parameter of the query, in place of args: `NAME=VALUE`")
	quarantine := &cobra.Command{
		Use:   "quarantine",
		Short: "List and retry rows that could start no run",
		RunE:  a.Group,
	}
	var keys []string
	retry := &cobra.Command{
		Use:   "retry WORKFLOW.SCHEDULE.TICK",
		Short: "Read quarantined rows again and start their runs",
		Args:  cli.Wants("WORKFLOW.SCHEDULE.TICK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.RetryQuarantine(cmd.Context(), a, args[0], keys)
		},
	}
	retry.Flags().StringArrayVar(&keys, "key", nil, "only the row with this key; may be repeated")
	quarantine.AddCommand(&cobra.Command{
		Use:   "list WORKFLOW.SCHEDULE.TICK",
		Short: "List the quarantined rows of a firing with their errors",
		Args:  cli.Wants("WORKFLOW.SCHEDULE.TICK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.ListQuarantine(cmd.Context(), a, args[0])
		},
	}, retry)
	cmd.AddCommand(list, start, &cobra.Command{
		Use:   "cancel WORKFLOW.SCHEDULE.TICK",
		Short: "End an open firing; its runs continue",
		Args:  cli.Wants("WORKFLOW.SCHEDULE.TICK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return schedule.CancelFiring(cmd.Context(), a, args[0])
		},
	}, quarantine)
	return cmd
}
