package author

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/dsl/language"
)

// Schema returns the command `engine schema`, which prints the workflow language as JSON.
func Schema(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the workflow language as JSON, for editors and other programs",
		Long: `Prints the workflow language as one JSON object: the blocks with their
attributes, the references that expressions may contain, and the functions with
their parameters. The engine prints it from the tables with which it reads files.

To print the schema of an agent, use engine agents schema NAME.`,
		Args: cli.Wants(),
		RunE: func(*cobra.Command, []string) error {
			l := language.Describe()
			return a.PrintJSON(map[string]any{
				"language_version": l.Version, "blocks": l.Blocks, "references": l.References, "functions": l.Functions,
			})
		},
	}
}
