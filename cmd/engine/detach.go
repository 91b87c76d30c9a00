package main

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
)

// detach records a run, or finds the one there is, and leaves the work to an
// engine that serves the state.
func (a *app) detach(ctx context.Context, path string, o applyOptions) error {
	if err := o.check(a); err != nil {
		return err
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
	a.noteUnlocked(r)
	s, err := a.openDetached(ctx, r.module)
	if err != nil {
		return err
	}
	defer s.close()
	a.notePlace(s)
	w := &work{a: a, r: r, o: o, path: path, view: render.NewPlain(a.stderr, exitOfFact)}
	defer w.view.End()
	if err := w.inTime(ctx, s); err != nil {
		return err
	}
	sub, err := engine.Enqueue(ctx, a.visitor(s, engine.Options{Lease: applyLease}), engine.Submission{
		Definition: r.def, Workflow: r.wf.Name, Vars: r.vars, Name: o.runID, By: userName(),
	})
	if err != nil {
		return s.wrap("record the run", err)
	}
	row, err := s.store.Find(ctx, sub.Name)
	if err != nil {
		return s.wrap("find the run", err)
	}
	if sub.Exists {
		if err := w.attach(ctx, s, row); err != nil {
			return err
		}
	}
	return w.recorded(ctx, s, row, sub.Exists)
}

// openDetached opens the state to leave a run there: the embedded one also
// beside the process that holds it.
func (a *app) openDetached(ctx context.Context, m *module) (*session, error) {
	s, err := a.openWriter(ctx, m)
	var locked *engine.LockedError
	if !errors.As(err, &locked) {
		return s, err
	}
	t, err := a.target(m.dir, m.shown)
	if err != nil {
		return nil, err
	}
	s, err = a.openTo(ctx, t, toSpeak)
	if s != nil {
		s.held = true
	}
	return s, err
}

// recorded tells the run's name, and whether anybody is there to work on it.
func (w *work) recorded(ctx context.Context, s *session, row engine.RunRow, exists bool) error {
	live, err := s.store.LiveEngines(ctx)
	if err != nil {
		return s.wrap("look for engines", err)
	}
	if s.held {
		live = max(live, 1)
	}
	if w.a.json {
		return w.a.printJSON(map[string]any{
			"run": row.Name, "workflow": row.WorkflowName, "key": row.Key, "status": row.State.String(), "exists": exists, "live_engines": live,
		})
	}
	if exists {
		w.a.note("Run %s exists already (%s).", row.Name, row.State)
	}
	if live == 0 && !row.State.Final() {
		w.a.note("Warning: no engine works on this state now, so the run waits. Start one with: %s", w.serveCommand())
	}
	return w.a.print("%s\n", row.Name)
}

// serveCommand is the command that works on what is recorded.
func (w *work) serveCommand() string {
	cmd := "engine" + w.globals() + " serve"
	if w.a.dsn == "" {
		cmd += " " + quoteArg(w.path)
	}
	return cmd
}
