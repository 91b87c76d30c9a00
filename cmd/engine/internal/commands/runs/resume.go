package runs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/engine/machine"
)

// Resume returns the command `engine resume`, which ends the pause of a run.
func Resume(a *cli.App) *cobra.Command {
	var reason string
	var extend time.Duration
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a paused run",
		Long: `Ends a pause. --extend DURATION sets the run's deadline to this duration from now. So
the command also gives a parked run a new deadline.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := verbs.CheckReason(reason, ""); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "resume", Run: args[0],
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return machine.ResumeRequested{Extend: extend, By: by, Reason: reason}, nil
				}})
		},
	}
	verbs.ExtendFlag(cmd, &extend)
	verbs.ReasonFlag(cmd, &reason)
	return takesRun(a, cmd)
}
