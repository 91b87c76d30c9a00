package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
)

type superviseOptions struct{ once bool }

func (a *app) superviseCommand() *cobra.Command {
	var o superviseOptions
	cmd := &cobra.Command{
		Use:   "supervise --once [PATH]",
		Short: "Make one pass of the Supervisor, as for cron",
		Long: `Looks once at the open runs of the state that no living engine gets on with: what
has passed its time is told so, engines that are gone are fenced off, and what
follows is recorded. It calls no agents: engines that serve the state do what is
decided here, and may take the runs at once.

Every ` + "`engine serve` and `engine apply`" + ` does the same all the time. This command
is for a cron job beside them, or where nothing runs for long. Without --dsn the
state is the embedded file beside PATH, or in this directory.`,
		Args: wants("[PATH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.supervise(cmd.Context(), argument(args, "."), o)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "make one pass and exit")
	return cmd
}

func (a *app) supervise(ctx context.Context, path string, o superviseOptions) error {
	if !o.once {
		return failed("Missing flag", "`engine supervise` makes one pass and needs --once. What goes on all the time is `engine serve`.")
	}
	m, err := a.locate(path)
	if err != nil {
		return err
	}
	t, err := a.target(m.dir, m.shown)
	if err != nil {
		return err
	}
	if t.postgres == "" {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return noState(t)
		}
	}
	s, err := a.open(ctx, t, false)
	if err != nil {
		return err
	}
	defer s.close()
	p, err := engine.SuperviseOnce(ctx, a.visitor(s, engine.Options{Lease: onceLease, MaxScan: oncePeriod}))
	if err != nil {
		return s.wrap("supervise", err)
	}
	return a.supervised(p)
}

const (
	onceLease  = 30 * time.Second // how overdue a living engine's run must be, too
	oncePeriod = time.Second      // another pass so short ago makes this one needless
)

// supervised tells what a pass found.
func (a *app) supervised(p engine.PassStats) error {
	switch {
	case a.json:
		return a.printJSON(map[string]any{
			"passed": p.Foreign, "due": p.Due, "taken_over": p.Taken, "lag_ms": p.Lag.Milliseconds(), "took_ms": p.Took.Milliseconds(),
		})
	case !p.Foreign:
		return a.print("Another engine has just made the pass.\n")
	case p.Due == 0 && p.Taken == 0:
		return a.print("Nothing is due. Took %s.\n", render.Span(p.Took))
	}
	return a.print("%s moved on: time had passed for what no engine worked on. Took %s.\n", render.Count(max(p.Due, p.Taken), "run"), render.Span(p.Took))
}
