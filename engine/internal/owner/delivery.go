package owner

import (
	"errors"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A delivery is an event on its way to a run.
type delivery struct {
	call.Answer
	done    func(error)     // told once what became of it; nil = not called
	call    *call.Call      // whose answer it is, told like done; nil = none's
	decided func()          // called once it was decided, or dropped; nil = not called
	start   *Start          // the run's first event
	message store.MessageID // that said it; 0 = none
	data    []byte          // of the message
	kept    bool            // it came too late to count and is kept as evidence
	quiet   bool            // nothing may start because of it
}

// A Start is what the first transition of a run needs besides its event.
type Start struct {
	Workflow  store.WorkflowID
	Flow      *dsl.Workflow
	Specs     map[string]invoke.AgentSpec
	Names     naming.Names
	Public    string          // the run's name
	Submitted store.Submitted // set when landed
}

// finish tells the waiting caller what became of the delivery.
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

// answers reports whether the event is an agent's answer.
func (d *delivery) answers() bool { return !d.CompleteBy.IsZero() }

// cameInTime reports whether the event is an answer that arrived before its complete-by,
// which has passed by now.
func (d *delivery) cameInTime(now time.Time) bool {
	return d.answers() && d.Arrived.Before(d.CompleteBy) && !now.Before(d.CompleteBy)
}

// unread takes out of deliveries what has to be read or asked for again:
// messages and takeovers.
func unread(deliveries []*delivery) []*delivery {
	return slices.DeleteFunc(slices.Clone(deliveries), func(d *delivery) bool {
		_, taken := d.Event.(machine.TakenOver)
		return taken || d.message != 0
	})
}

// begun returns the event that starts steps which were held during a takeover.
func begun(now time.Time) *delivery {
	return &delivery{Answer: call.Answer{Event: machine.SlotsFreed{}, Arrived: now}}
}

// earlier compares deliveries by their arrival.
func earlier(a, b *delivery) int { return a.Arrived.Compare(b.Arrived) }

// decidedAt returns the time at which an event is decided. That is now, or the arrival of
// an answer that came before its complete-by if complete-by has passed since. It is never
// before the run's last record.
func decidedAt(state *machine.State, d *delivery, at time.Time) time.Time {
	if d.cameInTime(at) {
		at = d.Arrived
	}
	if last := state.Last(); at.Before(last) {
		at = last
	}
	return at
}

// answered returns the attempt that an event answers, or of which it is a sign of
// life; ok is false for what comes from no agent.
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

// NotOwner reports whether an error says that the run is not this
// membership's any more.
func NotOwner(err error) bool {
	return errors.Is(err, call.ErrNotOwner) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrLapsed)
}

// OverFor reports whether an error says that this membership is over.
func OverFor(err error) bool {
	var loss *store.LossError
	return NotOwner(err) || errors.As(err, &loss)
}

// An OpenOutcome says that a submission was sent and given up without an answer of
// the store: it may be stored or not.
type OpenOutcome struct{ err error }

// Error returns the text of the store's error.
func (e *OpenOutcome) Error() string { return e.err.Error() }

// Unwrap returns the store's error.
func (e *OpenOutcome) Unwrap() error { return e.err }

// InboxLimit is how many messages of a run are read at once.
const InboxLimit = 256

// An inbox is what an engine that works on a run knows of its inbox. Messages
// are read after the run was, so that none is decided twice: if the row of
// another engine has consumed one, our row is stale, and both are read again.
type inbox struct {
	wanted  bool // there may be messages that were not read
	reading bool
	first   bool                     // nothing is decided before they were read
	epoch   int                      // what was read under another number is void
	held    map[store.MessageID]bool // read: being decided, or not decidable here
	stuck   int                      // how many of them are not decidable here
	gone    map[store.MessageID]bool // consumed since reading began
	read    time.Time                // store time when they were read last
	quiet   time.Time                // store time before which no scan looks again, because only what is stuck was there
	pause   time.Duration            // how long the next such rest is
}

// hold notes that a message was read.
func (b *inbox) hold(id store.MessageID) {
	if b.held == nil {
		b.held = map[store.MessageID]bool{}
	}
	b.held[id] = true
}

// reset forgets what was read.
func (b *inbox) reset() {
	*b = inbox{wanted: b.wanted || len(b.held) > b.stuck, epoch: b.epoch + 1, read: b.read, quiet: b.quiet, pause: b.pause}
}

// consumed notes that messages went with a row that has landed.
func (b *inbox) consumed(ids []store.MessageID) {
	for _, id := range ids {
		delete(b.held, id)
		if b.reading {
			if b.gone == nil {
				b.gone = map[store.MessageID]bool{}
			}
			b.gone[id] = true
		}
	}
}

// A Message is one of the inbox as it was read.
type Message struct {
	store.Message
	event machine.Event
	Err   error // why it cannot be decided here
}

// delivery makes an event on its way out of a message.
func (l Message) delivery() *delivery {
	d := &delivery{Answer: call.Answer{Event: l.event, Arrived: l.At}, message: l.ID, data: l.Data}
	d.Attempt, _ = answered(l.event)
	return d
}
