package main

import (
	"fmt"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// An outcome is how the command's run stands when the command ends.
type outcome struct {
	run   string
	state *machine.State
}

// finish prints the result and turns it into the exit code.
func (w *work) finish(end outcome) error {
	code := exitRun(end.state.Status(), int(end.state.Run().Left))
	if !w.a.json {
		if err := w.a.printOutputs(story.Outputs(end.state)); err != nil {
			return err
		}
	}
	name := render.Clean(end.run)
	switch code {
	case exitOpen:
		w.remark("Run %s is open and kept. Go on with: %s", name, w.again(end.run))
	case exitHuman:
		w.remark("%s", humanNote(name, end.state, w.explainCommand(end.run)))
	}
	if code == exitOK {
		return nil
	}
	return exitError(code)
}

// humanNote says why a run's exit code is exitHuman.
func humanNote(name string, state *machine.State, explain string) string {
	if state.Status().Final() {
		return fmt.Sprintf("Run %s has ended, with %s left in place by an operator.", name, render.Count(int(state.Run().Left), "effect"))
	}
	return fmt.Sprintf("Run %s needs a human. What to do: %s", name, explain)
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
func (a *app) printOutputs(values []story.NamedValue) error {
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

// explainCommand is the command that says what to do about a run.
func (w *work) explainCommand(run string) string { return w.lookCommand("explain", run) }

// lookCommand is a command that looks at a run of this state.
func (w *work) lookCommand(name, run string) string {
	cmd := "engine" + w.globals()
	if w.a.dsn == "" && w.r.shown != "." {
		cmd = "engine --chdir " + quoteArg(w.a.path(w.r.shown))
	}
	return cmd + " " + name + " " + quoteArg(run)
}

// globals are the global flags to repeat. A DSN may hold a password, so only
// that it has to be there is said.
func (w *work) globals() string {
	s := ""
	if w.a.chdir != "" {
		s += " --chdir " + quoteArg(w.a.chdir)
	}
	if w.a.dsn != "" && w.a.env("ENGINE_DSN") == "" {
		t, err := w.a.speaker().target(".", ".")
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
