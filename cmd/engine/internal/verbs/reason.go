package verbs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// maxReason bounds --reason: the journal keeps it.
const maxReason = 1000

// ReasonFlag adds --reason.
func ReasonFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "reason", "", "why, for people who look at the run later")
}

// CheckReason refuses a reason that is too long. It also refuses a missing one if
// neededBy names a command that leaves an effect behind: only a reason explains that.
func CheckReason(reason, neededBy string) error {
	switch {
	case len(reason) > maxReason:
		return cli.Failed("Invalid flag", "--reason must have at most %d bytes.", maxReason)
	case neededBy != "" && strings.TrimSpace(reason) == "":
		return cli.Failed("Reason needed", "%s needs --reason TEXT: it is recorded with who did it.", neededBy)
	}
	return nil
}
