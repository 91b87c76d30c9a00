package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// An Event is something that happened to a run. Only this package defines events. The journal
// stores a number for each kind of event and never uses a number again.
type Event interface{ event() }

// An AttemptID identifies one call of a run. Node is the number of the node that makes the
// call. Call is the number of the call within the node: calls of all purposes are counted
// together, from 1.
type AttemptID struct {
	Node int
	Call int
}

// Started says that an engine accepted a run. It is the event of the first record (S14).
type Started struct {
	RunID status.RunID // internal id of the run
	Name  string       // public id of the run
	Key   string       // value of unique.key; "" = the workflow has no unique key
	Vars  dsl.Value
	// How the run was started: "manual", "submitted", "notify", or a text of cron.Trigger or
	// inbox.Trigger.
	Trigger   string
	StartedBy string // the person or the program that started the run; only for display

	// Only for a child run: the run and the step that started it. The step waits until the time
	// Until; zero = without a limit. Until is also the deadline of the child, unless the child's
	// workflow sets an earlier one.
	Parent status.RunID // internal id of the parent; 0 = the run is no child run
	// ParentName is the public id of the parent. ParentStep is the name of the parent's step or
	// instance.
	ParentName, ParentStep string
	Until                  time.Time
	// Void is true if the parent has turned back before it started the child. Such a child begins
	// no step and ends as cancelled at once. The child is recorded, so that a start that arrives
	// late finds the recorded child, and starts nothing.
	Void bool
	// Signals are the early signals with which the run of a group starts. Before this start, the
	// run around the group has kept them. Decide gives them new numbers. nil = there are none. Only
	// a child run can have such signals.
	Signals []signal
	Line    line.Line
	// Waits is true if the run must wait for a place, or until the run that holds its unique key
	// has ended. Its steps start after a SlotsFreed with Admitted.
	Waits bool
	// StartBy is the time by which the first step must begin; zero = there is no such time. If no
	// step has begun by then, the run fails with not_started (S65).
	StartBy time.Time
	// From is only set for a run that takes over results of an ended run. The record of the start
	// holds all that the run takes over (Input.Past). The store accepts only one such run for each
	// ended run.
	From moving.From
	// Where the replies of the run go, such as table:orders, and the text that each reply repeats.
	// A child run has no replies. ReplyTo "" = the run has no replies.
	ReplyTo, Correlation string
}

// AttemptOK says that a call returned a valid result (S16, S35). For a lookup or an undo,
// Output may be null.
type AttemptOK struct {
	Attempt AttemptID
	Output  dsl.Value
	// Only for a call that starts or undoes a child run: what remains of the effects of the child
	// run.
	Kept status.Kept
}

// AttemptFailed says that a call failed definitely: the agent guarantees that nothing was done
// (S31).
type AttemptFailed struct {
	Attempt    AttemptID
	Code       string
	Message    string
	Permanent  bool // the agent says that another attempt would fail, too
	RetryAfter time.Duration
	Data       dsl.Value // data that the agent sent (error.data); null = no data
	// Only for a call that starts a child run: what remains of the child's effects.
	Kept status.Kept
}

// AttemptUnknown says that the outcome of a call is unknown: the agent was lost, gave a bad
// reply, or panicked. This event does not report a timeout: Decide itself finds calls whose
// time has passed.
type AttemptUnknown struct {
	Attempt    AttemptID
	Code       string
	Message    string
	RetryAfter time.Duration // pause that the agent asks for before the next attempt; 0 = none
}

// AttemptNotDone says that the agent answered a lookup: no call with the idempotency key ever
// had an effect.
type AttemptNotDone struct {
	Attempt AttemptID
}

// AttemptDeferred says that the engine did not send a call. This outcome is definite, and the
// attempt does not count. The step is held until the time Until. If Until is zero, the step is
// held until a slot becomes free.
type AttemptDeferred struct {
	Attempt AttemptID
	Until   time.Time
	Why     string
}

