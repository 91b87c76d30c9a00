package runs

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/explain"
)

// Explain returns the command `engine explain`, which says why a run does not move.
func Explain(a *cli.App) *cobra.Command {
	return takesRun(a, &cobra.Command{
		Use:   "explain RUN",
		Short: "Say why a run is not moving, and what will move it next and when",
		Long: `Says in one paragraph what a run does or waits for, who works on it, and what will
move it next and when. If a person has to do something, it lists the commands that
would be accepted now.`,
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return explain.Run(cmd.Context(), a, args[0]) },
	})
}
