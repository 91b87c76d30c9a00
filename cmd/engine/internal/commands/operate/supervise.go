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
		Short: "Make one scan of the Supervisor, or one scan after another",
		Long: `Makes one scan of the open runs that no living engine works on. The scan lets
attempts and runs continue whose time has passed, declares dead engines dead, and
records the decisions. It calls no agents: engines that serve the state make the
calls that are decided here, and may take the runs at once.

Every ` + "`engine serve` and `engine apply`" + ` does the same all the time. This command
is for a cron job in addition to them, or for a place where no engine runs for a
long time. Without --dsn the state is the embedded file next to PATH, or in this
directory.`,
		Args: cli.Wants("[PATH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serving.Supervise(cmd.Context(), a, cli.Argument(args, "."), o)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "make one scan and exit")
	cmd.Flags().Var(words.Span(&o.Every), "every", "make a scan this often until a signal comes; not on an embedded state")
	return cmd
}
