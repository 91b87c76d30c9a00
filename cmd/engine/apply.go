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

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

type applyOptions struct {
	workflow string
	values   []givenValue
	runID    string
	confirm  bool
	only     bool
	agents   agentFlags
}

func (a *app) applyCommand() *cobra.Command {
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

Exit code: 0 succeeded, 4 ended otherwise with nothing left behind, 5 needs a
human, 6 still open, 1 could not be done.`,
		Args: wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.apply(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.StringVar(&o.runID, "run-id", "", "name of the run")
	f.BoolVar(&o.confirm, "confirm", false, "show the plan and ask first")
	f.BoolVar(&o.only, "only", false, "leave other open runs alone")
	valueFlags(cmd, &o.values)
	o.agents.add(cmd)
	return cmd
}

func (a *app) apply(ctx context.Context, path string, o applyOptions) error {
	view := a.newView()
	if a.json && o.confirm {
		return failed("Invalid flag", "--confirm cannot be combined with --json.")
	}
	r, err := a.request(ctx, path, o.workflow, o.values, o.agents)
	if err != nil {
		return err
	}
	if o.confirm {
		if err := a.confirm(ctx, r); err != nil {
			return err
		}
	}
	if !r.locked && len(r.used) > 0 {
		a.note("No lock file: using the agents that are installed. `engine init` locks their versions and checksums.")
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away must not kill the run
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	w := &work{a: a, r: r, o: o, path: path, view: view, stops: stops, updates: make(chan func()), circuits: make(chan render.Circuit, 64)}
	end, err := w.run(ctx)
	view.End()
	a.restoreLog()
	if err != nil {
		return err
	}
	return w.finish(end)
}

// newView chooses how progress is shown and sends log lines through it.
func (a *app) newView() render.View {
	a.logger()
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
func (a *app) restoreLog() {
	if a.logs != nil {
		a.logs.set(a.stderr)
	}
}

// unicode reports whether the locale can show more than ASCII.
func (a *app) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := a.env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// confirm shows the plan and asks.
func (a *app) confirm(ctx context.Context, r *request) error {
	p, err := a.planOf(ctx, r)
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

// An outcome is how the command's run stands when the command ends.
type outcome struct {
	run   string
	state *machine.State
}

// finish prints the result and turns it into the exit code.
func (w *work) finish(end outcome) error {
	code := exitRun(end.state.Status(), end.state.LeftAsIs())
	if !w.a.json {
		if err := w.a.printOutputs(end.state.Outputs()); err != nil {
			return err
		}
	}
	name := render.Clean(end.run)
	switch code {
	case exitOpen:
		w.remark("Run %s is open and kept. Go on with: %s", name, w.again(end.run))
	case exitHuman:
		w.remark("Run %s needs a human. Look at it with: %s", name, w.showCommand(end.run))
	}
	if code == exitOK {
		return nil
	}
	return exitError(code)
}

// remark says something when the view has ended.
func (w *work) remark(format string, args ...any) {
	if j, ok := w.view.(*render.JSON); ok {
		j.Note(fmt.Sprintf(format, args...))
		return
	}
	w.a.note(format, args...)
}

// printOutputs writes a run's outputs to stdout.
func (a *app) printOutputs(values []machine.NamedValue) error {
	if len(values) == 0 {
		return nil
	}
	width := 0
	for _, v := range values {
		width = max(width, len(v.Name))
	}
	var b strings.Builder
	b.WriteString("Outputs:\n")
	for _, v := range values {
		text := render.SensitiveText
		if !v.Sensitive && len(v.Value.Sensitive()) == 0 {
			text = render.Literal(v.Value.JSON(), "  ")
		}
		fmt.Fprintf(&b, "  %-*s = %s\n", width, v.Name, text)
	}
	return a.print("%s", b.String())
}

// again is the command that goes on with a run.
func (w *work) again(run string) string {
	cmd := "engine" + w.globals() + " apply " + quoteArg(w.path) + " --run-id " + quoteArg(run)
	if len(w.r.given) > 0 {
		cmd += " with the same variables"
	}
	return cmd
}

func (w *work) showCommand(run string) string {
	cmd := "engine" + w.globals()
	if w.a.dsn == "" && w.r.shown != "." {
		cmd = "engine --chdir " + quoteArg(w.a.path(w.r.shown))
	}
	return cmd + " show " + quoteArg(run)
}

// globals are the global flags to repeat. A DSN may hold a password, so only
// that it has to be there is said.
func (w *work) globals() string {
	s := ""
	if w.a.chdir != "" {
		s += " --chdir " + quoteArg(w.a.chdir)
	}
	if w.a.dsn != "" && w.a.env("ENGINE_DSN") == "" {
		t, err := w.a.target(".", ".")
		if err == nil && t.postgres == "" {
			return s + " --dsn " + quoteArg("sqlite:"+t.shown)
		}
		s += " --dsn …"
	}
	return s
}

// quoteArg quotes an argument for a shell if need be.
func quoteArg(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n\"'\\$&|;<>()*?[]{}#~!`") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// permanent reports whether asking the store again would bring the same error.
func permanent(err error) bool {
	var run *engine.RunError
	var key *engine.KeyError
	return errors.As(err, &run) || errors.As(err, &key) || errors.Is(err, engine.ErrNotFound)
}
