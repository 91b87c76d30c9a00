package apply

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/render"
)

// Run brings a run of the workflow at path to its end. With --detach it only records the run, and
// with --each it only records one run for each line of a file. If the command did its work, but the
// run has not succeeded, Run returns only the exit code. If the command could not do its work, Run
// returns an error that says what failed.
func Run(ctx context.Context, a *cli.App, path string, o Options) error {
	if o.Each != "" || o.EachKey != "" {
		return each(ctx, a, path, o)
	}
	if o.Detach {
		return detach(ctx, a, path, o)
	}
	view := follow.NewView(a)
	if err := o.check(a); err != nil {
		return err
	}
	r, err := module.NewRequest(ctx, a, path, o.Workflow, o.Values, o.Agents)
	if err != nil {
		return err
	}
	if o.Confirm {
		if err := confirm(ctx, a, r); err != nil {
			return err
		}
	}
	noteUnlocked(a, r)
	// The run must continue when the program that reads the output has ended, so the command
	// catches SIGPIPE. It does not ignore SIGPIPE, because agents and their child programs would
	// inherit that setting.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	defer a.EndOnSecondSignal(syscall.SIGHUP)()
	w := &work{Feed: follow.NewFeed(view, 0), a: a, r: r, o: o, path: path, stops: stops, circuits: make(chan render.Circuit, 64), others: newOthers(r.Workflow)}
	end, err := w.run(ctx)
	view.End()
	follow.RestoreLog(a)
	if err != nil {
		return err
	}
	return w.finish(end)
}
