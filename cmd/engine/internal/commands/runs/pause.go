package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/engine/machine"
)

// Pause returns the command `engine pause`. A paused run starts no steps and no undos.
func Pause(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause RUN",
		Short: "Start nothing more of a run until it is resumed",
		Long: `Pauses a run. Attempts in flight may end, but no step and no undo starts. Deadlines
do not stop. If the deadline passes during the pause, the run turns back, and its
undo starts when the run is resumed. Groups of the run are paused and resumed with
it. Child runs of steps with "workflow" are not paused.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := verbs.CheckReason(reason, ""); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "pause", Run: args[0],
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return machine.PauseRequested{By: by, Reason: reason}, nil
				}})
		},
	}
	verbs.ReasonFlag(cmd, &reason)
	return takesRun(a, cmd)
}
