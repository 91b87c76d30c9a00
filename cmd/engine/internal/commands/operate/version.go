package operate

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// Version returns the command `engine version`, which prints the version.
func Version(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.Wants(),
		RunE: func(*cobra.Command, []string) error {
			revision, modified := build()
			platform := runtime.GOOS + "_" + runtime.GOARCH
			if a.JSON {
				return a.PrintJSON(map[string]any{
					"engine_version": cli.Version, "revision": revision, "modified": modified,
					"go_version": runtime.Version(), "platform": platform,
				})
			}
			if revision != "" {
				revision = " (" + revision[:min(len(revision), 12)]
				if modified {
					revision += ", modified"
				}
				revision += ")"
			}
			return a.Print("engine %s%s on %s, %s\n", cli.Version, revision, platform, runtime.Version())
		},
	}
}

// build returns the source revision that the go tool has stored in the binary, and whether the
// source was modified. The revision is "" if the binary has none.
func build() (revision string, modified bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return revision, modified
}
