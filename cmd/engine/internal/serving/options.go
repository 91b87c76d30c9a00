package serving

import (
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/engine"
)

// Options are the flags of serve.
type Options struct {
	Concurrency   int
	Lease         time.Duration
	MinScan       time.Duration
	MaxScan       time.Duration
	ClaimBatch    int
	ClaimInterval time.Duration
	Retention     time.Duration
	Address       string
	HTTP          string
	RemoteHTTP    bool
	OnAlert       string
	Webhook       string
	ReplySinks    string // file with webhooks; "" = none
	Agents        module.AgentFlags
	Ceilings      engines.Ceilings
}

// leastLease is the shortest lease that --lease accepts. With a shorter lease, an ordinary pause
// of a machine would look like the death of its engine.
const leastLease = time.Second

// leastRetention is the shortest time that --retention accepts. A client that waits for the end of
// a run must have time to read the run.
const leastRetention = time.Minute

// check returns an error for flags with impossible values. It replaces --on-alert by the absolute
// path of the program.
func (o *Options) check(a *cli.App) error {
	switch {
	case o.Concurrency < 0:
		return cli.Failed("Invalid flag", "--concurrency must not be negative.")
	case o.Lease < leastLease:
		return cli.Failed("Invalid flag", "--lease must be at least %s, not %s.", leastLease, o.Lease)
	case o.MinScan < 0 || o.MaxScan < 0 || o.ClaimInterval < 0:
		return cli.Failed("Invalid flag", "--scan-min, --scan-max and --claim-interval must not be negative.")
	case 2*o.MaxScan > o.Lease:
		return cli.Failed("Invalid flag", "--scan-max must be at most half of --lease (%s), not %s: every pass renews the lease.", o.Lease, o.MaxScan)
	case 2*o.MinScan > o.Lease || o.MaxScan > 0 && o.MinScan > o.MaxScan:
		return cli.Failed("Invalid flag", "--scan-min must be at most --scan-max and half of --lease, not %s.", o.MinScan)
	case o.Retention < 0 || o.Retention > 0 && o.Retention < leastRetention:
		return cli.Failed("Invalid flag", "--retention must be 0 or at least %s, not %s.", leastRetention, o.Retention)
	case o.ClaimBatch < 0:
		return cli.Failed("Invalid flag", "--claim-batch must not be negative.")
	case len(o.Address) > 200:
		return cli.Failed("Invalid flag", "--address must have at most 200 characters.")
	case o.OnAlert != "" && o.Webhook != "":
		return cli.Failed("Invalid flag", "--on-alert and --alert-webhook cannot be combined; let the program do both.")
	}
	if o.HTTP != "off" {
		if err := checkListen(o.HTTP, o.RemoteHTTP); err != nil {
			return err
		}
	}
	return o.checkAlerts(a)
}

// checkAlerts returns an error if the value of --alert-webhook or --on-alert is invalid. It
// replaces the value of --on-alert by the absolute path of the program.
func (o *Options) checkAlerts(a *cli.App) error {
	if o.Webhook != "" {
		u, err := url.Parse(o.Webhook)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return cli.Failed("Invalid flag", "--alert-webhook must be an http or https URL.")
		}
	}
	if o.OnAlert != "" {
		path := o.OnAlert
		if filepath.Base(path) != path {
			path = a.Path(path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return cli.Failed("Invalid flag", "--on-alert: %s is not a program that can be run.", o.OnAlert)
		}
		if o.OnAlert, err = filepath.Abs(found); err != nil {
			return cli.Failed("Invalid flag", "--on-alert: %s.", err)
		}
	}
	return nil
}

// node returns the options of the engine, made from the flags.
func (o *Options) node() engine.Options {
	n := engine.Options{
		Address: o.Address, Lease: o.Lease, MinScan: o.MinScan, MaxScan: o.MaxScan,
		ClaimBatch: o.ClaimBatch, ClaimInterval: o.ClaimInterval, Retention: o.Retention,
	}
	if n.MinScan > 0 && n.MaxScan == 0 {
		n.MaxScan = max(n.MinScan, min(10*time.Second, o.Lease/3))
	}
	return o.Ceilings.To(n)
}

// pushes reports whether a flag says where the engine pushes alerts.
func (o *Options) pushes() bool { return o.OnAlert != "" || o.Webhook != "" }

// checkListen returns an error if the value of --http is not an address with a port. It also
// returns an error if other machines could reach the address, unless the parameter `remote` is
// true: then the user allows this.
func checkListen(address string, remote bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Failed("Invalid flag", "--http must be ADDRESS:PORT, such as 127.0.0.1:9464, or off; not %q.", address)
	}
	if remote || host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return nil
	}
	return cli.Failed("Address is not local", "--http %s could be reached from other machines, and does not ask who they are. "+
		"Use 127.0.0.1 or [::1], or add --http-allow-remote where the network itself is guarded.", address)
}
