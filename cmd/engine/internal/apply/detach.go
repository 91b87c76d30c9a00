package apply

import (
	"context"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// detach records a run, or finds the run if it exists already. Afterwards an engine that serves
// the state works on the run.
func detach(ctx context.Context, a *cli.App, path string, o Options) error {
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
	s, err := session.OpenJoining(ctx, a, r.Dir, r.Shown)
	if err != nil {
		return err
	}
	defer s.Close()
	session.NoteState(a, s)
	w := &work{Feed: follow.NewFeed(render.NewPlain(a.Stderr, exit.OfFact), 0), a: a, r: r, o: o, path: path}
	defer w.View.End()
	if err := inTime(ctx, w, s); err != nil {
		return err
	}
	sub, err := recordRun(ctx, w, s)
	if err != nil {
		return err
	}
	row := store.RunRow{Head: store.Head{Name: sub.Name, State: status.RunQueued}, WorkflowName: r.Workflow.Name}
	if row.Key, err = uniqueKey(w); err != nil {
		return err
	}
	if sub.Exists {
		if row, err = s.Store.Find(ctx, sub.Name); err != nil {
			return s.Wrap("read run "+render.Clean(sub.Name)+", which exists already", err)
		}
		if err := attach(ctx, w, s, row); err != nil {
			return err
		}
	}
	return recorded(ctx, w, s, row, sub.Exists)
}

// recorded prints the name of the recorded run. It also warns if no living engine works on the
// state.
func recorded(ctx context.Context, w *work, s *session.Session, row store.RunRow, exists bool) error {
	members, err := s.Store.Live(ctx)
	live := len(members)
	if err != nil { // not fatal: the run is recorded already
		w.a.Note("Warning: it is not known whether an engine works on this state: %s", s.Wrap("look for engines", err))
		live = -1
	}
	if s.Locked {
		live = max(live, 1)
	}
	if w.a.JSON {
		m := map[string]any{"run": row.Name, "workflow": row.WorkflowName, "key": row.Key, "status": row.State.String(), "exists": exists}
		if live >= 0 {
			m["live_engines"] = live
		}
		return w.a.PrintJSON(m)
	}
	if exists {
		w.a.Note("Run %s exists already (%s).", row.Name, row.State)
	}
	if live == 0 && !row.State.Final() {
		w.a.Note("Warning: no engine works on this state now, so the run waits. Start one with: %s", serveCommand(w))
	}
	return w.a.Print("%s\n", row.Name)
}

// serveCommand returns a command line that starts an engine for this state. That engine would work
// on the recorded run.
func serveCommand(w *work) string {
	cmd := "engine" + w.globals() + " serve"
	if w.a.DSN == "" {
		cmd += " " + words.Quote(w.path)
	}
	return cmd
}
