package verbs

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
)

// maxGiven is the largest length of a flag's value in a command line that a refusal shows.
const maxGiven = 500

// Given returns the flags of a command that the user gave, as a part of a command line which a
// person can copy. It leaves out --step, and the flags that every command has. It also leaves out
// a value that is too long to be read, such as a large --output: then the text has @FILE.
func Given(cmd *cobra.Command) string {
	var parts []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		switch {
		case !f.Changed || f.Name == "step":
		case f.Value.Type() == "bool" && value == "true":
			parts = append(parts, "--"+f.Name)
		case f.Value.Type() == "bool":
			parts = append(parts, "--"+f.Name+"="+value)
		case len(value) > maxGiven && f.Name == "output":
			parts = append(parts, "--"+f.Name, "@FILE")
		default:
			parts = append(parts, "--"+f.Name, words.Quote(value))
		}
	})
	return render.Clean(strings.Join(parts, " "))
}
