package call

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// New returns a Caller with no call in flight.
func New(cfg Config) *Caller {
	w := &Caller{cfg: cfg, calls: map[callID]*Call{}, kids: map[callID]*Call{}, evidence: &evidence{
		to: cfg.Store, sealer: cfg.Sealer, logger: cfg.Logger, stopped: cfg.Stopped, most: cfg.RetryStore,
	}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.async, _ = cfg.Invoker.(invoke.AsyncInvoker)
	return w
}

// StartCall starts a call and does not block. After StopAll, it starts no call, and only gives
// the slot of the call back. The call may continue after the end of the present membership. The
// call's answer counts even if another engine owns the run by then (language.md, What counts).
func (w *Caller) StartCall(e Spec) {
	c := &Call{w: w, Spec: e}
	c.sender.init(c)
	if e.Invoke.Agent == e.Flow.ChildAgent() {
		w.startChild(c)
		return
	}
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

// Recall prevents the sending of a call. It returns true if the call is certainly never sent.
// It returns false if the call was sent already, or is not in flight.
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

// StopCall notifies the agent that the answer to a call is not needed any more. If the call waits
// for a child run, StopCall asks the child to end.
func (w *Caller) StopCall(run status.RunID, stop machine.Stop) {
	if w.askChild(run, stop.Attempt, func(child ChildCall) { child.Stop(stop) }) {
		return
	}
	w.mu.Lock()
	c := w.calls[callID{run, stop.Attempt}]
	var sent invoke.Started
	if c != nil {
		sent = c.unwantLocked()
	}
	w.mu.Unlock()
	if sent != nil {
		sent.Stop()
	}
}

// StopAll ends every call of an agent at once and prevents new calls. It does not end the calls
// that wait for child runs. The engine that takes the runs over finds out the outcomes of the calls
// that were ended.
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

// Stopped reports whether StopAll was called.
func (w *Caller) Stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// Wait waits until no call of an agent is in flight, and then until no late reply waits to be
// stored. It waits for calls at most until the duration in the parameter `grace` has passed since
// the latest complete-by of all calls, because an Invoker may ignore complete-by. If a call is
// still in flight then, Wait returns an error, and does not wait for late replies. It waits for
// late replies at most for the duration `grace`.
func (w *Caller) Wait(ctx context.Context, grace time.Duration) error {
	if err := w.waitCalls(ctx, grace); err != nil {
		return err
	}
	w.evidence.wait(ctx, grace)
	return nil
}

// waitCalls waits until no call of an agent is in flight. See Wait.
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

// InFlight returns the number of calls of agents in flight.
func (w *Caller) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}
