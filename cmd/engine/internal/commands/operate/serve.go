package operate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/serving"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
)

// Serve returns the command `engine serve`, which works on the runs of a state until a signal
// comes.
func Serve(a *cli.App) *cobra.Command {
	var o serving.Options
	cmd := &cobra.Command{
		Use:   "serve [PATH…]",
		Short: "Work on the runs of a shared state until told to stop",
		Long: `Works on every open run of the state that no living engine owns, and on those
that others submit with ` + "`engine apply --detach`" + `. Any number of engines may serve one
PostgreSQL database: when one dies the others go on with its runs.

Agents are looked for where every command looks, and in .engine/agents of each
PATH. A run keeps to the versions and checksums it was started with; an engine
that does not have them leaves the run to others and says so once. Without --dsn
the state is the embedded file beside PATH, or in this directory; then this
engine alone can write it.

SIGTERM or Ctrl-C stops in order: nothing more is started, running attempts may
return until their complete-by, what is left is handed to the other engines; exit
code 0. A second one leaves at once; exit code 6. SIGHUP is ignored.`,
		Args: cli.Wants("[PATH…]"),
		RunE: func(cmd *cobra.Command, args []string) error { return serving.Serve(cmd.Context(), a, args, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Concurrency, "concurrency", 0, "calls of agents in flight at most; 0 = as many as the agents take")
	f.Var(words.SpanOrZero(&o.Lease, 30*time.Second), "lease", "how long this engine counts as alive after its last sign of life")
	f.Var(words.SpanOrZero(&o.MinScan, 0), "scan-min", "shortest pause between two passes of the Supervisor; 0 = 200ms, less for a short lease")
	f.Var(words.SpanOrZero(&o.MaxScan, 0), "scan-max", "longest pause between two passes, at most half of --lease; 0 = chosen by --lease")
	f.IntVar(&o.ClaimBatch, "claim-batch", 0, "runs that are taken at once; 0 = 256")
	f.Var(words.SpanOrZero(&o.ClaimInterval, 0), "claim-interval", "shortest pause between two looks for runs that nobody owns; 0 = that of --scan-min")
	f.Var(words.SpanOrZero(&o.Retention, 0), "retention", "how long runs are kept after they have finished, with their names and unique keys; 0 = for ever")
	f.StringVar(&o.Address, "address", "", "name of this engine for people (default HOST:PID)")
	f.StringVar(&o.HTTP, "http", "off", "address for /metrics, /healthz and /readyz, such as 127.0.0.1:9464; off = none")
	f.BoolVar(&o.RemoteHTTP, "http-allow-remote", false, "let --http listen beyond this machine; it asks nobody who they are")
	f.StringVar(&o.OnAlert, "on-alert", "", "program to run for every alert, which it reads from stdin as JSON")
	f.StringVar(&o.Webhook, "alert-webhook", "", "URL to POST every alert to as JSON")
	f.StringVar(&o.ReplySinks, "reply-sinks", "", "JSON file with the webhooks to which this engine may send replies")
	o.Agents.Add(cmd)
	o.Ceilings.Add(cmd)
	return cmd
}
