package owner

import (
	"errors"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A delivery is an event on the way to its run.
type delivery struct {
	call.Answer
	done    func(error)     // function that is called once with the outcome of the delivery; nil = none
	call    *call.Call      // the call that the event answers; finish notifies it, too; nil = none
	decided func()          // function that is called when the event was decided or dropped; nil = none
	start   *Start          // set if the event is the first of the run; otherwise nil
	message store.MessageID // message that contained the event; 0 = none
	next    *dsl.Workflow   // workflow to which the event moves the run; nil = the event does not move the run, or this engine cannot read the workflow
	data    []byte          // encoded content of the message; nil = there is no message
	kept    bool            // the answer was too late to count and is kept as evidence
	noCalls bool            // the decision on this event may start no call
}

// A Start holds what the first transition of a run needs in addition to its event.
type Start struct {
	Workflow store.WorkflowID
	Flow     *dsl.Workflow
	Specs    map[string]invoke.AgentSpec
	Names    naming.Names
	Public   string            // the run's public id
	Line     line.Line         // priority of the run, and the limit that it shares with other runs
	Past     *moving.Past      // ended run whose results the run takes over; nil = it takes over nothing
	Checks   []admission.Check // rows that the store checks when it accepts the run
	Replaces *store.Message    // message to the runs that the run replaces (store.Transition); nil = it replaces none
	// Submitted is the outcome of the submission. It is set when the run is stored, or when the
	// store has found an earlier run instead.
	Submitted store.Submitted
}

// finish reports that the delivery has ended, with the outcome err. It calls the functions
// d.decided and d.done, and notifies the call d.call, each of them only once.
func (d *delivery) finish(err error) {
	if d.decided != nil {
		d.decided()
		d.decided = nil
	}
	if d.done != nil {
		d.done(err)
		d.done = nil
	}
	if c := d.call; c != nil {
		d.call = nil
		c.Reported(d.Answer, err)
	}
}

// answers reports whether the complete-by of the event's call is known. It is known if the event is
// the answer to a call, the report that a call was not sent, or an event of a call that came from
// the inbox (ownedRun.time).
func (d *delivery) answers() bool { return !d.CompleteBy.IsZero() }

// cameInTime returns true if the event belongs to a call (see the method `answers`) and arrived
// before complete-by, and complete-by has passed since then. The parameter `now` is the present
// time.
func (d *delivery) cameInTime(now time.Time) bool {
	return d.answers() && d.Arrived.Before(d.CompleteBy) && !now.Before(d.CompleteBy)
}

// unread returns the given deliveries, but leaves out events of three kinds: takeovers, admissions,
// and events that came in a message. The engine will queue takeovers and admissions again, and will
// read the messages again.
func unread(deliveries []*delivery) []*delivery {
	return slices.DeleteFunc(slices.Clone(deliveries), func(d *delivery) bool {
		_, taken := d.Event.(machine.TakenOver)
		// After the next tick of the engine, Scheduler.Next delivers the admission again.
		freed, _ := d.Event.(machine.SlotsFreed)
		return taken || freed.Admitted || d.message != 0
	})
}

// begun returns an event that is decided after a takeover, or after a run was moved to another
// definition. No step could start in the takeover or in the move; after this event the steps can
// start.
func begun(now time.Time) *delivery {
	return &delivery{Answer: call.Answer{Event: machine.SlotsFreed{}, Arrived: now}}
}

// earlier compares deliveries by their time of arrival.
func earlier(a, b *delivery) int { return a.Arrived.Compare(b.Arrived) }

// decidedAt returns the time for the decision on the event d. Usually the result is the present
// time, which is the parameter `at`. If d is an answer that arrived in time, but its complete-by
// has passed since, the result is the time of arrival. The result is never before the run's last
// record.
func decidedAt(state *machine.State, d *delivery, at time.Time) time.Time {
	if d.cameInTime(at) {
		at = d.Arrived
	}
	if last := state.Last(); at.Before(last) {
		at = last
	}
	return at
}

// answered returns the attempt to which an event belongs. The event may be an answer, a
// sign of life, or the report that the call was not sent. For other events ok is false.
func answered(e machine.Event) (id machine.AttemptID, ok bool) {
	switch e := e.(type) {
	case machine.AttemptOK:
		return e.Attempt, true
	case machine.AttemptFailed:
		return e.Attempt, true
	case machine.AttemptUnknown:
		return e.Attempt, true
	case machine.AttemptNotDone:
		return e.Attempt, true
	case machine.AttemptDeferred:
		return e.Attempt, true
	case machine.AttemptProgress:
		return e.Attempt, true
	}
	return machine.AttemptID{}, false
}

// NotOwner reports whether an error says that this membership does not own the run any
// more.
func NotOwner(err error) bool {
	return errors.Is(err, call.ErrNotOwner) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrLapsed)
}

