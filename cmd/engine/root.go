package main

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/commands/author"
	"github.com/saga-engine/engine/cmd/engine/internal/commands/operate"
	"github.com/saga-engine/engine/cmd/engine/internal/commands/runs"
)

// root returns the command `engine` with all its subcommands. A new command needs one file below
// internal/commands, and one line here.
func root(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "engine",
		Short: "Durable workflows in HCL that undo what they did when they fail",
		Long: `engine runs workflows written in HCL. Every step is recorded before it is
done, so a run survives crashes, and a run that fails is undone step by step.

Without --dsn the state is a file, .engine/state.db beside the workflow.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          a.Group,
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.Chdir, "chdir", "", "directory to work in; paths are relative to it")
	f.StringVar(&a.DSN, "dsn", "", "where the state is: postgres://… or sqlite:PATH (ENGINE_DSN)")
	f.BoolVar(&a.NoColor, "no-color", false, "no colours (NO_COLOR)")
	f.BoolVar(&a.JSON, "json", false, "output for programs")
	f.StringVar(&a.LogLevel, "log", "", "log to stderr: error, warn, info or debug (ENGINE_LOG)")
	root.PersistentPreRunE = a.Prepare
	for _, command := range []func(*cli.App) *cobra.Command{
		author.Init,
		author.Validate,
		author.Fmt,
		author.Plan,
		operate.Apply,
		operate.Serve,
		operate.Supervise,
		operate.Publish,
		operate.Schedule,
		operate.Event,
		operate.Goal,
		operate.Select,
		runs.List,
		runs.Show,
		runs.Explain,
		runs.Watch,
		runs.Logs,
		runs.Replies,
		runs.Cancel,
		runs.Pause,
		runs.Resume,
		runs.Retry,
		runs.Compensate,
		runs.Settle,
		runs.Signal,
		runs.Migrate,
		runs.Restart,
		operate.Doctor,
		author.Graph,
		runs.Console,
		author.Agents,
		author.Schema,
		operate.DB,
		operate.Key,
		operate.Version,
	} {
		root.AddCommand(command(a))
	}
	root.InitDefaultCompletionCmd("completion")
	return root
}
