package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/serving"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
)

// Supervise returns the command `engine supervise`, which runs scans of the Supervisor.
func Supervise(a *cli.App) *cobra.Command {
	var o serving.SuperviseOptions
	cmd := &cobra.Command{
		Use:   "supervise --once|--every D [PATH]",
		Short: "Make passes of the Supervisor: one, as for cron, or one after another",
		Long: `Makes one scan of the open runs that no living engine works on. Attempts and runs
whose time has passed get that event, engines that have died are fenced, and the
decisions are recorded. It calls no agents: engines that serve the state make the
calls that are decided here, and may take the runs at once.

Every ` + "`engine serve` and `engine apply`" + ` does the same all the time. This command
is for a cron job beside them, or where nothing runs for long. Without --dsn the
state is the embedded file beside PATH, or in this directory.`,
		Args: cli.Wants("[PATH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serving.Supervise(cmd.Context(), a, cli.Argument(args, "."), o)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "make one pass and exit")
	cmd.Flags().Var(words.Span(&o.Every), "every", "make a pass this often until told to stop; not on an embedded state")
	return cmd
}
