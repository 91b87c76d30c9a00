package operate

import (
	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/apply"
	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
)

// Apply returns the command `engine apply`, which brings a run to its end.
func Apply(a *cli.App) *cobra.Command {
	var o apply.Options
	cmd := &cobra.Command{
		Use:   "apply PATH",
		Short: "Bring a run of a workflow to its end",
		Long: `Starts a run of the workflow at PATH, a directory or a file, and shows it until
it has ended. A workflow with a unique key is started once: later applies attach
to the run that holds the key, so running the command again after a crash, or in
a second terminal, is safe. --run-id names the run and always means that one.

Ctrl-C stops starting steps, waits for running ones and exits; the run is kept
and goes on with the next apply. A second Ctrl-C leaves at once.

While it works it also goes on with open runs in the same state that no other
engine owns; --only leaves them alone.

On a PostgreSQL database other engines work too: a run that one of them owns is
followed, and taken over when that engine dies. --detach only records the run
and prints its name; an engine that serves the state takes it.

--each records a run for each line of a file, as --detach does for one. A line is
a JSON object with values of variables. A line that cannot start a run is reported
and stops no other. With --run-id PREFIX the runs are named PREFIX.KEY, so the
command can be repeated. Then the exit code is 0 if each line has its run, 1 if a
line was refused, and 7 if a run may have been recorded.

Exit code: 0 succeeded, 4 ended otherwise and undid all that the workflow lets it
undo, 5 needs a human, 6 still open, 7 may have been accepted, 1 could not be
done. After 4 the last line names the steps with compensation = "none" whose
effects stay.`,
		Args: cli.Wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return apply.Run(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Workflow, "workflow", "", "which workflow, if the module has several")
	f.StringVar(&o.RunID, "run-id", "", "name of the run")
	f.BoolVar(&o.Confirm, "confirm", false, "show the plan and ask first")
	f.BoolVar(&o.Only, "only", false, "leave other open runs alone")
	f.BoolVar(&o.Detach, "detach", false, "record the run, print its name and leave it to an engine that serves")
	f.StringVar(&o.Each, "each", "", "record a run for each line of this file, which has JSON objects (- = standard input)")
	f.StringVar(&o.EachKey, "each-key", "", "variable whose value is the KEY of a line; without it a hash of the line")
	f.Var(words.Span(&o.StartIn), "start-by", "the run fails, and does nothing, if no step of it has begun after this time")
	f.Var(words.Span(&o.Wait), "wait-timeout", "stop as Ctrl-C does if the run is still open after this time (exit 6)")
	f.StringVar(&o.ReplyTo, "reply-to", "", "where replies of the run go: table:QUEUE, webhook:NAME or webhook:URL")
	f.StringVar(&o.Correlation, "correlation", "", "a text that each reply repeats")
	f.StringVar(&o.ReplySinks, "reply-sinks", "", "JSON file with the webhooks to which this engine may send replies")
	module.ValueFlags(cmd, &o.Values)
	o.Agents.Add(cmd)
	o.Ceilings.Add(cmd)
	return cmd
}