// OverFor reports whether an error says that this membership is over, or that it does not own the
// run any more. After such an error, the caller must not try again in this membership.
func OverFor(err error) bool {
	var loss *store.LossError
	return NotOwner(err) || errors.As(err, &loss)
}

// ErrStopping says that the engine is stopping.
var ErrStopping = errors.New("engine: this engine is stopping")

// An OpenOutcome is the error for a submission whose outcome is unknown, because the store did not
// answer. The store may have the new run or not.
type OpenOutcome struct{ err error }

// Error returns the text of the store's error.
func (e *OpenOutcome) Error() string { return e.err.Error() }

// Unwrap returns the store's error.
func (e *OpenOutcome) Unwrap() error { return e.err }

// InboxLimit is the largest number of messages that one read of a run's inbox returns, in addition
// to the messages that this engine has read before and that are still in the inbox.
const InboxLimit = 256

// An inbox holds what this engine knows about the stored inbox of one of its runs. The engine first
// reads the run and then its messages, so it decides no message that the run has decided before. A
// row of another engine may consume a message after that. Then the store refuses the row of this
// engine, and this engine reads the run and its messages again.
type inbox struct {
	wanted  bool // there may be messages that were not read yet
	reading bool // a goroutine is reading messages now
	first   bool // no event may be decided before the messages are read
	epoch   int  // number of the present reading; the result of an older reading is dropped
	// received contains the messages that were read. Each waits for its decision, is being decided,
	// is being kept as evidence, or cannot be decided here.
	received map[store.MessageID]bool
	stuck    int                      // number of messages in the field `received` that cannot be decided here
	gone     map[store.MessageID]bool // messages that were consumed after the present reading began
	read     time.Time                // store time at which the last reading began
	// nextRead is the store time until which the engine does not read the inbox. It is set after
	// the inbox held only messages that cannot be decided here. Zero = the engine may read the
	// inbox.
	nextRead time.Time
	// pause is the length of the last pause in which the engine did not read the inbox. The next
	// pause is twice as long, up to a limit. 0 = there was no pause.
	pause time.Duration
}

// receive records that a message was read.
func (b *inbox) receive(id store.MessageID) {
	if b.received == nil {
		b.received = map[store.MessageID]bool{}
	}
	b.received[id] = true
}

// busy reports whether the inbox holds messages that are not decided yet, or may hold some.
func (b *inbox) busy() bool { return b.wanted || b.reading || b.first || len(b.received) > 0 }

// reset forgets which messages were read, so that the engine reads them again. It drops the
// result of a read that is in progress.
func (b *inbox) reset() {
	*b = inbox{wanted: b.wanted || len(b.received) > b.stuck, epoch: b.epoch + 1, read: b.read, nextRead: b.nextRead, pause: b.pause}
}

// consumed records that a committed row has removed the messages with the given ids from the inbox.
func (b *inbox) consumed(ids []store.MessageID) {
	for _, id := range ids {
		delete(b.received, id)
		if b.reading {
			if b.gone == nil {
				b.gone = map[store.MessageID]bool{}
			}
			b.gone[id] = true
		}
	}
}

// A Message is a decoded message of the inbox.
type Message struct {
	store.Message
	event machine.Event
	next  *dsl.Workflow // see delivery.next
	Err   error         // why this engine cannot decide the message; nil = it can
}

// delivery returns the delivery for a message.
func (l Message) delivery() *delivery {
	d := &delivery{Answer: call.Answer{Event: l.event, Arrived: l.At}, message: l.ID, data: l.Data, next: l.next}
	d.Attempt, _ = answered(l.event)
	return d
}

// reopens reports whether a run that has ended turns back because of the event.
func reopens(state *machine.State, e machine.Event) bool {
	ev, verb := e.(machine.CompensateRequested)
	return verb && ev.Parent && state.Run().Undoable()
}
