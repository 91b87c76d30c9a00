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

// Cancel returns the command `engine cancel`, which undoes a run. With --no-compensate it ends the
// run without undo.
func Cancel(a *cli.App) *cobra.Command {
	var noCompensate, wait bool
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run: undo it, or end it without an undo",
		Long: `Cancels a run. The engine starts no further step, waits for running attempts,
and then undoes the steps that took effect. It interrupts only calls whose action
declares that this does no harm. With --no-compensate it undoes nothing; this
needs a --reason.

--wait waits until the run has ended or needs a person. Exit codes: 4 the run is undone
as far as the workflow says, 5 the run needs a person or effects were left in place,
6 this command was interrupted.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			needed := ""
			if noCompensate {
				needed = "cancel --no-compensate"
			}
			if err := verbs.CheckReason(reason, needed); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "cancel", Run: args[0], Wait: wait,
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return machine.CancelRequested{NoCompensate: noCompensate, By: by, Reason: reason}, nil
				}})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&noCompensate, "no-compensate", false, "undo nothing: the effects stay")
	f.BoolVar(&wait, "wait", false, "wait until the run has ended")
	verbs.ReasonFlag(cmd, &reason)
	return takesRun(a, cmd)
}
