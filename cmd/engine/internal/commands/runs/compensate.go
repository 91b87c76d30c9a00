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

// Compensate returns the command `engine compensate`, which makes a run undo its steps, or retries
// or skips undos that failed.
func Compensate(a *cli.App) *cobra.Command {
	var step, reason string
	var retry, skip bool
	cmd := &cobra.Command{
		Use:   "compensate RUN",
		Short: "Undo a parked run, or retry or skip undos that failed",
		Long: `Without a flag: starts the undo of a parked run.

If undos have failed (the run is compensation_failed, or still compensating), --retry
tries them again, under a new deadline. --skip leaves their effects in place; it needs
a --reason. --step names one of the failed undos.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			needed := ""
			switch {
			case retry && skip:
				return cli.Failed("Invalid flag", "--retry and --skip cannot be combined.")
			case step != "" && !retry && !skip:
				return cli.Failed("Invalid flag", "--step names a failed undo; say --retry or --skip.")
			case skip:
				needed = "compensate --skip"
			}
			if err := verbs.CheckReason(reason, needed); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "compensate", Run: args[0], Step: step, Flags: verbs.Given(cmd),
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return machine.CompensateRequested{Step: step, Retry: retry, Skip: skip, By: by, Reason: reason}, nil
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&step, "step", "", "only the undo of this step or instance")
	f.BoolVar(&retry, "retry", false, "try failed undos again")
	f.BoolVar(&skip, "skip", false, "leave the effects of failed undos as they are")
	verbs.ReasonFlag(cmd, &reason)
	return takesRun(a, cmd)
}
