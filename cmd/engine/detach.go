package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// detach records a run, or finds the one there is, and leaves the work to an
// engine that serves the state.
func (a follower) detach(ctx context.Context, path string, o applyOptions) error {
	if err := o.check(a.app); err != nil {
		return err
	}
	r, err := a.planner().request(ctx, path, o.workflow, o.values, o.agents)
	if err != nil {
		return err
	}
	if o.confirm {
		if err := a.runner().confirm(ctx, r); err != nil {
			return err
		}
	}
	a.runner().noteUnlocked(r)
	s, err := a.openDetached(ctx, r.module)
	if err != nil {
		return err
	}
	defer s.close()
	a.notePlace(s)
	w := &work{feed: newFeed(render.NewPlain(a.stderr, exitOfFact), 0), a: a.app, r: r, o: o, path: path}
	defer w.view.End()
	if err := w.inTime(ctx, s); err != nil {
		return err
	}
	sub, err := w.leaving().record(ctx, s)
	if err != nil {
		return err
	}
	row := store.RunRow{Head: store.Head{Name: sub.Name, State: status.RunQueued}, WorkflowName: r.wf.Name}
	if row.Key, err = w.attachment().key(); err != nil {
		return err
	}
	if sub.Exists {
		if row, err = s.store.Find(ctx, sub.Name); err != nil {
			return s.wrap("read run "+render.Clean(sub.Name)+", which exists already", err)
		}
		if err := w.attachment().attach(ctx, s, row); err != nil {
			return err
		}
	}
	return w.leaving().recorded(ctx, s, row, sub.Exists)
}

// record leaves the run in the state. A signal ends it also while the state does
// not answer. Whether the run has landed is then not known, and the error says so.
func (w leaving) record(ctx context.Context, s *session) (store.Submitted, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on a signal ends the process
	all, err := engine.EnqueueAll(ctx, w.a.opener().visitor(s, w.o.ceilings.to(engine.Options{Lease: applyLease})), []engine.Submission{{
		Definition: w.r.def, Workflow: w.r.wf.Name, Vars: w.r.vars, Name: w.o.runID, By: userName(),
	}})
	sub := all[0]
	switch {
	case sub.Err == nil:
		if err != nil { // the run is recorded all the same
			w.a.logger().Debug("end the membership", "error", err)
		}
		return sub.Submitted, nil
	case sub.Run == 0:
		return store.Submitted{}, s.wrap("record the run", sub.Err)
	}
	return w.reread(ctx, s, sub.Submitted, sub.Err)
}

// rereadPatience is how long a run that was sent and not answered is looked for.
const rereadPatience = 5 * time.Second

// reread asks once more for a run that was sent and not answered, also after a
// signal.
func (w leaving) reread(ctx context.Context, s *session, sub store.Submitted, why error) (store.Submitted, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadPatience)
	defer cancel()
	row, err := s.store.Find(ctx, sub.Name)
	if err == nil && row.Run == sub.Run {
		return sub, nil
	}
	return store.Submitted{}, w.unsure(s, sub.Name, why)
}

// unsure is the error about a run of which nobody knows whether it was accepted.
func (w leaving) unsure(s *session, run string, why error) error {
	return &unsureError{run: run, show: w.lookCommand("show", run), safe: w.o.runID != "" || w.r.wf.UniqueKey != nil, place: s.shown, err: why}
}

// An unsureError says that a run was sent to the state, which did not answer: the
// run may have been accepted.
type unsureError struct {
	run   string
	show  string // the command that tells
	safe  bool   // applying again cannot make a second run
	place string // where the state is
	err   error
}

// Error says what is not known.
func (e *unsureError) Error() string {
	return fmt.Sprintf("run %s may have been accepted: %v", e.run, e.err)
}

// Unwrap returns the cause.
func (e *unsureError) Unwrap() error { return e.err }

func (e *unsureError) explain() (summary, detail string) {
	again := "Applying again is safe: it finds the run if it is there."
	if !e.safe {
		again = "Look before you apply again: without a unique key or --run-id that would make a second run."
	}
	return "Run may have been accepted", fmt.Sprintf("%s did not answer when run %s was recorded there (%s). `%s` tells whether it was. %s",
		e.place, render.Clean(e.run), strings.TrimSuffix(render.Clean(e.err.Error()), "."), e.show, again)
}

// openDetached opens the state to leave a run there: the embedded one also
// while another process holds it.
func (a follower) openDetached(ctx context.Context, m *module) (*session, error) {
	s, err := a.opener().openWriter(ctx, m.dir, m.shown)
	var locked *sqlite.LockedError
	if !errors.As(err, &locked) {
		return s, err
	}
	t, err := a.speaker().target(m.dir, m.shown)
	if err != nil {
		return nil, err
	}
	s, err = a.opener().openTo(ctx, t, toSpeak)
	if s != nil {
		s.held = true
	}
	return s, err
}

// recorded tells the run's name, and whether there is an engine to work on it.
func (w leaving) recorded(ctx context.Context, s *session, row store.RunRow, exists bool) error {
	members, err := s.store.Live(ctx)
	live := len(members)
	if err != nil { // the run is recorded all the same
		w.a.note("Warning: whether an engine works on this state could not be asked: %s", s.wrap("look for engines", err))
		live = -1
	}
	if s.held {
		live = max(live, 1)
	}
	if w.a.json {
		m := map[string]any{"run": row.Name, "workflow": row.WorkflowName, "key": row.Key, "status": row.State.String(), "exists": exists}
		if live >= 0 {
			m["live_engines"] = live
		}
		return w.a.printJSON(m)
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
func (w leaving) serveCommand() string {
	cmd := "engine" + w.globals() + " serve"
	if w.a.dsn == "" {
		cmd += " " + quoteArg(w.path)
	}
	return cmd
}
