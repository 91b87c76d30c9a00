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

// Signal returns the command `engine signal`, which sends a signal to a run.
func Signal(a *cli.App) *cobra.Command {
	var o verbs.SignalOptions
	cmd := &cobra.Command{
		Use:   "signal RUN NAME",
		Short: "Send a signal to a step that waits for it",
		Long: `Sends the signal NAME to a run. RUN is the name or the unique key of the run. The
first step that waits for NAME takes the signal, and --data becomes its output. If
no step waits for the signal yet, the signal is kept until such a step waits. The
step may also be in a group of the run, even if the group has not started.

The data are checked against the type that the step declares. A signal is sent
once for each --id, so it is safe to send it again with the same id.

  --fail CODE  the step fails with this code, which its catch block may catch`,
		Args: cli.Wants("RUN", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[1]
			if err := o.Check(cmd.Flags().Changed("data")); err != nil {
				return err
			}
			return verbs.Send(cmd.Context(), a, verbs.Verb{Name: "signal", Run: args[0],
				Event: func(_ context.Context, _ *session.Session, _ *history.Run, by string) (machine.Event, error) {
					return verbs.SignalEvent(a, o, by)
				}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "data of the signal, as JSON or @FILE; null if it is not given")
	f.StringVar(&o.ID, "id", "", "id of this signal: a second signal with the same id changes nothing")
	f.StringVar(&o.Fail, "fail", "", "let the step fail with this code")
	verbs.ReasonFlag(cmd, &o.Reason)
	return takesRun(a, cmd)
}
