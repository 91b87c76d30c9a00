package serving

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// onceLease is the lease of the engine that makes a scan for `engine supervise`. It also limits
	// which runs of another living engine the scan takes over: only runs that are late by more than
	// onceLease.
	onceLease = 30 * time.Second
	// oncePeriod is the shortest pause that --every accepts. It is also the option MaxScan of the
	// engine that makes the scan.
	oncePeriod = time.Second
)

// SuperviseOptions are the flags of supervise.
type SuperviseOptions struct {
	Once  bool
	Every time.Duration
}

// Supervise makes one scan of the Supervisor. With --every, it repeats the scan until Ctrl-C
// or another signal of the operating system.
func Supervise(ctx context.Context, a *cli.App, path string, o SuperviseOptions) error {
	switch {
	case o.Once && o.Every != 0:
		return cli.Failed("Invalid flags", "--once and --every cannot be combined.")
	case o.Every != 0 && o.Every < oncePeriod:
		return cli.Failed("Invalid flag", "--every must be at least %s, not %s.", oncePeriod, o.Every)
	case !o.Once && o.Every == 0:
		return cli.Failed("Missing flag", "`engine supervise` needs --once for one scan, or --every D for one scan after another. `engine serve` also works on runs.")
	}
	m, err := module.Locate(a, path)
	if err != nil {
		return err
	}
	t, err := session.Resolve(a, m.Dir, m.Shown)
	if err != nil {
		return err
	}
	if t.Postgres == "" && o.Every != 0 {
		return cli.Failed("Invalid flag", "--every is for a PostgreSQL database: only one process at a time works on an embedded state, and this process makes the scans. Use --once.")
	}
	if t.Postgres == "" {
		if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
			return session.NoState(t)
		}
	}
	s, err := session.Open(ctx, a, t, false)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.Every != 0 {
		return superviseEvery(ctx, a, s, o.Every)
	}
	p, err := engine.SuperviseOnce(ctx, engines.Visitor(a, s, engine.Options{Lease: onceLease, MaxScan: oncePeriod}))
	if err != nil {
		return s.Wrap("supervise", err)
	}
	return supervised(a, p)
}

// superviseEvery makes scans of the Supervisor, one after the other, until Ctrl-C or another signal
// of the operating system. With it, the Supervisor can run in a separate process (S68). If a scan
// fails, superviseEvery logs the error and makes the next scan. But if the state has lost committed
// work, superviseEvery ends with an error.
func superviseEvery(ctx context.Context, a *cli.App, s *session.Session, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		p, err := engine.SuperviseOnce(ctx, engines.Visitor(a, s, engine.Options{Lease: onceLease, MaxScan: oncePeriod}))
		var loss *store.LossError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &loss):
			return s.Wrap("supervise", err)
		case err != nil:
			a.Logger().Warn("supervise", "error", err)
		case p.Taken > 0 || a.JSON:
			if err := supervised(a, p); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// supervised prints the results of one scan of the Supervisor.
func supervised(a *cli.App, p engine.PassStats) error {
	switch {
	case a.JSON:
		return a.PrintJSON(map[string]any{
			"passed": p.Foreign, "due": p.Due, "taken_over": p.Taken, "lag_ms": p.Lag.Milliseconds(), "took_ms": p.Took.Milliseconds(),
		})
	case p.Due == 0 && p.Taken == 0:
		return a.Print("Nothing is due. Took %s.\n", render.Span(p.Took))
	}
	return a.Print("%s moved on: time had passed for what no engine worked on. Took %s.\n", render.Count(max(p.Due, p.Taken), "run"), render.Span(p.Took))
}
