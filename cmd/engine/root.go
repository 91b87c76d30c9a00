package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/saga-engine/engine/dsl/diag"
)

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "engine",
		Short: "Durable workflows in HCL that undo what they did when they fail",
		Long: `engine runs workflows written in HCL. Every step is recorded before it is
done, so a run survives crashes, and a run that fails is undone step by step.

Without --dsn the state is a file, .engine/state.db beside the workflow.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          a.group,
	}
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.chdir, "chdir", "", "directory to work in; paths are relative to it")
	f.StringVar(&a.dsn, "dsn", "", "where the state is: postgres://… or sqlite:PATH (ENGINE_DSN)")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (NO_COLOR)")
	f.BoolVar(&a.json, "json", false, "output for programs")
	f.StringVar(&a.log, "log", "", "log to stderr: error, warn, info or debug (ENGINE_LOG)")
	root.PersistentPreRunE = a.prepare
	root.AddCommand(
		initCommand(a), validateCommand(a), fmtCommand(a), planCommand(a), applyCommand(a),
		serveCommand(a), superviseCommand(a),
		listCommand(a), takesRun(a, showCommand(a)), takesRun(a, explainCommand(a)), takesRun(a, watchCommand(a)), takesRun(a, logsCommand(a)),
		takesRun(a, cancelCommand(a)), takesRun(a, pauseCommand(a)), takesRun(a, resumeCommand(a)), takesRun(a, retryCommand(a)), takesRun(a, compensateCommand(a)), takesRun(a, settleCommand(a)), doctorCommand(a),
		graphCommand(a), agentsCommand(a), dbCommand(a), versionCommand(a),
	)
	root.InitDefaultCompletionCmd("completion")
	return root
}

// prepare fills in what the environment says where no flag does, and checks
// the global flags.
func (a *app) prepare(cmd *cobra.Command, _ []string) error {
	a.fromEnv(cmd, "dsn", "ENGINE_DSN", &a.dsn)
	a.fromEnv(cmd, "log", "ENGINE_LOG", &a.log)
	if _, err := logLevel(a.log); err != nil {
		return err
	}
	if a.chdir != "" && !isDir(a.chdir) {
		return failed("No such directory", "--chdir %s is not a directory.", a.chdir)
	}
	return nil
}

func (a *app) fromEnv(cmd *cobra.Command, flag, name string, to *string) {
	if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
		return
	}
	if v, ok := a.lookup(name); ok {
		*to = v
	}
}

// path resolves a path of the command line against --chdir.
func (a *app) path(p string) string {
	if a.chdir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.chdir, p)
}

// group runs a command that only has subcommands: it shows help, or says that
// there is no such subcommand.
func (a *app) group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return failed("Unknown command", "%s has no command %q.%s Run `%s --help` for the list.",
		cmd.CommandPath(), args[0], diag.DidYouMean(args[0], names), cmd.CommandPath())
}

// wants checks the number of arguments; names describe them, a name in
// brackets is optional and one that ends in "…" may be repeated.
func wants(names ...string) cobra.PositionalArgs {
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
			return failed("Missing argument", "%s needs %s. Usage: %s", cmd.CommandPath(), names[len(args)], cmd.UseLine())
		case most >= 0 && len(args) > most:
			return failed("Too many arguments", "%s does not take %q. Usage: %s", cmd.CommandPath(), args[most], cmd.UseLine())
		}
		return nil
	}
}

// flagError turns an error about flags into a diagnostic with a suggestion.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	name, ok := strings.CutPrefix(text, "unknown flag: --")
	if !ok {
		return failed("Invalid flag", "%s. Run `%s --help` for the list.", upperFirst(text), cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return failed("Unknown flag", "%s has no flag %q.%s Run `%s --help` for the list.",
		cmd.CommandPath(), "--"+name, diag.DidYouMean("--"+name, names), cmd.CommandPath())
}
