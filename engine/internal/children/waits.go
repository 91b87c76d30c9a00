package children

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// Config holds what a Waits needs. All fields except Sealer are required.
type Config struct {
	Submit func(context.Context, Order) (store.Submitted, error) // submits a child run
	Store  store.Full
	Sealer crypt.Sealer // decrypts the journals of child runs; nil = nothing is encrypted
	Defs   *journal.Definitions
	Clock  *clock.Clock
	Outage *outage.Outage
	Poll   time.Duration // pause between two questions to the store about the awaited child runs
}

// An Order asks for a new child run.
type Order struct {
	Flow *dsl.Workflow // workflow of the child
	Vars dsl.Value     // values of all variables of the child
	Name string        // public name of the child

	Parent                 status.RunID // internal id of the parent
	ParentName, ParentStep string       // public id of the parent; name of the parent's step or instance
	Until                  time.Time    // time from which the parent does not wait any more
	Void                   bool         // the parent has turned back: the child must begin no step
	Priority               *int         // priority of the child; nil = as its workflow says
	// The call that starts the child. It may carry early signals for the run of a group.
	Call *machine.Invoke
}

// A Refused is the error of Config.Submit for a child run that will never be accepted.
type Refused struct {
	Code string // error code of the step
	Err  error
}

// Error returns the reason.
func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.Err }

// maxWorkers is the largest number of goroutines that submit and read child runs.
const maxWorkers = 64

// A Waits holds the open calls of one engine that start or undo child runs. Each call waits for its
// child run.
type Waits struct {
	cfg  Config
	wake chan struct{} // holds a value if the method Run must ask the store, because a call waits

	ctx context.Context // ends when the engine stops; the goroutines of the Waits use it

	mu         sync.Mutex // protects the fields below
	waits      map[callID]*waiter
	byChild    map[status.RunID][]*waiter // waiters whose child run is known
	submitting map[string]*waiter         // waiters that submit their child run now, by the name of the child run
	todo       []*waiter                  // waiters for which a goroutine has work, oldest first
	workers    int                        // number of goroutines that work
}

// A callID identifies a call that waits.
type callID struct {
	run     status.RunID
	attempt machine.AttemptID
}

// A waiter is a call that waits for its child run.
type waiter struct {
	waits *Waits
	id    callID
	call.Spec
	done func(sdk.Reply, status.Kept, error) // called once, while the mutex is not held

	// Fields that Waits.mu protects.
	child  status.RunID        // internal id of the child run; 0 = not submitted yet
	name   string              // name of the child run; "" = no try to submit it has begun
	over   bool                // the call has been answered or forgotten
	busy   bool                // the waiter is in the list Waits.todo, or a goroutine works on it
	again  bool                // something has changed since the goroutine began, so the goroutine must look at the waiter again
	stop   bool                // the answer is not needed any more: the child must be cancelled
	leave  *keepEffects        // the child must keep its effects when it is cancelled; nil = it is undone
	pause  *machine.PauseChild // the child must be paused, because it is a group of a paused run; nil = it must not be paused
	theirs bool                // a person has paused the child, so the parent must not resume it
	bound  time.Time           // time until which the parent waits, from the method Bound; zero = Bound was not called
	sent   time.Time           // time until which the parent waits, as the child knows it; zero = not known yet
	ended  bool                // the child has ended, as far as this engine knows
	end    *ending             // how the child has ended, from the method Ended; nil = Ended was not called, or the method `take` has returned it already

	// Only the goroutine that works on the waiter uses the following fields.
	cancelled bool // a cancel was posted to the child
	left      bool // a cancel without compensation was posted to the child
	undone    bool // a message was posted to the child that asks for its undo
}

// New returns a Waits with no call in flight. Its work ends with ctx.
func New(ctx context.Context, cfg Config) *Waits {
	return &Waits{cfg: cfg, ctx: ctx, wake: make(chan struct{}, 1), waits: map[callID]*waiter{}, byChild: map[status.RunID][]*waiter{}, submitting: map[string]*waiter{}}
}

// A keepEffects says why a child run is cancelled without compensation.
type keepEffects struct{ reason string }

// Start begins a call and returns at once. The Waits calls the function in the parameter `done`
// once, from any goroutine. The error is context.Canceled if Forget ends the call, or if Start is
// called again for the same attempt. Start has the same contract as the method Start of an
// AsyncInvoker.
func (r *Waits) Start(e *call.Spec, done func(sdk.Reply, status.Kept, error)) call.ChildCall {
	w := &waiter{waits: r, id: callID{e.Run, e.Invoke.Attempt}, Spec: *e, done: done}
	if e.Invoke.NoCompensate {
		w.leave = &keepEffects{}
	}
	if e.Invoke.Pause.On {
		w.pause = &e.Invoke.Pause
	}
	r.mu.Lock()
	old := r.waits[w.id]
	r.waits[w.id] = w
	r.enqueueLocked(w)
	r.mu.Unlock()
	if old != nil {
		old.finish(sdk.Reply{}, context.Canceled)
	}
	return w
}

// Stop makes a goroutine cancel the child run, because its parent does not need the result any
// more. If the parent was cancelled without compensation, so is the child. The call still waits for
// the end of the child: only the end says whether there is an effect.
func (w *waiter) Stop(how machine.Stop) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.stop = true
	if how.NoCompensate {
		w.leave = &keepEffects{how.Reason}
	}
	w.waits.enqueueLocked(w)
}

