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

// Config holds what a Caller needs. All fields except Sealer are required.
type Config struct {
	Invoker  invoke.Invoker
	Children Children // makes the calls of steps that start child runs
	Store    Store
	Sealer   crypt.Sealer                     // encrypts messages and late replies; nil = nothing is encrypted
	Secrets  func(ref string) (string, error) // returns the secret for a reference such as "env:X"
	Observer Observer
	Logger   *slog.Logger
	Clock    *clock.Clock
	Outage   *outage.Outage
	Present  func() Member   // returns the engine's current membership, or nil if there is none
	Stopped  context.Context // ends when the engine stops without waiting for open work; does not end when the engine stops in order

	Lease, MinScan, RetryRefused, RetryStore time.Duration // see engine.Options
	MaxValue                                 int           // largest size of a reply, in bytes
}

// A Member is a membership of the engine. It passes the answers of calls to the runs that the
// membership owns.
type Member interface {
	// Conclude passes a call whose answer has arrived to the goroutine that owns the call's run.
	// That goroutine turns the answer into an event and decides it. Conclude does not block. It
	// returns false if this membership has ended; then the call was not passed on.
	Conclude(c *Call) bool
	// Deliver passes an answer to a run. Answers reach the run in the order in which Deliver
	// was called. If this membership has ended, Deliver returns false, and the answer was not
	// passed on. Deliver does not block. If the parameter `done` is not nil, the Member calls
	// this function once, with nil or with the error of the delivery. But if the membership
	// ends before the delivery, the function may never be called.
	Deliver(run status.RunID, a Answer, done func(error)) bool
	// Done returns a channel that is closed when this membership has ended.
	Done() <-chan struct{}
}

// Children makes the calls of steps that start child runs. The engine itself is the agent of these
// steps.
type Children interface {
	// Start begins a call and returns at once. It later calls the function in the parameter
	// `done` once: either with the reply and what remains of the effects of the child run, or
	// with an error. The error context.Canceled means that the call has no answer. Then the
	// next owner of the run sends the call again.
	Start(e *Spec, done func(sdk.Reply, status.Kept, error)) ChildCall
}

// A ChildCall is a call that waits for a child run.
type ChildCall interface {
	// Stop asks the child run to end, because the parent does not need its result any more. The
	// call still waits for the end of the child. Stop does not block.
	Stop(machine.Stop)
	// Pause asks the run of a group to pause or to resume. Pause does not block.
	Pause(machine.PauseChild)
	// Bound changes the time until which the call waits for the child run. Bound does not block.
	Bound(machine.BoundChild)
}

// An Observer is notified of late replies.
type Observer interface {
	// LateReply is called for each answer that the engine keeps only as evidence: it arrived too
	// late to count, or it could not be delivered to the run.
	LateReply(run status.RunID, attempt machine.AttemptID)
}

// A Caller makes the calls of committed records, and delivers the answers of these calls (S11,
// S12). It does nothing when the complete-by of a call passes: only the Supervisor reports
// that time has passed (S17, S18).
type Caller struct {
	cfg      Config
	async    invoke.AsyncInvoker // makes calls without goroutines; nil = each call has its own goroutine
	evidence *evidence           // stores late replies
	// ctx is the context of every call without its own goroutine. It ends when StopAll is called.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex       // protects the fields below
	calls map[callID]*Call // calls of agents in flight
	kids  map[callID]*Call // calls that wait for child runs; an engine that stops does not wait for them
	ends  chan struct{}    // closed when the last call ends; nil = no goroutine waits for that
	quit  bool             // StopAll was called: no further call is started
}

// A callID identifies a call in flight.
type callID struct {
	run     status.RunID
	attempt machine.AttemptID
}

// A Call is a call in flight. Usually three goroutines use it, one after the other. The first
// prepares the call. The second belongs to the Invoker and waits for the answer. The third owns the
// run and turns the answer into an event. If the answer is large or this engine has no membership
// then, a goroutine of the call does the work of the third.
type Call struct {
	w *Caller // the Caller that makes the call
	Spec
	reservation Reservation    // the slot of the call
	sender      progressSender // passes signs of life to the run

	redact redactor // removes sensitive strings from texts; set before the call is sent
	sent   bool     // the agent may have received the call: without an answer, the outcome is unknown

	reply   sdk.Reply   // the Invoker's answer, together with the field `err`
	kept    status.Kept // only of a call for a child run: what remains of the effects of the child
	err     error
	arrived time.Time // store time at which the answer reached this engine; zero = no answer yet

	// The fields from here on are protected by Caller.mu.
	phase    callPhase
	unwanted bool // the answer is not needed any more
	// stop is closed when the answer is not needed any more; nil = the call has no goroutine of
	// its own, or was not sent yet.
	stop   chan struct{}
	cancel context.CancelFunc // ends the call; nil = the call has no goroutine of its own, or was not sent yet
	handle invoke.Started     // stops a call without a goroutine of its own; nil = there is nothing to stop
	child  ChildCall          // waits for a child run; nil = the call is for an agent, or did not start yet
	// Functions that ask something of the child run. They are called, in order, as soon as the
	// call has started.
	wishes []func(ChildCall)
}

// callPhase says whether a call was sent.
type callPhase uint8

const (
	callPreparing callPhase = iota // the call was not sent yet
	callSent                       // the call was given to the Invoker: the agent may have received it
	callRecalled                   // Recall was called: the call is never sent, and the run knows that
)

func (c *Call) id() callID { return callID{c.Run, c.Invoke.Attempt} }

// unwantLocked records that the answer is not needed any more. The caller must call the method
// Stop of the result, which notifies the agent. If the result is nil, the caller need not
// notify the agent.
func (c *Call) unwantLocked() invoke.Started {
	if !c.unwanted && c.stop != nil {
		close(c.stop)
	}
	c.unwanted = true
	return c.handle
}

// about returns an Answer with the event, and with the facts about this call that the run needs.
func (c *Call) about(event machine.Event) Answer {
	arrived := c.arrived
	if arrived.IsZero() {
		arrived = c.w.cfg.Clock.Now()
	}
	return Answer{Event: event, Arrived: arrived, Attempt: c.Invoke.Attempt, CompleteBy: c.Invoke.CompleteBy, Slot: &c.reservation}
}

// KeepLate notifies the Observer of an answer that does not count, and stores the answer in the
// background as evidence (S28). Usually the answer was too late. It may also be an answer that
// could not be delivered to its run. It changes no run and never blocks. KeepLate ignores events
// that are not answers: signs of life, and the event that a call was not sent. The parameter `step`
// is the step's name as people see it. The parameter `at` is the store time at which the answer
// arrived.
func (w *Caller) KeepLate(run status.RunID, step string, attempt machine.AttemptID, event machine.Event, at time.Time) {
	if _, _, ok := OutcomeOf(event); !ok {
		return
	}
	w.cfg.Observer.LateReply(run, attempt)
	w.evidence.add(lateAnswer{run: run, step: step, attempt: attempt, event: event, at: at, size: journal.EventSize(event)})
}

// end removes a call from the calls in flight.
func (w *Caller) end(c *Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[c.id()] == c {
		delete(w.calls, c.id())
	}
	if w.kids[c.id()] == c {
		delete(w.kids, c.id())
	}
	if len(w.calls) == 0 && w.ends != nil {
		close(w.ends)
		w.ends = nil
	}
}

// quits reports whether StopAll was called.
func (w *Caller) quits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// send records that a call is sent now. It returns false if Recall was called before: then the
// call must not be sent.
func (w *Caller) send(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.phase == callRecalled {
		return false
	}
	c.phase = callSent
	return true
}
