package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
)

// Watch returns the command `engine watch`, which shows a run until it has ended.
func Watch(a *cli.App) *cobra.Command {
	var from int
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Show a run's progress until it has ended",
		Long: `Shows the whole history of a run, and then what happens in it, as apply does.
It only reads. It does not disturb the engine that works on the run, and after
Ctrl-C the run continues.

--from-seq N begins with the N-th event. With --json each event shows its number
(seq), so that a program can continue after an interruption.

Exit code as for apply: 0 succeeded, 4 ended otherwise and undid all that the
workflow lets it undo, 5 needs a human, 6 interrupted.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return watch(cmd.Context(), a, args[0], from) },
	}
	cmd.Flags().IntVar(&from, "from-seq", 1, "number of the first event to show")
	return takesRun(a, cmd)
}

func watch(ctx context.Context, a *cli.App, name string, from int) error {
	if from < 1 {
		return cli.Failed("Invalid flag", "--from-seq must be at least 1, not %d.", from)
	}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	row, err := history.Find(ctx, a, s, name)
	if err != nil {
		return err
	}
	return follow.Show(ctx, a, s, row, from, nil)
}
