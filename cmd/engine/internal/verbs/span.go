package verbs

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
)

// ExtendFlag adds the flag --extend to the command cmd. The flag stores its value in the
// variable to which `to` points.
func ExtendFlag(cmd *cobra.Command, to *time.Duration) {
	cmd.Flags().Var(words.Span(to), "extend", "new deadline of the run, this long from now, such as 90s, 2h, 1d")
}
