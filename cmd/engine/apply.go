package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// runner starts engines: apply, serve, supervise.
type runner struct{ *app }

type applyOptions struct {
	workflow string
	values   []givenValue
	runID    string
	confirm  bool
	only     bool
	detach   bool
	wait     time.Duration // 0 = until the run has ended
	agents   agentFlags
	ceilings ceilings
}

func applyCommand(a *app) *cobra.Command {
	var o applyOptions
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

Exit code: 0 succeeded, 4 ended otherwise and undid all that the workflow lets it
undo, 5 needs a human, 6 still open, 7 may have been accepted, 1 could not be
done. After 4 the last line names the steps with compensation = "none" whose
effects stay.`,
		Args: wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runner().apply(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.StringVar(&o.runID, "run-id", "", "name of the run")
	f.BoolVar(&o.confirm, "confirm", false, "show the plan and ask first")
	f.BoolVar(&o.only, "only", false, "leave other open runs alone")
	f.BoolVar(&o.detach, "detach", false, "record the run, print its name and leave it to an engine that serves")
	f.DurationVar(&o.wait, "wait-timeout", 0, "stop as Ctrl-C does if the run is still open after this time (exit 6)")
	valueFlags(cmd, &o.values)
	o.agents.add(cmd)
	o.ceilings.add(cmd)
	return cmd
}

func (a runner) apply(ctx context.Context, path string, o applyOptions) error {
	if o.detach {
		return a.follower().detach(ctx, path, o)
	}
	view := a.newView()
	if err := o.check(a.app); err != nil {
		return err
	}
	r, err := a.planner().request(ctx, path, o.workflow, o.values, o.agents)
	if err != nil {
		return err
	}
	if o.confirm {
		if err := a.confirm(ctx, r); err != nil {
			return err
		}
	}
	a.noteUnlocked(r)
	// A reader that goes away must not kill the run. The signal is caught, not
	// ignored: what is ignored would stay so in agents and their programs.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	defer a.endOnSecondSignal(syscall.SIGHUP)()
	w := &work{feed: newFeed(view, 0), a: a.app, r: r, o: o, path: path, stops: stops, circuits: make(chan render.Circuit, 64), others: newOthers()}
	end, err := w.run(ctx)
	view.End()
	a.restoreLog()
	if err != nil {
		return err
	}
	return w.finish(end)
}

// noteUnlocked says that no lock file chose the agents.
func (a runner) noteUnlocked(r *request) {
	if !r.locked && len(r.used) > 0 {
		a.note("No lock file: using the agents that are installed. `engine init` locks their versions and checksums.")
	}
}

// check refuses flags that cannot be meant.
func (o *applyOptions) check(a *app) error {
	switch {
	case a.json && o.confirm:
		return failed("Invalid flag", "--confirm cannot be combined with --json.")
	case o.wait < 0:
		return failed("Invalid flag", "--wait-timeout must be above zero.")
	case o.detach && (o.wait > 0 || o.only):
		return failed("Invalid flag", "--detach waits for nothing and works on nothing: it cannot be combined with --wait-timeout or --only.")
	}
	if _, given := naming.ParseRunName(o.runID); given {
		return nil // if there is such a run, it is the one that is meant
	}
	if err := (naming.Names{Name: o.runID}).Validate(); err != nil {
		return failed("Invalid flag", "--run-id: %s.", strings.TrimPrefix(err.Error(), "engine: "))
	}
	return nil
}

// newView chooses how progress is shown and sends log lines through it.
func (a runner) newView() render.View {
	a.logger()
	a.runs.expect()
	if a.json {
		j := render.NewJSON(a.stdout, engineVersion, exitOfFact, a.now)
		a.stream = j
		return j
	}
	if !a.live(a.stderr) {
		p := render.NewPlain(a.stderr, exitOfFact)
		a.logs.set(p)
		return p
	}
	t := render.NewTerminal(a.stderr, render.TerminalOptions{
		Size: func() (int, int) {
			if columns, lines, ok := size(a.stderr); ok {
				return columns, lines
			}
			return 80, 24
		},
		Exit: exitOfFact, Color: a.color(a.stderr), ASCII: !a.unicode(),
	})
	a.logs.set(t)
	return t
}

// restoreLog sends log lines to stderr again.
func (a runner) restoreLog() {
	if a.logs != nil {
		a.logs.set(a.stderr)
		a.runs.release()
	}
}

// unicode reports whether the locale can show more than ASCII.
func (a runner) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := a.env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// confirm shows the plan and asks.
func (a runner) confirm(ctx context.Context, r *request) error {
	p, err := a.planner().planOf(ctx, r)
	if err != nil {
		return err
	}
	if err := p.write(a.stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if err := a.print("Apply this? Only \"yes\" goes on: "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return failed("Not confirmed", "Nothing was started.")
	}
	if err != nil && !errors.Is(err, io.EOF) { // an answer may lack the line break
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// permanent reports whether asking the store again would bring the same error.
func permanent(err error) bool {
	var run *journal.RunError
	var key *crypt.KeyError
	return errors.As(err, &run) || errors.As(err, &key) || errors.Is(err, store.ErrNotFound)
}
