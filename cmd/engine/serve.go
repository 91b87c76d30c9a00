package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
)

type serveOptions struct {
	concurrency   int
	lease         time.Duration
	minScan       time.Duration
	maxScan       time.Duration
	claimBatch    int
	claimInterval time.Duration
	retention     time.Duration
	address       string
	http          string
	remoteHTTP    bool
	onAlert       string
	webhook       string
	agents        agentFlags
	ceilings      ceilings
}

// leastLease is the shortest lease that --lease takes: below it the pauses of
// an ordinary machine would look like deaths.
const leastLease = time.Second

// leastRetention is the shortest --retention: a client that waits for a run's end must
// have time to read it.
const leastRetention = time.Minute

func serveCommand(a *app) *cobra.Command {
	var o serveOptions
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
		Args: wants("[PATH…]"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runner().serve(cmd.Context(), args, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.concurrency, "concurrency", 0, "calls of agents in flight at most; 0 = as many as the agents take")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long this engine counts as alive after its last sign of life")
	f.DurationVar(&o.minScan, "scan-min", 0, "shortest pause between two passes of the Supervisor; 0 = 200ms, less for a short lease")
	f.DurationVar(&o.maxScan, "scan-max", 0, "longest pause between two passes, at most half of --lease; 0 = chosen by --lease")
	f.IntVar(&o.claimBatch, "claim-batch", 0, "runs that are taken at once; 0 = 256")
	f.DurationVar(&o.claimInterval, "claim-interval", 0, "shortest pause between two looks for runs that nobody owns; 0 = that of --scan-min")
	f.DurationVar(&o.retention, "retention", 0, "how long runs are kept after they have finished, with their names and unique keys; 0 = for ever")
	f.StringVar(&o.address, "address", "", "name of this engine for people (default HOST:PID)")
	f.StringVar(&o.http, "http", "off", "address for /metrics, /healthz and /readyz, such as 127.0.0.1:9464; off = none")
	f.BoolVar(&o.remoteHTTP, "http-allow-remote", false, "let --http listen beyond this machine; it asks nobody who they are")
	f.StringVar(&o.onAlert, "on-alert", "", "program to run for every alert, which it reads from stdin as JSON")
	f.StringVar(&o.webhook, "alert-webhook", "", "URL to POST every alert to as JSON")
	o.agents.add(cmd)
	o.ceilings.add(cmd)
	return cmd
}

// check refuses flags that cannot be meant, and completes them.
func (o *serveOptions) check(a *app) error {
	switch {
	case o.concurrency < 0:
		return failed("Invalid flag", "--concurrency must not be negative.")
	case o.lease < leastLease:
		return failed("Invalid flag", "--lease must be at least %s, not %s.", leastLease, o.lease)
	case o.minScan < 0 || o.maxScan < 0 || o.claimInterval < 0:
		return failed("Invalid flag", "--scan-min, --scan-max and --claim-interval must not be negative.")
	case 2*o.maxScan > o.lease:
		return failed("Invalid flag", "--scan-max must be at most half of --lease (%s), not %s: every pass renews the lease.", o.lease, o.maxScan)
	case 2*o.minScan > o.lease || o.maxScan > 0 && o.minScan > o.maxScan:
		return failed("Invalid flag", "--scan-min must be at most --scan-max and half of --lease, not %s.", o.minScan)
	case o.retention < 0 || o.retention > 0 && o.retention < leastRetention:
		return failed("Invalid flag", "--retention must be 0 or at least %s, not %s.", leastRetention, o.retention)
	case o.claimBatch < 0:
		return failed("Invalid flag", "--claim-batch must not be negative.")
	case len(o.address) > 200:
		return failed("Invalid flag", "--address must have at most 200 characters.")
	case o.onAlert != "" && o.webhook != "":
		return failed("Invalid flag", "--on-alert and --alert-webhook cannot be combined; let the program do both.")
	}
	if o.http != "off" {
		if err := checkListen(o.http, o.remoteHTTP); err != nil {
			return err
		}
	}
	return o.checkAlerts(a)
}

// checkAlerts checks where alerts go.
func (o *serveOptions) checkAlerts(a *app) error {
	if o.webhook != "" {
		u, err := url.Parse(o.webhook)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return failed("Invalid flag", "--alert-webhook must be an http or https URL.")
		}
	}
	if o.onAlert != "" {
		path := o.onAlert
		if filepath.Base(path) != path {
			path = a.path(path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return failed("Invalid flag", "--on-alert: %s is not a program that can be run.", o.onAlert)
		}
		if o.onAlert, err = filepath.Abs(found); err != nil {
			return failed("Invalid flag", "--on-alert: %s.", err)
		}
	}
	return nil
}

// node gives the settings of the engine.
func (o *serveOptions) node() engine.Options {
	n := engine.Options{
		Address: o.address, Lease: o.lease, MinScan: o.minScan, MaxScan: o.maxScan,
		ClaimBatch: o.claimBatch, ClaimInterval: o.claimInterval, Retention: o.retention,
	}
	if n.MinScan > 0 && n.MaxScan == 0 {
		n.MaxScan = max(n.MinScan, min(10*time.Second, o.lease/3))
	}
	return o.ceilings.to(n)
}

// pushes reports whether alerts are pushed anywhere.
func (o *serveOptions) pushes() bool { return o.onAlert != "" || o.webhook != "" }

func (a runner) serve(ctx context.Context, paths []string, o serveOptions) error {
	if a.log == "" {
		a.log = "info" // what it does is all there is to see
	}
	a.serveLogger()
	if err := o.check(a.app); err != nil {
		return err
	}
	home, shown := ".", "."
	for i, p := range paths {
		m, err := a.opener().locate(p)
		if err != nil {
			return err
		}
		if i == 0 {
			home, shown = m.dir, m.shown
		} else {
			o.agents.modules = append(o.agents.modules, m.dir)
		}
	}
	if len(paths) == 0 {
		home = a.path(".")
	}
	catalog, err := a.opener().catalog(home, nil, o.agents) // runs name each binary by its checksum
	if err != nil {
		return err
	}
	t, err := a.speaker().target(home, shown)
	if err != nil {
		return err
	}
	s, err := a.opener().open(ctx, t, false)
	if err != nil {
		return err
	}
	defer s.close()
	return a.serveOn(ctx, s, catalog, o)
}

// serveOn works on an open state until a signal.
func (a runner) serveOn(ctx context.Context, s *session, catalog *agents.Catalog, o serveOptions) error {
	stops := make(chan os.Signal, 2)
	stopOnSignals(stops)
	defer quietSignals(stops)
	defer a.endOnSecondSignal()()
	v, err := a.newServer(s, catalog, o)
	if err != nil {
		return err
	}
	defer v.close()
	return v.run(ctx, stops)
}
