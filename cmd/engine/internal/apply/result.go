package apply

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/story"
)

// finish prints the outputs of the run and remarks about the run, and returns the run's exit
// code as an error; nil = exit code 0.
func (w *work) finish(end follow.Outcome) error {
	code := end.Code()
	if !w.a.JSON {
		if err := w.a.PrintOutputs(story.Outputs(end.State)); err != nil {
			return err
		}
	}
	switch code {
	case exit.Open:
		same := ""
		if len(w.r.Given) > 0 {
			same = ", and the same variables"
		}
		w.remark("Run %s is open and kept. Go on with this command%s: %s", render.Clean(end.Run), same, w.again(end.Run))
	case exit.Human:
		if j, ok := w.View.(*render.JSON); ok && end.Through != "" {
			j.NeedsPerson(end.HumanNote(w.explainCommand), end.Through, code)
			break
		}
		w.remark("%s", end.HumanNote(w.explainCommand))
	}
	if code == exit.OK {
		return nil
	}
	return exit.Code(code)
}

// remark writes one line to the user after the view has ended.
func (w *work) remark(format string, args ...any) {
	if j, ok := w.View.(*render.JSON); ok {
		j.Note(fmt.Sprintf(format, args...))
		return
	}
	w.a.Note(format, args...)
}

// again is the method that returns the command line with which the user can continue the run.
func (w *work) again(run string) string {
	return "engine" + w.globals() + " apply " + words.Quote(w.path) + " --run-id " + words.Quote(run)
}

// explainCommand returns the command line `engine explain` for a run. That command says what to do
// about the run.
func (w *work) explainCommand(run string) string { return w.viewCommand("explain", run) }

// viewCommand returns a command line with which the user can look at a run of this state. The
// parameter `name` is the name of the command, such as "show".
func (w *work) viewCommand(name, run string) string {
	cmd := "engine" + w.globals()
	if w.a.DSN == "" && w.r.Shown != "." {
		cmd = "engine --chdir " + words.Quote(w.a.Path(w.r.Shown))
	}
	return cmd + " " + name + " " + words.Quote(run)
}

// globals returns the global flags that a suggested command line needs. A DSN of PostgreSQL
// may hold a password, so an ellipsis replaces it.
func (w *work) globals() string {
	s := ""
	if w.a.Chdir != "" {
		s += " --chdir " + words.Quote(w.a.Chdir)
	}
	if w.a.DSN != "" && w.a.Env("ENGINE_DSN") == "" {
		t, err := session.Resolve(w.a, ".", ".")
		if err == nil && t.Postgres == "" {
			return s + " --dsn " + words.Quote("sqlite:"+t.Shown)
		}
		s += " --dsn …"
	}
	return s
}
