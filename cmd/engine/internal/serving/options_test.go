package serving

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

func TestServeFlags(t *testing.T) {
	good := Options{Lease: 30 * time.Second, HTTP: "off"}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string // "" = accepted
	}{
		{"defaults", func(*Options) {}, ""},
		{"short lease", func(o *Options) { o.Lease = 500 * time.Millisecond }, "--lease must be at least 1s"},
		{"scan-max", func(o *Options) { o.MaxScan = 16 * time.Second }, "--scan-max must be at most half"},
		{"scan-min", func(o *Options) { o.MinScan, o.MaxScan = 5*time.Second, time.Second }, "--scan-min must be at most"},
		{"negative", func(o *Options) { o.Concurrency = -1 }, "--concurrency"},
		{"negative pause", func(o *Options) { o.ClaimInterval = -1 }, "--claim-interval"},
		{"retention", func(o *Options) { o.Retention = 720 * time.Hour }, ""},
		{"short retention", func(o *Options) { o.Retention = time.Second }, "--retention must be 0 or at least 1m"},
		{"negative retention", func(o *Options) { o.Retention = -time.Hour }, "--retention must be 0 or at least 1m"},
		{"negative batch", func(o *Options) { o.ClaimBatch = -1 }, "--claim-batch"},
		{"loopback", func(o *Options) { o.HTTP = "127.0.0.1:0" }, ""},
		{"loopback of six", func(o *Options) { o.HTTP = "[::1]:0" }, ""},
		{"localhost", func(o *Options) { o.HTTP = "localhost:9464" }, ""},
		{"everywhere", func(o *Options) { o.HTTP = ":9464" }, "could be reached from other machines"},
		{"every address of four", func(o *Options) { o.HTTP = "0.0.0.0:9464" }, "could be reached from other machines"},
		{"every address of six", func(o *Options) { o.HTTP = "[::]:9464" }, "could be reached from other machines"},
		{"remote", func(o *Options) { o.HTTP = "10.1.2.3:9464" }, "could be reached from other machines"},
		{"remote, wanted", func(o *Options) { o.HTTP, o.RemoteHTTP = ":9464", true }, ""},
		{"no port", func(o *Options) { o.HTTP = "localhost" }, "ADDRESS:PORT"},
		{"webhook", func(o *Options) { o.Webhook = "ftp://x" }, "http or https"},
		{"program", func(o *Options) { o.OnAlert = "/nowhere/x" }, "not a program"},
		{"both", func(o *Options) { o.OnAlert, o.Webhook = "/bin/sh", "http://x" }, "cannot be combined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good
			c.change(&o)
			err := o.check(&cli.App{})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			case c.want == "" && o.node().Lease != o.Lease:
				t.Error("the lease is lost")
			}
		})
	}
}
