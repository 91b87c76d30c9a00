package verbs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// maxReason is the largest length of --reason in bytes. There is a limit because the journal
// stores the reason.
const maxReason = 1000

// ReasonFlag adds the flag --reason to the command cmd. The flag stores its value in the
// variable to which `to` points.
func ReasonFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "reason", "", "why, for people who look at the run later")
}

// CheckReason returns an error if the reason is too long. The parameter `neededBy` names a command
// that needs a reason. For such a command, an empty reason is an error, too. If `neededBy` is "",
// the reason is optional.
func CheckReason(reason, neededBy string) error {
	switch {
	case len(reason) > maxReason:
		return cli.Failed("Invalid flag", "--reason must have at most %d bytes.", maxReason)
	case neededBy != "" && strings.TrimSpace(reason) == "":
		return cli.Failed("Reason needed", "%s needs --reason TEXT: it is recorded with who did it.", neededBy)
	}
	return nil
}
