package verbs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// maxReason bounds --reason: it is kept with the run for ever.
const maxReason = 1000

// ReasonFlag adds --reason.
func ReasonFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "reason", "", "why, for people who look at the run later")
}

// CheckReason refuses a reason that is too long, or missing where what is done
// leaves something behind that only a reason explains.
func CheckReason(reason, neededBy string) error {
	switch {
	case len(reason) > maxReason:
		return cli.Failed("Invalid flag", "--reason must have at most %d bytes.", maxReason)
	case neededBy != "" && strings.TrimSpace(reason) == "":
		return cli.Failed("Reason needed", "%s needs --reason TEXT: it is recorded with who did it.", neededBy)
	}
	return nil
}
