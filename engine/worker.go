package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// A worker makes the calls that landed records ask for, one goroutine for each
// call in flight, and delivers what came of them (S11, S12). When a call's
// complete-by passes it says nothing: only the Supervisor says that time has
// passed (S17, S18).
type worker struct {
	n        *Node
	deliver  func(ctx context.Context, run machine.RunID, d *delivery) error
	evidence *evidence

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
	phase  callPhase // protected by worker.mu
}

// callPhase says whether a call has left this process.
type callPhase uint8

const (
	callPreparing callPhase = iota
	callSent                // perhaps it was
	callRecalled            // it never is: the run has been told so
)

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
	// refusals is how often in a row this node's call was not sent.
	refusals int
	// silence is how long the call may be silent (heartbeat_timeout); 0 = as
	// long as it runs.
	silence time.Duration
}

// errand copies out of the run what the call needs.
func (sh *shard) errand(r *ownedRun, inv machine.Invoke) errand {
	return errand{run: r.id, name: r.state.Name(), flow: r.wf, fence: r.fence, spec: r.specs[inv.Agent], invoke: inv,
		sensitive: slices.Clip(r.sensitive), refusals: r.refusals[inv.Attempt.Node], silence: silence(r, inv.Attempt)}
}

// silence returns how long a call may be silent.
func silence(r *ownedRun, id machine.AttemptID) time.Duration {
	for _, c := range r.state.Node(nil, id.Node).Calls {
		if c.Call == id.Call && !c.Silent.IsZero() {
			return c.Silent.Sub(c.StartedAt)
		}
	}
	return 0
}

func newWorker(n *Node) *worker {
	return &worker{n: n, deliver: n.deliver, evidence: &evidence{n: n}, calls: map[callID]*running{}}
}

// start makes a call in a goroutine of its own. The call outlives the
// incarnation of the engine that started it, because its answer counts
// whoever owns the run by then (language.md, What counts); stopAll ends it.
func (w *worker) start(ctx context.Context, e errand) {
	left := w.n.clock.until(e.invoke.CompleteBy)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	c := &running{stop: make(chan struct{}), cancel: cancel, until: time.Now().Add(left)}
	id := callID{e.run, e.invoke.Attempt}
	own := newSeat(w.n.cfg.Capacity, e.spec)
	w.mu.Lock()
	if w.quit {
		w.mu.Unlock()
		cancel()
		own.release()
		return
	}
	w.calls[id] = c
	w.mu.Unlock()
	go func() {
		defer cancel()
		defer own.release() // unless the decision on the answer has taken it
		p := w.pump(e)
		if d := w.call(ctx, e, c, p); d != nil {
			d.seat = own
			w.report(ctx, e, d, p)
			failpoint.HitPurpose("receive.after", uint8(e.invoke.Purpose))
		}
		w.end(id, c)
	}()
}

// send notes that a call leaves this process now. It reports false if the run
// has been told that it never will.
func (w *worker) send(c *running) bool {
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

// call makes the call and returns what to deliver; nil = nothing. Signs of life
// go through p, which is closed when it returns.
func (w *worker) call(ctx context.Context, e errand, c *running, p *pump) (d *delivery) {
	redact := &redactor{}
	sent := false
	defer p.close()
	defer func() {
		if p := recover(); p != nil {
			// A panic before the call proves that nothing was sent.
			w.n.cfg.Logger.Error("call panicked", "run", e.name, "step", e.step(), "panic", redact.text(fmt.Sprint(p)))
			if sent {
				d = w.answer(e, machine.AttemptUnknown{Attempt: e.invoke.Attempt, Code: sdk.CodeInternal, Message: "the call panicked in the engine"})
			} else {
				d = w.notSent(e, w.n.cfg.Options.RetryHeld, maxRefusal, "preparing the call panicked")
			}
		}
	}()
	input, redact, err := w.input(e)
	o := w.n.cfg.Options
	if err != nil {
		return w.notSent(e, o.RetryHeld, maxRefusal, err.Error())
	}
	left := w.n.clock.until(e.invoke.CompleteBy)
	switch {
	case left <= 0:
		return w.notSent(e, o.MinScan, o.RetryHeld, whyTooLate)
	case !w.n.clock.leased():
		return w.notSent(e, o.MinScan, o.RetryHeld, whyNoLease)
	case !w.send(c):
		return nil // the run knows
	}
	sent = true
	p.text = redact.text
	failpoint.HitPurpose("send.before", uint8(e.invoke.Purpose))
	reply, err := w.n.cfg.Invoker.Invoke(ctx, Call{
		Agent: e.spec, Run: e.run, Stop: c.stop, OnProgress: p.progress, Scrub: redact.text,
		OnLate: func(reply sdk.Reply) {
			w.n.keepLate(e.run, e.step(), e.invoke.Attempt, e.event(reply, redact, o.MaxValue), w.n.clock.now())
		},
		Request: sdk.Request{
			Action: e.invoke.Action, Purpose: e.invoke.Purpose, Input: input,
			IdempotencyKey: e.invoke.IdempotencyKey, ForwardKey: e.invoke.ForwardKey,
			CompleteBy: time.Now().Add(left).UTC(), Remaining: left,
			Run: e.name, Workflow: e.flow.Name, Step: e.step(), Attempt: e.invoke.Number, Fence: int64(e.fence),
			Checkpoint: e.invoke.Checkpoint,
		},
	})
	failpoint.HitPurpose("receive.before", uint8(e.invoke.Purpose))
	var deferred *Deferred
	switch {
	case errors.As(err, &deferred):
		sent = false
		if deferred.Until.IsZero() { // it had a slot, so it need not wait for one
			return w.notSent(e, o.MinScan, o.RetryHeld, redact.text(deferred.Why))
		}
		pause := max(o.MinScan, time.Until(deferred.Until))
		return w.notSent(e, pause, pause, redact.text(deferred.Why))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), err != nil && ctx.Err() != nil:
		// Nothing is known and nothing may be concluded, whoever's timer went
		// off first: the agent's, its transport's or ours.
		return nil
	case err != nil:
		return w.answer(e, machine.AttemptUnknown{Attempt: e.invoke.Attempt, Code: sdk.CodeInternal, Message: redact.text(err.Error())})
	}
	return w.answer(e, e.event(reply, redact, o.MaxValue))
}