// AttemptProgress is a checkpoint or a heartbeat of a running call. If Blob is nil, it is a
// heartbeat. Otherwise it is a checkpoint, even if Blob is empty.
type AttemptProgress struct {
	Attempt AttemptID
	Number  int // number of the checkpoint, set by the agent; later checkpoints have higher numbers
	Note    string
	Blob    []byte // data that the next attempt needs to continue after the checkpoint
}

// TimePassed makes Decide handle everything that is due at Input.At: deadlines and attempts expire,
// and pauses end. The Supervisor delivers this event (S37, S44). For an unstaffed run, an engine
// also decides this event after the messages of the run.
type TimePassed struct{}

// SlotsFreed says that agents may have free slots, so held steps try to start again. If Admitted is
// true, the event also starts a run that waited for a place or for its unique key.
type SlotsFreed struct {
	// Admitted is true if the concurrency limit of the workflow has a place for the run, and the
	// unique key of the run is free. In this case a waiting run starts its steps. The store commits
	// the record only if there is still a place and the key is still free (Record.Admits).
	Admitted bool
}

// TakenOver says that an engine took over a run whose owner is gone. Open attempts of the former
// owner stay open, and their answers still count. Only lookups are closed, because the new owner
// makes them again. The new owner may start other attempts at the same time.
type TakenOver struct {
	By   int32 // membership of the new owner
	From int32 // membership of the former owner; 0 = there was none
}

// EngineLost parks a run because several engines, one after the other, ended while they read
// or decided the run. The event changes nothing if the run is already parked for this reason,
// or has ended. An engine that takes over such a run does not read the journal: the function Lost
// makes the record without the journal.
type EngineLost struct {
	Deaths int    // number of engines that died; 0 = none, and Why gives another reason
	Why    string // the reason, for people
}

// CancelRequested asks the run to turn back. If NoCompensate is true, it instead asks the run to
// end without an undo. Also in this case the run first waits for its calls in flight.
type CancelRequested struct {
	NoCompensate bool
	By, Reason   string
	// Code is the code of the run's failure, such as naming.CodeReplaced; "" = CodeCancelled.
	Code string
	// Ask is the number of the message that holds the verb; 0 = there is no message. With this
	// number, the person who sent the verb finds the answer.
	Ask int64
}

// PauseRequested asks the run to start no new calls.
type PauseRequested struct {
	By, Reason string
	Ask        int64
}

// ResumeRequested ends a pause. It can also give a paused or parked run a later deadline (Extend).
type ResumeRequested struct {
	Extend     time.Duration // time from now to the new deadline of the run; 0 = the deadline stays
	By, Reason string
	Ask        int64
}

// ParentWaits says until when the parent of a child run waits now, because this time has changed
// (BoundChild). Only the engine sends this event. If the event arrives twice, the second one
// changes nothing.
type ParentWaits struct {
	Until time.Time // time until which the parent waits now
	By    string    // public id of the parent
	Ask   int64
}

// RetryRequested gives failed steps of a parked run a new round of attempts (S60). It also
// continues a run that is parked because engines died.
type RetryRequested struct {
	Step       string // name of the step or instance to repeat; "" = every failed step
	NewKey     bool   // give the steps a new idempotency key
	Extend     time.Duration
	By, Reason string
	Ask        int64
}

// CompensateRequested makes a parked run turn back. If Retry or Skip is true, it instead repeats or
// skips failed undos: those of the step with the name Step, or all failed undos if Step is "".
type CompensateRequested struct {
	Step  string
	Retry bool
	Skip  bool
	// Parent is true if the parent of a child run is being undone. In this case the child turns
	// back, although it has succeeded. Only the engine sends such a verb. If the verb arrives
	// twice, the second one changes nothing.
	Parent     bool
	By, Reason string
	Ask        int64
}

// Settlement is the outcome that an operator states for a step or an undo.
type Settlement uint8

// The settlements. The zero Settlement is invalid.
const (
	_ Settlement = iota
	SettleSucceeded
	SettleNotDone
	SettleUndone
)

// SettleRequested states the real outcome of a step whose outcome is unknown, or of an undo that
// has failed. It can also correct an earlier settlement.
type SettleRequested struct {
	Step       string
	As         Settlement
	Output     dsl.Value // output that the person states; only with SettleSucceeded
	By, Reason string
	Ask        int64
}

