package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/engine/machine"
)

func compensateCommand(a *app) *cobra.Command {
	var step, reason string
	var retry, skip bool
	cmd := &cobra.Command{
		Use:   "compensate RUN",
		Short: "Undo a parked run, or deal with an undo that failed",
		Long: `Without a flag: starts the undo of a parked run.

Where undos have failed (the run is compensation_failed, or still compensating),
--retry tries them again, under a new deadline, and --skip leaves their effects as
they are, which needs a --reason and counts as left in place. --step names one of
them.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			needed := ""
			switch {
			case retry && skip:
				return failed("Invalid flag", "--retry and --skip cannot be combined.")
			case step != "" && !retry && !skip:
				return failed("Invalid flag", "--step names a failed undo; say --retry or --skip.")
			case skip:
				needed = "compensate --skip"
			}
			if err := checkReason(reason, needed); err != nil {
				return err
			}
			return a.speaker().say(cmd.Context(), verb{name: "compensate", run: args[0], step: step,
				event: func(_ context.Context, _ *session, _ *shownRun, by string) (machine.Event, error) {
					return machine.CompensateRequested{Step: step, Retry: retry, Skip: skip, By: by, Reason: reason}, nil
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&step, "step", "", "only the undo of this step, or of this instance of one")
	f.BoolVar(&retry, "retry", false, "try failed undos again")
	f.BoolVar(&skip, "skip", false, "leave the effects of failed undos as they are")
	reasonFlag(cmd, &reason)
	return cmd
}
