package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/eventbox"
)

// Event returns the command `engine event`, which sends events and shows the inbox.
func Event(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "event",
		Short: "Send events that start runs, and list, retry or drop them",
		RunE:  a.Group,
	}
	var o eventbox.SendOptions
	send := &cobra.Command{
		Use:   "send TYPE",
		Short: "Send an event",
		Long: `Puts an event into the inbox of the state and prints its id. Engines that serve
the state start a run of each published workflow that has an on_event block for
this type. An id starts one run of a workflow only, so an event can be sent again
if it is not known whether it arrived.`,
		Args: cli.Wants("TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error { return eventbox.Send(cmd.Context(), a, args[0], o) },
	}
	send.Flags().StringVar(&o.Data, "data", "{}", "data of the event, as JSON")
	send.Flags().StringVar(&o.ID, "id", "", "id of the event; without it the command makes one")
	quarantined := false
	list := &cobra.Command{
		Use:   "list",
		Short: "List the events that wait or are quarantined",
		Args:  cli.Wants(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return eventbox.List(cmd.Context(), a, quarantined) },
	}
	list.Flags().BoolVar(&quarantined, "quarantined", false, "list only the events that engines could not use, with the reason")
	cmd.AddCommand(send, list,
		&cobra.Command{
			Use:   "retry EVENT",
			Short: "Let engines work on a quarantined event again",
			Long:  "Use it after the cause is gone, for example after a workflow was published again.\nRuns that the event has started already are not started again.",
			Args:  cli.Wants("EVENT"),
			RunE:  func(cmd *cobra.Command, args []string) error { return eventbox.Retry(cmd.Context(), a, args[0]) },
		},
		&cobra.Command{
			Use:   "drop EVENT",
			Short: "Remove an event from the inbox",
			Args:  cli.Wants("EVENT"),
			RunE:  func(cmd *cobra.Command, args []string) error { return eventbox.Drop(cmd.Context(), a, args[0]) },
		},
	)
	return cmd
}
