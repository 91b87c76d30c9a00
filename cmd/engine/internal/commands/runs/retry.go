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

// Retry returns the command `engine retry`, which gives failed steps a fresh round of
// attempts.
func Retry(a *cli.App) *cobra.Command {
	var step, reason string
	var newKey bool
	var extend time.Duration
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Continue a parked run from its failed step",
		Long: `Gives the failed steps of a parked run, or the one that --step names, a fresh
round of attempts and a fresh deadline. Steps that have finished never run again.
The idempotency key stays the same, so that the remote service sees the same call.
--new-key changes the key; it is refused while the step may have taken effect.
If a child run has failed and has left effects in place, the step needs --new-key:
another child run may cause these effects a second time.

If the run's own deadline has passed, --extend DURATION sets it to this duration
from now.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := verbs.CheckReason(reason, ""); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "retry", Run: args[0], Step: step, Flags: verbs.Given(cmd),
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return machine.RetryRequested{Step: step, NewKey: newKey, Extend: extend, By: by, Reason: reason}, nil
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&step, "step", "", "only this step or instance: charge, 'seat[\"B7\"]'")
	f.BoolVar(&newKey, "new-key", false, "call with another idempotency key")
	verbs.ExtendFlag(cmd, &extend)
	verbs.ReasonFlag(cmd, &reason)
	return takesRun(a, cmd)
}