const whyTooLate = "its complete-by had passed before it could be sent"

// answer makes the delivery of what came of a call that was sent. Past its
// complete-by nothing is said, only counted and kept.
func (w *worker) answer(e errand, event machine.Event) *delivery {
	d := w.delivery(e, event)
	if !d.arrived.Before(d.completeBy) {
		w.n.keepLate(e.run, e.step(), e.invoke.Attempt, event, d.arrived)
		return nil
	}
	return d
}

func (w *worker) delivery(e errand, event machine.Event) *delivery {
	return &delivery{event: event, arrived: w.n.clock.now(), attempt: e.invoke.Attempt, completeBy: e.invoke.CompleteBy}
}

// maxRefusal bounds the growing pause between attempts to prepare a call.
const maxRefusal = time.Minute

// notSent says that the call was not sent and should be tried again after
// pause, in store time. The pause doubles up to limit with every time in a row.
func (w *worker) notSent(e errand, pause, limit time.Duration, why string) *delivery {
	limit = max(pause, limit)
	for range e.refusals {
		if pause = min(2*pause, limit); pause == limit {
			break
		}
	}
	return w.delivery(e, machine.AttemptDeferred{Attempt: e.invoke.Attempt, Until: w.n.clock.now().Add(pause), Why: why})
}

// postFor is how long past complete-by an answer that the run's owner should
// hear of is kept trying for, while the store does not answer: it counts by
// when it arrived, and if it does not count any more it is evidence.
const postFor = 10 * time.Minute

// report delivers until the run has it, after what p still holds. An answer to
// a run that another engine owns, or that nobody does, goes into the run's
// inbox with the time at which it arrived here: who holds the run does not
// matter for what counts (language.md, What counts), and it is durable there.
func (w *worker) report(ctx context.Context, e errand, d *delivery, p *pump) {
	ctx = context.WithoutCancel(ctx)
	pause := 10 * time.Millisecond
	for {
		p.flush()
		err := w.deliver(ctx, e.run, d)
		var aside *RunError
		switch {
		case err == nil:
			return
		case errors.As(err, &aside):
			// The run is set aside here, and nobody decides on the answer: it is kept
			// for whoever looks into the run.
			w.n.keepLate(e.run, e.step(), e.invoke.Attempt, d.event, d.arrived)
			return
		case errors.Is(err, ErrNotFound):
			return
		}
		d.seat.release() // nobody decides on it for now
		if errors.Is(err, ErrNotOwner) && !w.quits() {
			if err = w.post(ctx, e, d); err == nil || errors.Is(err, ErrNotFound) {
				return
			}
			w.n.cfg.Logger.Warn("an answer could not be handed to the run's owner, trying again", "run", e.name, "step", e.step(), "error", err)
		}
		if w.n.clock.now().After(d.completeBy.Add(postFor)) {
			w.n.keepLate(e.run, e.step(), e.invoke.Attempt, d.event, d.arrived)
			return
		}
		if w.quits() || sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, w.n.cfg.Options.RetryStore)
	}
}

func (w *worker) quits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// post puts an answer into its run's inbox. A call has one answer, so posting
// again is harmless.
func (w *worker) post(ctx context.Context, e errand, d *delivery) error {
	data, err := encodeMessage(w.n.cfg.Sealer, e.run, d.event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.n.cfg.Options.Lease)
	defer cancel()
	_, err = w.n.cfg.Store.Post(ctx, Message{
		Run: e.run, At: d.arrived, Kind: MessageReply, By: "agent " + e.invoke.Agent, Data: data,
		Dedup: fmt.Sprintf("reply/%d/%d", d.attempt.Node, d.attempt.Call),
	})
	return err
}

// step returns the step's name as agents and people see it.
func (e errand) step() string {
	name := e.flow.Steps[e.invoke.Step].Name
	if e.invoke.Key == "" && e.flow.Steps[e.invoke.Step].ForEach == nil {
		return name
	}
	return fmt.Sprintf("%s[%q]", name, e.invoke.Key)
}
