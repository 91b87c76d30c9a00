package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// engineVersion is compared with a module's required_version.
const engineVersion = "0.1.0"

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  wants(),
		RunE: func(*cobra.Command, []string) error {
			revision, modified := build()
			platform := runtime.GOOS + "_" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]any{
					"engine_version": engineVersion, "revision": revision, "modified": modified,
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
			return a.print("engine %s%s on %s, %s\n", engineVersion, revision, platform, runtime.Version())
		},
	}
}

// build returns what the go tool recorded of the source.
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