// Pause makes a goroutine pause the run of a group, or end this pause. The message for this may be
// lost, or another verb may be decided after it. So whenever the method `ask` reads the status of
// the child run, it checks the pause, and makes a goroutine send the message again if necessary.
func (w *waiter) Pause(how machine.PauseChild) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.pause = nil
	if how.On {
		w.pause = &how
	}
	w.waits.enqueueLocked(w)
}

// Bound changes the time until which the call waits. An open child knows only the newest time
// that was sent to the child. So a goroutine sends the new time to the child, unless the child
// knows this time already. If the message cannot be posted, the method `ask` makes a goroutine try
// again.
func (w *waiter) Bound(how machine.BoundChild) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.bound, w.Invoke.CompleteBy = how.Until, how.Until
	w.waits.enqueueLocked(w)
}

// until returns the time until which the call waits.
func (w *waiter) until() time.Time {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	return w.Invoke.CompleteBy
}

// noteSent records the time until which the parent waits, as the child run knows it.
func (w *waiter) noteSent(until time.Time) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.sent = until
}

// Ended reports that a child run has ended in this engine. It keeps how the child has ended, so
// that the Waits need not read the child from the store. It does not keep the state s.
func (r *Waits) Ended(run status.RunID, s *machine.State) {
	name := s.Run().Name
	r.mu.Lock()
	wanted := r.submitting[name] != nil || len(r.byChild[run]) > 0
	r.mu.Unlock()
	if !wanted {
		return
	}
	e := endingOf(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.submitting[name]; w != nil {
		w.end = e
	}
	for _, w := range r.byChild[run] {
		w.ended, w.end = true, e
		r.enqueueLocked(w)
	}
}

// Forget ends all waiting calls without an answer, because the membership that made them has
// ended. The engine that takes the runs over sends the calls again.
func (r *Waits) Forget() {
	r.mu.Lock()
	var all []*waiter
	for _, w := range r.waits {
		all = append(all, w)
	}
	r.mu.Unlock()
	for _, w := range all {
		w.finish(sdk.Reply{}, context.Canceled)
	}
}

// Waiting returns the number of calls that wait.
func (r *Waits) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waits)
}

// enqueueLocked makes a goroutine work on the waiter w.
func (r *Waits) enqueueLocked(w *waiter) {
	switch {
	case w.over:
		return
	case w.busy:
		w.again = true
		return
	}
	w.busy = true
	r.todo = append(r.todo, w)
	if r.workers < maxWorkers {
		r.workers++
		go r.work()
	}
	wait.Wake(r.wake)
}

// work works on waiters until there is nothing to do.
func (r *Waits) work() {
	for {
		r.mu.Lock()
		if len(r.todo) == 0 {
			r.workers--
			r.mu.Unlock()
			return
		}
		w := r.todo[0]
		r.todo[0] = nil
		r.todo = r.todo[1:]
		w.again = false
		r.mu.Unlock()
		w.step(r.ctx)
		r.mu.Lock()
		w.busy = false
		if w.again {
			r.enqueueLocked(w)
		}
		r.mu.Unlock()
	}
}

// finish ends the call with a reply or an error, unless the call has ended before. It reports that
// no effects of a child run remain.
func (w *waiter) finish(reply sdk.Reply, err error) { w.finishWith(reply, 0, err) }

// finishWith ends the call as finish does. The parameter `kept` says what remains of the effects of
// the child run.
func (w *waiter) finishWith(reply sdk.Reply, kept status.Kept, err error) {
	r := w.waits
	r.mu.Lock()
	if w.over {
		r.mu.Unlock()
		return
	}
	w.over = true
	if r.waits[w.id] == w {
		delete(r.waits, w.id)
	}
	w.submittedLocked()
	w.removeLocked()
	r.mu.Unlock()
	w.done(reply, kept, err)
}

// removeLocked removes the waiter from the waiters of its child run.
func (w *waiter) removeLocked() {
	if w.child == 0 {
		return
	}
	r, kept := w.waits, w.waits.byChild[w.child][:0]
	for _, x := range r.byChild[w.child] {
		if x != w {
			kept = append(kept, x)
		}
	}
	if r.byChild[w.child] = kept; len(kept) == 0 {
		delete(r.byChild, w.child)
	}
}

// seek notes that the waiter submits its child run now, under this name.
func (w *waiter) seek(name string) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	if !w.over {
		w.name, w.waits.submitting[name] = name, w
	}
}

// submittedLocked notes that the waiter does not submit its child run any more.
func (w *waiter) submittedLocked() {
	if w.waits.submitting[w.name] == w {
		delete(w.waits.submitting, w.name)
	}
}

// found records the child run of the waiter.
func (w *waiter) found(child status.RunID) {
	w.waits.mu.Lock()
	defer w.waits.mu.Unlock()
	w.submittedLocked()
	if !w.over {
		w.child = child
		w.waits.byChild[child] = append(w.waits.byChild[child], w)
	}
}

// fail ends the call with a permanent failure, because another attempt would fail, too. The
// parameter `state` is the status of the child run; RunInvalid = there is no child run. The
// parameter `kept` says what remains of the effects of the child run.
func (w *waiter) fail(code, message string, state status.RunState, kept status.Kept) {
	reply := sdk.Reply{Outcome: sdk.OutcomeFailed, Code: code, Message: message, Permanent: true}
	if state != status.RunInvalid {
		data, err := json.Marshal(map[string]string{"run": w.childName(), "status": state.String()})
		if err == nil {
			reply.Output = data
		}
	}
	w.finishWith(reply, kept, nil)
}
