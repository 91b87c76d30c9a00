package main

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine"
)

// interruptible calls fn, which a signal ends: nothing is shown yet that it
// could stop in order.
func (w *work) interruptible(ctx context.Context, fn func(context.Context) error) error {
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
		var unsure *unsureError
		switch {
		case err == nil:
			return failed("Interrupted", "The run was accepted and is kept; apply goes on with it.")
		case errors.As(err, &unsure):
			return err
		}
		return failed("Interrupted", "Nothing was started, as far as is known; applying again is safe where the run has a name or a unique key.")
	}
}

// An engineRun is a node and how to stop it.
type engineRun struct {
	node    *engine.Node
	stop    context.CancelFunc
	ended   chan error
	stopped bool
}

// leave stops the node and waits for its end. Attempts of other runs that it
// works on may still end; a signal leaves at once.
func (w *work) leave(e *engineRun) {
	e.stop()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for {
		select {
		case <-e.ended:
			return
		case <-late.C:
			w.view.Note("Waiting for running attempts of other runs to end. Ctrl-C leaves now.")
		case <-w.stops:
			e.node.StopNow()
		}
	}
}

// interrupt stops the node: first in order, then at once.
func (w *work) interrupt(e *engineRun) {
	if e.stopped {
		e.node.StopNow()
		return
	}
	e.stopped = true
	w.view.Note("Stopping: nothing more is started, running attempts may still end. Ctrl-C again leaves now; state is kept.")
	e.stop()
}
