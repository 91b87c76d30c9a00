package apply

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine"
)

// An engineRun holds a running node, the function that stops the node, and a channel that receives
// the node's final error. The field `stopped` is true after the first interrupt.
type engineRun struct {
	node    *engine.Node
	stop    context.CancelFunc
	ended   chan error
	stopped bool
}

// interruptible calls fn and returns the error of fn. If the user presses Ctrl-C before fn has
// ended, interruptible cancels the context of fn and waits until fn ends. Then it returns an error,
// even if fn returned nil. But while the command follows the run, the function `interrupt` handles
// Ctrl-C.
func interruptible(ctx context.Context, w *work, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-w.stops:
		cancel()
		err := <-ended
		var unsure *cli.UnsureError
		switch {
		case err == nil:
			return cli.Failed("Interrupted", "The run was accepted and is kept; the next apply continues it.")
		case errors.As(err, &unsure):
			return err
		}
		return cli.Failed("Interrupted", "Nothing was started, as far as is known; applying again is safe where the run has a name or a unique key.")
	}
}

// leave stops the node and waits for its end. The node gives up its runs, so that other engines can
// continue them. Before that, the node waits for the calls in flight of these runs. If the user
// presses Ctrl-C during this time, the node does not wait any longer.
func leave(ctx context.Context, w *work, s *session.Session, e *engineRun) {
	e.stop()
	shown := showWaiting(ctx, w, s, "")
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-e.ended:
			w.showTaken(ctx, s, w.own)
			return
		case <-ticker.C:
			shown = showWaiting(ctx, w, s, shown)
		case <-w.stops:
			e.node.StopNow()
		}
	}
}

// showWaiting shows for which calls of other runs the command still waits, and returns this text.
// The parameter `shown` is the text that the previous call of showWaiting returned. If the text has
// not changed, it is not shown again.
func showWaiting(ctx context.Context, w *work, s *session.Session, shown string) string {
	calls := w.waitingFor(ctx, s, w.own)
	if calls != "" && calls != shown {
		w.View.Note(calls)
	}
	return calls
}

// interrupt stops the node. At the first call, the node waits for its calls in flight before it
// stops. At a later call, the node stops without waiting.
func interrupt(w *work, e *engineRun) {
	if e.stopped {
		e.node.StopNow()
		return
	}
	e.stopped = true
	// First stop the node, then write the message that nothing more is started. In the other
	// order, the node could start a call after the message.
	e.stop()
	w.View.Note("Stopping: nothing more is started, running attempts may still end. Ctrl-C again leaves now; state is kept.")
}
