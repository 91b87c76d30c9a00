package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/engine/machine"
)

func pauseCommand(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause RUN",
		Short: "Start nothing more of a run until it is resumed",
		Long: `Holds a run: attempts in flight may end, nothing new is started, neither work nor
undo. Deadlines go on; one that passes turns the run to its undo, which starts
when the run is resumed.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason, ""); err != nil {
				return err
			}
			return a.speaker().say(cmd.Context(), verb{name: "pause", run: args[0],
				event: func(_ context.Context, _ *session, _ *shownRun, by string) (machine.Event, error) {
					return machine.PauseRequested{By: by, Reason: reason}, nil
				}})
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}
