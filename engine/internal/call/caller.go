package call

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Caller makes the calls of landed records, and delivers their answers (S11, S12). It
// does nothing when the complete-by of a call passes: only the Supervisor reports that time
// has passed (S17, S18).
type Caller struct {
	cfg      Config
	async    invoke.AsyncInvoker // nil = each call takes a goroutine
	evidence *evidence
	ctx      context.Context // of every call without a goroutine; ends when the node stops at once
	cancel   context.CancelFunc

	mu    sync.Mutex // protects following fields
	calls map[callID]*Call
	ends  chan struct{} // closed when the last call ends; nil = no goroutine waits
	quit  bool          // no further call is started
}

type callID struct {
	run     status.RunID
	attempt machine.AttemptID
}

// New returns a Caller without calls.
func New(cfg Config) *Caller {
	w := &Caller{cfg: cfg, evidence: &evidence{cfg: &cfg}, calls: map[callID]*Call{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.async, _ = cfg.Invoker.(invoke.AsyncInvoker)
	return w
}

// Start makes a call. It does not block. The call outlives the membership of
// the engine that started it: its answer counts even if another engine owns the run
// by then (language.md, What counts). StopAll ends it.
func (w *Caller) Start(e Spec) {
	c := &Call{w: w, Spec: e}
	c.sender.init(c)
	c.reservation.init(e.Capacity, e.Agent)
	w.mu.Lock()
	if w.quit {
		w.mu.Unlock()
		c.reservation.Release()
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

// send notes that a call leaves this process now. It reports false if the run was told
// already that the call is not sent.
func (w *Caller) send(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.phase == callRecalled {
		return false
	}
	c.phase = callSent
	return true
}

// Recall stops a call that is still being prepared. It reports whether the call is
// certainly never sent: then its outcome is known.
func (w *Caller) Recall(run status.RunID, attempt machine.AttemptID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.calls[callID{run, attempt}]
	if c == nil || c.phase != callPreparing {
		return false
	}
	c.phase = callRecalled
	return true
}

func (w *Caller) end(c *Call) {
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

// Stop tells the agent that an answer is no longer wanted.
func (w *Caller) Stop(run status.RunID, attempt machine.AttemptID) {
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

// StopAll ends every call at once, and lets no other start. The engine that takes the runs
// over finds out the outcomes of these calls.
func (w *Caller) StopAll() {
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

func (w *Caller) quits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// Wait returns when no call is in flight and all late answers are stored. It waits until
// the latest complete-by plus grace at most, in case an Invoker ignores complete-by.
func (w *Caller) Wait(ctx context.Context, grace time.Duration) error {
	if err := w.waitCalls(ctx, grace); err != nil {
		return err
	}
	w.evidence.wait(ctx, grace)
	return nil
}

func (w *Caller) waitCalls(ctx context.Context, grace time.Duration) error {
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
			if c.Invoke.CompleteBy.After(latest) {
				latest = c.Invoke.CompleteBy
			}
		}
		w.mu.Unlock()
		timer := time.NewTimer(w.cfg.Clock.Until(latest) + grace)
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

// InFlight returns how many calls are in flight.
func (w *Caller) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}
