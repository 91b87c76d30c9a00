package operate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/serving"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
)

// Serve returns the command `engine serve`, which works on the runs of a state until it gets
// Ctrl-C or another signal of the operating system.
func Serve(a *cli.App) *cobra.Command {
	var o serving.Options
	cmd := &cobra.Command{
		Use:   "serve [PATH…]",
		Short: "Work on the runs of a shared state until a signal comes",
		Long: `Works on every open run of the state that no living engine owns, and on the runs
that other commands submit with ` + "`engine apply --detach`" + `. Any number of engines may
serve one PostgreSQL database: when one of them dies, the others continue its runs.

The engine looks for agents where every command looks, and in .engine/agents of each
PATH. A run keeps the versions and checksums of the agents with which it was started.
An engine that does not have these agents leaves the run to other engines, and logs
this once. Without --dsn the state is the embedded file next to PATH, or in this
directory. Only one engine can work on such a file.

After SIGTERM or Ctrl-C the engine stops in order: it starts nothing more, waits for
running attempts until their complete-by, and leaves its runs to the other engines.
The exit code is 0. After a second signal it stops at once, with exit code 6. SIGHUP
is ignored.`,
		Args: cli.Wants("[PATH…]"),
		RunE: func(cmd *cobra.Command, args []string) error { return serving.Serve(cmd.Context(), a, args, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Concurrency, "concurrency", 0, "largest number of calls in flight; 0 = as many as the agents accept")
	f.Var(words.SpanOrZero(&o.Lease, 30*time.Second), "lease", "how long this engine counts as alive after its last sign of life")
	f.Var(words.SpanOrZero(&o.MinScan, 0), "scan-min", "shortest pause between two scans of the Supervisor; 0 = 200ms, less for a short lease")
	f.Var(words.SpanOrZero(&o.MaxScan, 0), "scan-max", "longest pause between two scans, at most half of --lease; 0 = chosen by --lease")
	f.IntVar(&o.ClaimBatch, "claim-batch", 0, "largest number of runs that are claimed together; 0 = 256")
	f.Var(words.SpanOrZero(&o.ClaimInterval, 0), "claim-interval", "shortest pause between two searches for runs without an owner; 0 = the value of --scan-min")
	f.Var(words.SpanOrZero(&o.Retention, 0), "retention", "how long runs are kept after they have finished, with their names and unique keys; 0 = for ever")
	f.StringVar(&o.Address, "address", "", "name of this engine for people (default HOST:PID#MARK)")
	f.StringVar(&o.HTTP, "http", "off", "address for /metrics, /healthz and /readyz, such as 127.0.0.1:9464; off = none")
	f.BoolVar(&o.RemoteHTTP, "http-allow-remote", false, "let other machines use --http; it does not ask who they are")
	f.StringVar(&o.OnAlert, "on-alert", "", "program to run for every alert, which it reads from stdin as JSON")
	f.StringVar(&o.Webhook, "alert-webhook", "", "URL to POST every alert to as JSON")
	f.StringVar(&o.ReplySinks, "reply-sinks", "", "JSON file with the webhooks to which this engine may send replies")
	o.Agents.Add(cmd)
	o.Ceilings.Add(cmd)
	return cmd
}
