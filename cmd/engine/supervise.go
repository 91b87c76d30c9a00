package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

type superviseOptions struct {
	once  bool
	every time.Duration
}

func superviseCommand(a *app) *cobra.Command {
	var o superviseOptions
	cmd := &cobra.Command{
		Use:   "supervise --once|--every D [PATH]",
		Short: "Make passes of the Supervisor: one, as for cron, or one after another",
		Long: `Makes one scan of the open runs that no living engine works on. Attempts and runs
whose time has passed get that event, engines that have died are fenced, and the
decisions are recorded. It calls no agents: engines that serve the state make the
calls that are decided here, and may take the runs at once.

Every ` + "`engine serve` and `engine apply`" + ` does the same all the time. This command
is for a cron job beside them, or where nothing runs for long. Without --dsn the
state is the embedded file beside PATH, or in this directory.`,
		Args: wants("[PATH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runner().supervise(cmd.Context(), argument(args, "."), o)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "make one pass and exit")
	cmd.Flags().DurationVar(&o.every, "every", 0, "make a pass this often until told to stop; not on an embedded state")
	return cmd
}

func (a runner) supervise(ctx context.Context, path string, o superviseOptions) error {
	switch {
	case o.once && o.every != 0:
		return failed("Invalid flags", "--once and --every cannot be combined.")
	case o.every != 0 && o.every < oncePeriod:
		return failed("Invalid flag", "--every must be at least %s, not %s.", oncePeriod, o.every)
	case !o.once && o.every == 0:
		return failed("Missing flag", "`engine supervise` needs --once for one pass, or --every D for one after another. What works on runs too is `engine serve`.")
	}
	m, err := a.opener().locate(path)
	if err != nil {
		return err
	}
	t, err := a.speaker().target(m.dir, m.shown)
	if err != nil {
		return err
	}
	if t.postgres == "" && o.every != 0 {
		return failed("Invalid flag", "--every is for a PostgreSQL database: an embedded state is held by one process at a time, and looked after by it. Use --once.")
	}
	if t.postgres == "" {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return noState(t)
		}
	}
	s, err := a.opener().open(ctx, t, false)
	if err != nil {
		return err
	}
	defer s.close()
	if o.every != 0 {
		return a.superviseEvery(ctx, s, o.every)
	}
	p, err := engine.SuperviseOnce(ctx, a.opener().visitor(s, engine.Options{Lease: onceLease, MaxScan: oncePeriod}))
	if err != nil {
		return s.wrap("supervise", err)
	}
	return a.supervised(p)
}

// superviseEvery makes passes until a signal: a Supervisor in a process of its own
// (S68). A pass that fails is told and made again, but for what the state has lost.
func (a runner) superviseEvery(ctx context.Context, s *session, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on a signal ends the process
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		p, err := engine.SuperviseOnce(ctx, a.opener().visitor(s, engine.Options{Lease: onceLease, MaxScan: oncePeriod}))
		var loss *store.LossError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &loss):
			return s.wrap("supervise", err)
		case err != nil:
			a.logger().Warn("supervise", "error", err)
		case p.Taken > 0 || a.json:
			if err := a.supervised(p); err != nil {
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

const (
	onceLease  = 30 * time.Second // how overdue a living engine's run must be, too
	oncePeriod = time.Second      // of its own scans, while it works
)

// supervised tells what a pass found.
func (a runner) supervised(p engine.PassStats) error {
	switch {
	case a.json:
		return a.printJSON(map[string]any{
			"passed": p.Foreign, "due": p.Due, "taken_over": p.Taken, "lag_ms": p.Lag.Milliseconds(), "took_ms": p.Took.Milliseconds(),
		})
	case p.Due == 0 && p.Taken == 0:
		return a.print("Nothing is due. Took %s.\n", render.Span(p.Took))
	}
	return a.print("%s moved on: time had passed for what no engine worked on. Took %s.\n", render.Count(max(p.Due, p.Taken), "run"), render.Span(p.Took))
}
