package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// A worker makes the calls that landed records ask for, one goroutine for each
// call in flight, and delivers what came of them (S11, S12). When a call's
// complete-by passes it says nothing: only the Supervisor says that time has
// passed (S17, S18).
type worker struct {
	n       *Node
	deliver func(ctx context.Context, run machine.RunID, d *delivery) error

	mu    sync.Mutex // protects following fields
	calls map[callID]*running
	ends  chan struct{} // closed when the last call ends; nil = nobody waits
	quit  bool          // no call is started any more
}

type callID struct {
	run     machine.RunID
	attempt machine.AttemptID
}

// running is a call in flight.
type running struct {
	stop   chan struct{} // closed when the answer is not wanted any more
	once   sync.Once
	cancel context.CancelFunc
	until  time.Time // complete-by by this process's clock
}

// An errand is one call with everything it needs, copied from its run.
type errand struct {
	run    machine.RunID
	name   string // public run id
	flow   *dsl.Workflow
	fence  int32
	spec   AgentSpec
	invoke machine.Invoke
	// sensitive are the sensitive strings of the run's variables and outputs.
	sensitive []string
}

// errand copies out of the run what the call needs.
func (sh *shard) errand(r *ownedRun, inv machine.Invoke) errand {
	return errand{run: r.id, name: r.state.Name(), flow: r.wf, fence: r.fence, spec: r.specs[inv.Agent], invoke: inv, sensitive: slices.Clip(r.sensitive)}
}

func newWorker(n *Node) *worker {
	return &worker{n: n, deliver: n.deliver, calls: map[callID]*running{}}
}

// start makes a call in a goroutine of its own. The call outlives the
// incarnation of the engine that started it, because its answer counts
// whoever owns the run by then (language.md, What counts); stopAll ends it.
func (w *worker) start(ctx context.Context, e errand) {
	left := w.n.clock.until(e.invoke.CompleteBy)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	c := &running{stop: make(chan struct{}), cancel: cancel, until: time.Now().Add(left)}
	id := callID{e.run, e.invoke.Attempt}
	w.mu.Lock()
	if w.quit {
		w.mu.Unlock()
		cancel()
		w.release(e)
		return
	}
	w.calls[id] = c
	w.mu.Unlock()
	go func() {
		defer cancel()
		d := w.call(ctx, e, c)
		w.release(e)
		if d != nil {
			w.report(ctx, e, d)
		}
		w.end(id, c)
	}()
}

// release gives the slot back that the scheduler reserved.
func (w *worker) release(e errand) {
	if w.n.cfg.Capacity != nil {
		w.n.cfg.Capacity.Release(e.spec, 1)
	}
}

func (w *worker) end(id callID, c *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[id] == c {
		delete(w.calls, id)
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
	w.mu.Unlock()
	if c != nil {
		c.once.Do(func() { close(c.stop) })
	}
}

// stopAll cuts every call off and starts no other. What became of them is
// found out by whoever takes the runs over.
func (w *worker) stopAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quit = true
	for _, c := range w.calls {
		c.cancel()
	}
}

// wait returns when no call is in flight. It waits no longer than the latest
// complete-by plus grace, in case an Invoker does not keep to it.
func (w *worker) wait(ctx context.Context, grace time.Duration) error {
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
			if c.until.After(latest) {
				latest = c.until
			}
		}
		w.mu.Unlock()
		timer := time.NewTimer(time.Until(latest) + grace)
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

