package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/keys"
)

// Key returns the command `engine key`, which makes, lists and changes encryption keys.
func Key(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and change the encryption keys of a state",
		RunE:  a.Group,
	}
	preview := false
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Seal everything again with the newest key",
		Long: `Makes the first key of ENGINE_ENCRYPTION_KEY, or of the key file, the newest key
of the state. Then it seals everything again that an older key has sealed. It
needs the older keys, too. Engines may work on a database meanwhile, but not on an
embedded state. The command can be interrupted and repeated.

Exit code: 0 the state needs only its newest key now, 1 something is left.`,
		Args: cli.Wants(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if preview {
				return keys.Preview(cmd.Context(), a)
			}
			return keys.Rotate(cmd.Context(), a)
		},
	}
	rotate.Flags().BoolVar(&preview, "preview", false, "count what would be sealed again, and change nothing")
	cmd.AddCommand(
		&cobra.Command{
			Use:   "new",
			Short: "Print a new key",
			Args:  cli.Wants(),
			RunE:  func(*cobra.Command, []string) error { return keys.New(a) },
		},
		&cobra.Command{
			Use:   "list",
			Short: "Count what each key of the state has sealed",
			Args:  cli.Wants(),
			RunE:  func(cmd *cobra.Command, _ []string) error { return keys.List(cmd.Context(), a) },
		},
		rotate,
	)
	return cmd
}
