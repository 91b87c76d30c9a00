package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

// A worker makes the calls that landed records ask for, and delivers what came
// of them (S11, S12). When a call's complete-by passes it says nothing: only
// the Supervisor says that time has passed (S17, S18).
type worker struct {
	n        *Node
	async    invoke.AsyncInvoker // nil = each call takes a goroutine
	evidence *evidence
	ctx      context.Context // of every call without a goroutine; ends when the node stops at once
	cancel   context.CancelFunc

	mu    sync.Mutex // protects following fields
	calls map[callID]*openCall
	ends  chan struct{} // closed when the last call ends; nil = no goroutine waits
	quit  bool          // no call is started any more
}

type callID struct {
	run     machine.RunID
	attempt machine.AttemptID
}

func newWorker(n *Node) *worker {
	w := &worker{n: n, evidence: &evidence{n: n}, calls: map[callID]*openCall{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.async, _ = n.cfg.Invoker.(invoke.AsyncInvoker)
	return w
}

// start makes a call. It does not block. The call outlives the incarnation of
// the engine that started it: its answer counts even if another engine owns the run
// by then (language.md, What counts). stopAll ends it.
func (w *worker) start(e callSpec) {
	c := &openCall{w: w, callSpec: e}
	c.sender.init(c)
	c.reservation.init(e.capacity, e.spec)
	w.mu.Lock()
	if w.quit {
		w.mu.Unlock()
		c.reservation.release()
		return
	}
	w.calls[c.id()] = c
	w.mu.Unlock()
	if w.async != nil && !c.slow() {
		c.begin()
		return
	}
	go c.begin()
}

// send notes that a call leaves this process now. It reports false if the run
// has been told that it never will.
func (w *worker) send(c *openCall) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.phase == callRecalled {
		return false
	}
	c.phase = callSent
	return true
}

// recall makes sure that a call which is still being prepared is never sent.
// It reports whether that is so: then its outcome is not in doubt.
func (w *worker) recall(run machine.RunID, attempt machine.AttemptID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls[callID{run, attempt}]
	if c == nil || c.phase != callPreparing {
		return false
	}
	c.phase = callRecalled
	return true
}

func (w *worker) end(c *openCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[c.id()] == c {
		delete(w.calls, c.id())
	}
	if len(w.calls) == 0 && w.ends != nil {
		close(w.ends)
		w.ends = nil
	}
}

// stop tells the agent that an answer is not wanted any more.
func (w *worker) stop(run machine.RunID, attempt machine.AttemptID) {
	w.mu.Lock()
	c := w.calls[callID{run, attempt}]
	var sent invoke.Started
	if c != nil {
		sent = c.unwantLocked()
	}
	w.mu.Unlock()
	if sent != nil {
		sent.Stop()
	}
}

// stopAll cuts every call off and starts no other. The
// engine that takes the runs over finds out what became of them.
func (w *worker) stopAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quit = true
	w.cancel()
	for _, c := range w.calls {
		if c.cancel != nil {
			c.cancel()
		}
	}
}

func (w *worker) quits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// wait returns when no call is in flight and what came too late is kept. It
// waits no longer than the latest complete-by plus grace, in case an Invoker
// does not keep to it.
func (w *worker) wait(ctx context.Context, grace time.Duration) error {
	if err := w.waitCalls(ctx, grace); err != nil {
		return err
	}
	w.evidence.wait(ctx, grace)
	return nil
}

func (w *worker) waitCalls(ctx context.Context, grace time.Duration) error {
	for {
		w.mu.Lock()
		if len(w.calls) == 0 {
			w.mu.Unlock()
			return nil
		}
		if w.ends == nil {
			w.ends = make(chan struct{})
		}
		ends, latest := w.ends, time.Time{}
		for _, c := range w.calls {
			if c.invoke.CompleteBy.After(latest) {
				latest = c.invoke.CompleteBy
			}
		}
		w.mu.Unlock()
		timer := time.NewTimer(w.n.clock.Until(latest) + grace)
		select {
		case <-ends:
			timer.Stop()
		case <-timer.C:
			return errors.New("a call did not end by its complete-by")
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