// call makes the call and returns what to deliver; nil = nothing.
func (w *worker) call(ctx context.Context, e errand, c *running) (d *delivery) {
	redact := &redactor{}
	sent := false
	defer func() {
		if p := recover(); p != nil {
			// A panic before the call proves that nothing was sent.
			w.n.cfg.Logger.Error("call panicked", "run", e.run, "step", e.step(), "panic", redact.text(fmt.Sprint(p)))
			if sent {
				d = w.answer(e, machine.AttemptUnknown{Attempt: e.invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"})
			} else {
				d = w.notSent(e, w.n.cfg.Options.RetryHeld, "preparing the call panicked")
			}
		}
	}()
	input, redact, err := w.input(e)
	if err != nil {
		return w.notSent(e, w.n.cfg.Options.RetryHeld, err.Error())
	}
	left := w.n.clock.until(e.invoke.CompleteBy)
	switch {
	case left <= 0:
		return w.notSent(e, 0, "its complete-by had passed before it could be sent")
	case !w.n.clock.leased():
		return w.notSent(e, w.n.cfg.Options.MinScan, whyNoLease)
	}
	sent = true
	reply, err := w.n.cfg.Invoker.Invoke(ctx, Call{
		Agent: e.spec, Stop: c.stop,
		Request: sdk.Request{
			Action: e.invoke.Action, Purpose: e.invoke.Purpose, Input: input,
			IdempotencyKey: e.invoke.IdempotencyKey, ForwardKey: e.invoke.ForwardKey,
			CompleteBy: time.Now().Add(left).UTC(), Remaining: left,
			Run: e.name, Workflow: e.flow.Name, Step: e.step(), Attempt: e.invoke.Number, Fence: int64(e.fence),
		},
	})
	var deferred *Deferred
	switch {
	case errors.As(err, &deferred):
		sent = false
		pause := w.n.cfg.Options.MinScan // it had a slot, so it need not wait for one
		if !deferred.Until.IsZero() {
			pause = time.Until(deferred.Until)
		}
		return w.notSent(e, pause, redact.text(deferred.Why))
	case err != nil && ctx.Err() != nil:
		return nil // nothing is known and nothing may be concluded
	case err != nil:
		return w.answer(e, machine.AttemptUnknown{Attempt: e.invoke.Attempt, Code: sdk.CodeInternal, Message: redact.text(err.Error())})
	case !w.n.clock.now().Before(e.invoke.CompleteBy):
		w.n.late(e.run, e.invoke.Attempt)
		return nil
	}
	return w.answer(e, e.event(reply, redact, w.n.cfg.Options.MaxValue))
}

// answer makes the delivery of what an agent answered.
func (w *worker) answer(e errand, event machine.Event) *delivery {
	return &delivery{event: event, arrived: w.n.clock.now(), attempt: e.invoke.Attempt, completeBy: e.invoke.CompleteBy}
}

// notSent says that the call was not sent and should be tried again after
// pause, in store time.
func (w *worker) notSent(e errand, pause time.Duration, why string) *delivery {
	until := w.n.clock.now().Add(max(0, pause))
	return w.answer(e, machine.AttemptDeferred{Attempt: e.invoke.Attempt, Until: until, Why: why})
}

// report delivers until the run has it. A run that this engine lost may come
// back to it under a new incarnation before the attempt's complete-by; past
// that the answer would be late.
func (w *worker) report(ctx context.Context, e errand, d *delivery) {
	ctx = context.WithoutCancel(ctx)
	pause := 10 * time.Millisecond
	for {
		err := w.deliver(ctx, e.run, d)
		var aside *RunError
		switch {
		case err == nil:
			return
		case errors.As(err, &aside), errors.Is(err, ErrNotFound):
			return // reported where it was set aside
		case !w.n.clock.now().Before(d.completeBy):
			w.n.late(e.run, e.invoke.Attempt)
			return
		}
		w.mu.Lock()
		quit := w.quit
		w.mu.Unlock()
		if quit || sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, time.Second)
	}
}

// step returns the step's name as agents and people see it.
func (e errand) step() string {
	name := e.flow.Steps[e.invoke.Step].Name
	if e.invoke.Key == "" && e.flow.Steps[e.invoke.Step].ForEach == nil {
		return name
	}
	return fmt.Sprintf("%s[%q]", name, e.invoke.Key)
}
