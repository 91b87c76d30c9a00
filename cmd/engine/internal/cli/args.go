package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/dsl/diag"
)

// Argument returns the first element of args. If args is empty, it returns the value of the
// parameter `otherwise`.
func Argument(args []string, otherwise string) string {
	if len(args) > 0 {
		return args[0]
	}
	return otherwise
}

// Wants returns a function that checks the number of arguments. Each element of names describes
// one argument. A name in brackets is optional, and a name that contains "…" may be repeated.
func Wants(names ...string) cobra.PositionalArgs {
	least, most := 0, len(names)
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			least++
		}
		if strings.Contains(n, "…") {
			most = -1
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Failed("Missing argument", "%s needs %s. Usage: %s", cmd.CommandPath(), names[len(args)], cmd.UseLine())
		case most >= 0 && len(args) > most:
			return Failed("Too many arguments", "%s does not take %q. Usage: %s", cmd.CommandPath(), args[most], cmd.UseLine())
		}
		return nil
	}
}

// FlagError turns an error about flags into a diagnostic. For an unknown flag, the diagnostic
// suggests a similar flag.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	name, ok := strings.CutPrefix(text, "unknown flag: --")
	if !ok {
		return Failed("Invalid flag", "%s. Run `%s --help` for the list.", words.UpperFirst(text), cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return Failed("Unknown flag", "%s has no flag %q.%s Run `%s --help` for the list.",
		cmd.CommandPath(), "--"+name, diag.DidYouMean("--"+name, names), cmd.CommandPath())
}
