package call

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// Config holds the parts and settings of a Caller. All fields but Sealer are required.
type Config struct {
	Invoker  invoke.Invoker
	Store    Store
	Sealer   crypt.Sealer // nil = nothing is sensitive
	Secrets  func(ref string) (string, error)
	Observer Observer
	Logger   *slog.Logger
	Clock    *clock.Clock
	Outage   *outage.Outage
	Present  func() Member   // the present membership; nil = there is none
	Stopped  context.Context // ends when the engine stops at once; calls outlive an orderly stop

	Lease, MinScan, RetryHeld, RetryStore time.Duration // see engine.Options
	MaxValue                              int           // bytes of a reply
}

// A Member is a membership of the engine, as calls see it: the way to the runs that it
// owns.
type Member interface {
	// Conclude has the goroutine that owns the call's run conclude the call. It does
	// not block. It returns false if this membership has ended.
	Conclude(c *Call) bool
	// Deliver hands an answer to a run, in the order of the calls of Deliver. told, if
	// it is not nil, is called once with the outcome, unless the membership ends first.
	// Deliver does not block. It returns false if this membership has ended.
	Deliver(run status.RunID, a Answer, told func(error)) bool
	// Done is closed when this membership has ended.
	Done() <-chan struct{}
}

// An Observer gets the answers that came too late.
type Observer interface {
	LateReply(run status.RunID, attempt machine.AttemptID)
}

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

// A Call is a call in flight. Three goroutines use it, one after the other: one prepares
// it, one of the Invoker waits for the answer, and the one that owns the run concludes it.
type Call struct {
	w *Caller
	Spec
	reservation Reservation // the slot it holds
	sender      progressSender

	redact redactor // set before the call is sent
	sent   bool     // the call may have reached the agent: without an answer its outcome is unknown

	reply   sdk.Reply
	err     error
	arrived time.Time // store time when the answer reached this engine

	// Protected by Caller.mu.
	phase    callPhase
	unwanted bool
	stop     chan struct{}      // of a call with a goroutine; closed once its answer is not wanted
	cancel   context.CancelFunc // of a call with a goroutine
	handle   invoke.Started     // of a call without a goroutine
}

// callPhase says whether a call has left this process.
type callPhase uint8

const (
	callPreparing callPhase = iota
	callSent                // the agent may have it
	callRecalled            // it is never sent, and the run knows that
)

func (c *Call) id() callID { return callID{c.Run, c.Invoke.Attempt} }

// unwantLocked notes that the answer is no longer wanted. It returns the handle through
// which the agent has to be told; nil = none.
func (c *Call) unwantLocked() invoke.Started {
	if !c.unwanted && c.stop != nil {
		close(c.stop)
	}
	c.unwanted = true
	return c.handle
}

// about makes an Answer of an event of the call.
func (c *Call) about(event machine.Event) Answer {
	arrived := c.arrived
	if arrived.IsZero() {
		arrived = c.w.cfg.Clock.Now()
	}
	return Answer{Event: event, Arrived: arrived, Attempt: c.Invoke.Attempt, CompleteBy: c.Invoke.CompleteBy, Slot: &c.reservation}
}

// KeepLate counts an answer that came too late to count, and keeps it as
// evidence (S28). It changes no run and never blocks: the answer is stored in the
// background. KeepLate ignores events that are no answers: calls that were not sent, and
// signs of life. step is the step's name as people see it, at the store time when the
// answer arrived.
func (w *Caller) KeepLate(run status.RunID, step string, attempt machine.AttemptID, event machine.Event, at time.Time) {
	if _, _, ok := OutcomeOf(event); !ok {
		return
	}
	w.cfg.Observer.LateReply(run, attempt)
	w.evidence.add(lateAnswer{run: run, step: step, attempt: attempt, event: event, at: at, size: journal.EventSize(event)})
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

func (w *Caller) quits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
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
