package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/doctor"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
)

// Doctor returns the command `engine doctor`, which lists errors and weaknesses. A weakness does
// no harm now, but would do harm after the next failure.
func Doctor(a *cli.App) *cobra.Command {
	var f module.AgentFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong here, and what would not survive the next failure",
		Long: `Looks at the state, at the engines that work on it, and at what its open runs need.
It says what is wrong (error), and what would not survive the next failure
(warning): a single engine, a single instance of an agent that a workflow needs, no
engine at all, agents that are missing here or have changed, alerts that were not
pushed to a person, runs that need attention, and the settings of the database.

It looks for agents on this machine only. Exit code: 0 no errors, 1 errors.`,
		Args: cli.Wants(),
		RunE: func(cmd *cobra.Command, _ []string) error { return doctor.Run(cmd.Context(), a, f) },
	}
	f.Add(cmd)
	return cmd
}