// A signal (this type) holds the data of one signal that a run has accepted.
type signal = model.Signal

// SignalReceived brings a signal to a run. The signal ends the first wait step that waits for
// this name and accepts the payload. If no step waits for the signal yet, the run keeps the
// signal until such a step begins to wait.
type SignalReceived struct {
	Name string
	// Chosen by the sender; a second signal with an id that the run knows changes nothing; "" = no
	// id.
	ID         string
	Payload    dsl.Value
	Fail       string // error code with which the wait step fails; "" = the step succeeds
	By, Reason string
	Ask        int64
	// Forgets is true if the run forgets its oldest id, because it already remembers as many ids as
	// it may. Decide sets it.
	Forgets bool
}

// Migrated moves the run to the workflow Input.Next of another definition (engine migrate). The
// field Workflow is the id of this workflow in the store, and Digest is the digest of the
// definition. The nodes of the run keep their numbers.
type Migrated struct {
	Workflow   int32
	Digest     string
	By, Reason string
	Ask        int64
}

// Refused replaces a verb that the decision refused. It says why, and changes nothing. While the
// run is open, the journal stores the Refused, so that the person who sent the verb sees the
// answer.
type Refused struct {
	Verb   string
	Reason string
	By     string
	Ask    int64
}

func (Started) event()             {}
func (AttemptOK) event()           {}
func (AttemptFailed) event()       {}
func (AttemptUnknown) event()      {}
func (AttemptNotDone) event()      {}
func (AttemptDeferred) event()     {}
func (AttemptProgress) event()     {}
func (TimePassed) event()          {}
func (SlotsFreed) event()          {}
func (TakenOver) event()           {}
func (EngineLost) event()          {}
func (CancelRequested) event()     {}
func (PauseRequested) event()      {}
func (ResumeRequested) event()     {}
func (RetryRequested) event()      {}
func (ParentWaits) event()         {}
func (CompensateRequested) event() {}
func (SettleRequested) event()     {}
func (SignalReceived) event()      {}
func (Migrated) event()            {}
func (Refused) event()             {}

// Asked returns the field Ask of the verb e, the number of the message that holds the verb. If e
// is a Refused, the result `ask` belongs to the refused verb, and the result `refused` is e. The
// result `ok` is false if e is neither a verb nor a Refused.
func Asked(e Event) (ask int64, refused Refused, ok bool) {
	switch ev := e.(type) {
	case CancelRequested:
		return ev.Ask, Refused{}, true
	case PauseRequested:
		return ev.Ask, Refused{}, true
	case ResumeRequested:
		return ev.Ask, Refused{}, true
	case RetryRequested:
		return ev.Ask, Refused{}, true
	case ParentWaits:
		return ev.Ask, Refused{}, true
	case CompensateRequested:
		return ev.Ask, Refused{}, true
	case SettleRequested:
		return ev.Ask, Refused{}, true
	case SignalReceived:
		return ev.Ask, Refused{}, true
	case Migrated:
		return ev.Ask, Refused{}, true
	case Refused:
		return ev.Ask, ev, true
	}
	return 0, Refused{}, false
}

// WithAsk returns a copy of the verb e in which the field Ask has the value of the parameter `ask`,
// the number of a message. If e is not a verb, WithAsk returns e unchanged.
func WithAsk(e Event, ask int64) Event {
	switch ev := e.(type) {
	case CancelRequested:
		ev.Ask = ask
		return ev
	case PauseRequested:
		ev.Ask = ask
		return ev
	case ResumeRequested:
		ev.Ask = ask
		return ev
	case RetryRequested:
		ev.Ask = ask
		return ev
	case ParentWaits:
		ev.Ask = ask
		return ev
	case CompensateRequested:
		ev.Ask = ask
		return ev
	case SettleRequested:
		ev.Ask = ask
		return ev
	case SignalReceived:
		ev.Ask = ask
		return ev
	case Migrated:
		ev.Ask = ask
		return ev
	}
	return e
}
