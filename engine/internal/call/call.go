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
	Sealer   crypt.Sealer // nil = no data is encrypted
	Secrets  func(ref string) (string, error)
	Observer Observer
	Logger   *slog.Logger
	Clock    *clock.Clock
	Outage   *outage.Outage
	Present  func() Member   // returns the present membership; nil = there is none
	Stopped  context.Context // ends when the engine stops at once; an orderly stop lets calls continue

	Lease, MinScan, RetryHeld, RetryStore time.Duration // see engine.Options
	MaxValue                              int           // largest size of a reply, in bytes
}

// A Member is a membership of the engine. Calls pass their answers through it to the runs
// that the membership owns.
type Member interface {
	// Conclude makes the goroutine that owns the call's run conclude the call. It does not
	// block. It returns false if this membership has ended.
	Conclude(c *Call) bool
	// Deliver passes an answer to a run. Answers arrive in the order in which Deliver was
	// called. told, if not nil, is called once with the outcome, unless the membership ends
	// first. Deliver does not block. It returns false if this membership has ended.
	Deliver(run status.RunID, a Answer, told func(error)) bool
	// Done is closed when this membership has ended.
	Done() <-chan struct{}
}

// An Observer is notified of each answer that was too late.
type Observer interface {
	LateReply(run status.RunID, attempt machine.AttemptID)
}

// A Caller makes the calls of committed records and delivers their answers (S11, S12). It
// does nothing when the complete-by of a call passes: only the Supervisor reports that time
// has passed (S17, S18).
type Caller struct {
	cfg      Config
	async    invoke.AsyncInvoker // makes calls without a goroutine for each; nil = each call needs its own
	evidence *evidence
	// ctx is the context of every call without its own goroutine. It ends when the node stops
	// at once.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex // protects following fields
	calls map[callID]*Call
	ends  chan struct{} // closed when the last call ends; nil = no goroutine waits
	quit  bool          // StopAll was called: no further call is started
}

type callID struct {
	run     status.RunID
	attempt machine.AttemptID
}

// A Call is a call in flight. Three goroutines use it, one after the other. The first
// prepares it. The second belongs to the Invoker and waits for the answer. The third owns
// the run and concludes the call.
type Call struct {
	w *Caller
	Spec
	reservation Reservation // the slot of the call
	sender      progressSender

	redact redactor // removes sensitive strings from texts; set before the call is sent
	sent   bool     // the call may have reached the agent: without an answer its outcome is unknown

	reply   sdk.Reply
	err     error
	arrived time.Time // store time at which the answer reached this engine

	// Protected by Caller.mu.
	phase    callPhase
	unwanted bool
	// stop is closed once the answer is not needed any more; only for a call with its own
	// goroutine.
	stop   chan struct{}
	cancel context.CancelFunc // ends the call; only for a call with its own goroutine
	handle invoke.Started     // stops the call; only for a call without its own goroutine
}

// callPhase says whether a call has left this process.
type callPhase uint8

const (
	callPreparing callPhase = iota
	callSent                // the agent may have received the call
	callRecalled            // the call is never sent, and the run knows that
)

func (c *Call) id() callID { return callID{c.Run, c.Invoke.Attempt} }

// unwantLocked records that the answer is not needed any more. It returns the handle
// through which the caller must notify the agent; nil = there is no agent to notify.
func (c *Call) unwantLocked() invoke.Started {
	if !c.unwanted && c.stop != nil {
		close(c.stop)
	}
	c.unwanted = true
	return c.handle
}

// about returns an Answer that contains an event of the call.
func (c *Call) about(event machine.Event) Answer {
	arrived := c.arrived
	if arrived.IsZero() {
		arrived = c.w.cfg.Clock.Now()
	}
	return Answer{Event: event, Arrived: arrived, Attempt: c.Invoke.Attempt, CompleteBy: c.Invoke.CompleteBy, Slot: &c.reservation}
}

// KeepLate counts an answer that was too late, and keeps it as evidence (S28). It changes
// no run and never blocks: the answer is stored in the background. KeepLate ignores events
// that are not answers: calls that were not sent, and signs of life. step is the step's
// name as people see it. at is the store time at which the answer arrived.
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

// send records that a call leaves this process now. It reports false if the run already
// knows that the call is not sent.
func (w *Caller) send(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.phase == callRecalled {
		return false
	}
	c.phase = callSent
	return true
}
