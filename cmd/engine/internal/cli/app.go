package cli

import (
	"errors"
	"io"
	"log/slog"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/regular"
	"github.com/saga-engine/engine/dsl/diag"
)

// Version is the version of the engine. The `required_version` of a module is compared with it.
const Version = "0.1.0"

// KeyVariable is the name of the environment variable with the key that encrypts sensitive
// values.
const KeyVariable = "ENGINE_ENCRYPTION_KEY"

// An App holds what one invocation of the command uses: streams, environment, global flags
// and logger.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Returns an environment variable; false = it is not set.
	Lookup  func(string) (string, bool)
	Environ func() []string
	Now     func() time.Time
	Exit    func(code int) // ends the process at once

	Private []string // paths of the embedded state and its key file; no secret may be read from these

	Chdir    string
	DSN      string
	NoColor  bool
	JSON     bool
	LogLevel string

	slog *slog.Logger // the logger that Logger returns; nil = not made yet
	Runs *runNames    // public names of runs, for log lines; set by Logger
	Sink *sink        // writes the log lines; set by Logger

	// Stream writes failures if the command's JSON output is a stream; nil = it is not a stream.
	Stream interface{ Diagnostics(diag.Diagnostics) }
}

// UserName returns the name of the user who started the command. It is only for display.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// Finish shows err to the user and returns the exit code. If err is an exit.Code, Finish shows
// nothing, because the command has printed its message before.
func (a *App) Finish(err error) int {
	if err == nil {
		return exit.OK
	}
	var code exit.Code
	if errors.As(err, &code) {
		return int(code)
	}
	a.report(Diagnose(err))
	var unsure *UnsureError
	if errors.As(err, &unsure) {
		return exit.Unsure
	}
	return exit.Failed
}

// Env returns an environment variable; "" = it is not set.
func (a *App) Env(name string) string {
	v, _ := a.Lookup(name)
	return v
}

// Prepare reads DSN and log level from environment variables if their flags are not given.
// Then it checks the global flags.
func (a *App) Prepare(cmd *cobra.Command, _ []string) error {
	a.fromEnv(cmd, "dsn", "ENGINE_DSN", &a.DSN)
	a.fromEnv(cmd, "log", "ENGINE_LOG", &a.LogLevel)
	if _, err := logLevel(a.LogLevel); err != nil {
		return err
	}
	if a.Chdir != "" && !regular.IsDir(a.Chdir) {
		return Failed("No such directory", "--chdir %s is not a directory.", a.Chdir)
	}
	return nil
}

func (a *App) fromEnv(cmd *cobra.Command, flag, name string, to *string) {
	if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
		return
	}
	if v, ok := a.Lookup(name); ok {
		*to = v
	}
}

// Path resolves a path of the command line against --chdir.
func (a *App) Path(p string) string {
	if a.Chdir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.Chdir, p)
}

// Group runs a command that only has subcommands. Without arguments it shows help. With arguments
// it returns an error, because no subcommand has the given name.
func (a *App) Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return Failed("Unknown command", "%s has no command %q.%s Run `%s --help` for the list.",
		cmd.CommandPath(), args[0], diag.DidYouMean(args[0], names), cmd.CommandPath())
}
