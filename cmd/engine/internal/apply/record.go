package apply

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store"
)

// rereadPatience is how long the command looks for a run after the store did not answer its
// submission.
const rereadPatience = 5 * time.Second

// recordRun submits the run to the store. Ctrl-C, or another signal of the operating system, ends
// the submission even while the store does not answer. Then recordRun looks for the run in the
// store. If it does not find the run, the command does not know whether the run was accepted, and
// the error says so.
func recordRun(ctx context.Context, w *work, s *session.Session) (store.Submitted, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// After the first signal, signals are not caught any more. So a second signal ends the process.
	context.AfterFunc(ctx, stop)
	all, err := engine.EnqueueAll(ctx, engines.Visitor(w.a, s, w.o.Ceilings.To(engine.Options{Lease: applyLease})), []engine.Submission{{
		Definition: w.r.Def, Workflow: w.r.Workflow.Name, Vars: w.r.Vars, Name: w.o.RunID, By: cli.UserName(),
		ReplyTo: w.o.ReplyTo, Correlation: w.o.Correlation, StartBy: w.o.startBy(), Priority: w.o.priority(),
	}})
	sub := all[0]
	switch {
	case sub.Err == nil:
		if err != nil { // not fatal: the run is recorded already
			w.a.Logger().Debug("end the membership", "error", err)
		}
		return sub.Submitted, nil
	case sub.Run == 0:
		return store.Submitted{}, s.Wrap("record the run", sub.Err)
	}
	return reread(ctx, w, s, sub.Submitted, sub.Err)
}

// reread looks for a run after the store did not answer its submission. It does so even after
// Ctrl-C or another signal of the operating system. If it does not find the run, the error
// says that the run may have been accepted.
func reread(ctx context.Context, w *work, s *session.Session, sub store.Submitted, why error) (store.Submitted, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadPatience)
	defer cancel()
	row, err := s.Store.Find(ctx, sub.Name)
	if err == nil && row.Run == sub.Run {
		return sub, nil
	}
	return store.Submitted{}, unsure(w, s, sub.Name, why)
}

// unsure returns an error that says: it is not known whether the run was accepted, because the
// store did not answer. The parameter `why` is the error of the store.
func unsure(w *work, s *session.Session, run string, why error) error {
	return &cli.UnsureError{Run: run, Show: w.viewCommand("show", run), Safe: w.o.RunID != "" || w.r.Workflow.UniqueKey != nil, State: s.Shown, Err: why}
}
