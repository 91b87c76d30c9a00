package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
)

// An Event is something that happened to a run. The set of events is closed. Each event is
// persisted under a kind number that is never reused.
type Event interface{ event() }

// An AttemptID identifies one call of a run: the node that makes it, and the number of the
// call within the node. Calls of all purposes are counted together, from 1.
type AttemptID struct {
	Node int
	Call int
}

// Started accepts a run. It is the event of the first record (S14).
type Started struct {
	RunID     status.RunID // internal id of the run
	Name      string       // public id of the run
	Key       string       // value of unique.key; "" = the workflow has no unique key
	Vars      dsl.Value
	Trigger   string // how the run was started; the engine writes "manual"
	StartedBy string // the person who started the run; only for display
}

// AttemptOK is a valid result of a call (S16, S35). The Output of a lookup or an undo may
// be null.
type AttemptOK struct {
	Attempt AttemptID
	Output  dsl.Value
}

// AttemptFailed is a definite failure: the agent guarantees that nothing was done (S31).
type AttemptFailed struct {
	Attempt    AttemptID
	Code       string
	Message    string
	Permanent  bool
	RetryAfter time.Duration
	Data       dsl.Value // what the agent sent with it: step.N.error.data; null = nothing
}

// AttemptUnknown says that the outcome of the call is unknown: the agent was lost, gave a
// bad reply, or panicked. It is not used for a timeout: only TimePassed says that time has
// passed.
type AttemptUnknown struct {
	Attempt    AttemptID
	Code       string
	Message    string
	RetryAfter time.Duration // minimum pause that the agent asks for before the next attempt; 0 = none
}

// AttemptNotDone is the answer to a lookup. It says that no call with the idempotency key
// ever had an effect.
type AttemptNotDone struct {
	Attempt AttemptID
}

// AttemptDeferred says that a call was not sent. This outcome is definite, and the attempt
// does not count. The step is held until the time Until; if Until is zero, until a slot
// becomes free.
type AttemptDeferred struct {
	Attempt AttemptID
	Until   time.Time
	Why     string
}

// AttemptProgress is a checkpoint or a heartbeat of a running call. It is a checkpoint if
// Blob is not nil, even if Blob is empty.
type AttemptProgress struct {
	Attempt AttemptID
	Number  int // number of the checkpoint, set by the agent; later checkpoints have higher numbers
	Note    string
	Blob    []byte // data that the next attempt needs to continue after the checkpoint
}

// TimePassed lets everything happen that is due at Input.At: deadlines and attempts expire,
// and pauses end. Only the Supervisor delivers it (S37, S44).
type TimePassed struct{}

// SlotsFreed says that agents may have free slots. Held steps try to start again; nothing
// else happens.
type SlotsFreed struct{}

// TakenOver says that an engine took over a run whose owner is gone. Open attempts of the
// former owner stay open, and their answers still count. Other attempts may start as well.
type TakenOver struct {
	By   int32 // membership of the new owner
	From int32 // membership of the former owner; 0 = there was none
}

// EngineLost parks a run because engines died with it. This means that several engines, one
// after the other, ended while they read or decided the run. The engine that notices this
// delivers the event and does not decide the run itself. EngineLost changes nothing if the
// run is already parked for this reason, or has ended.
type EngineLost struct {
	Deaths int    // number of engines that died; 0 = none did, and Why says what happened instead
	Why    string // the reason, for people
}

// CancelRequested asks the run to turn back or, with NoCompensate, to end at once without
// undoing anything.
type CancelRequested struct {
	NoCompensate bool
	By, Reason   string
	// Number of the message that holds the verb, so that the person who sent it finds the
	// answer; 0 = none.
	Ask int64
}

// PauseRequested asks that no new call starts.
type PauseRequested struct {
	By, Reason string
	Ask        int64
}

// ResumeRequested ends a pause, or gives a parked run a later deadline.
type ResumeRequested struct {
	Extend     time.Duration // time from now to the new deadline of the run; 0 = the deadline stays
	By, Reason string
	Ask        int64
}

// RetryRequested gives failed steps of a parked run a new round of attempts (S60).
type RetryRequested struct {
	Step       string // name of the step or instance to repeat; "" = every failed step
	NewKey     bool
	Extend     time.Duration
	By, Reason string
	Ask        int64
}

// CompensateRequested makes a parked run turn back. With Retry or Skip it instead repeats or
// skips the failed undos of Step; "" = of all steps.
type CompensateRequested struct {
	Step       string
	Retry      bool
	Skip       bool
	By, Reason string
	Ask        int64
}

// Settlement is what an operator states about an unknown outcome.
type Settlement uint8

// The settlements. The zero Settlement is invalid.
const (
	SettleInvalid Settlement = iota
	SettleSucceeded
	SettleNotDone
	SettleUndone
)

// SettleRequested states the real outcome of a step or an undo whose outcome is unknown.
type SettleRequested struct {
	Step       string
	As         Settlement
	Output     dsl.Value // output that the person states; only with SettleSucceeded
	By, Reason string
	Ask        int64
}

// SignalReceived brings a signal to a run. The first wait that waits for its name and
// accepts its payload ends with it. An early signal is kept until such a wait begins.
type SignalReceived struct {
	Name       string
	ID         string // chosen by the sender; a second signal with the same id changes nothing; "" = none
	Payload    dsl.Value
	Fail       string // code with which the wait fails; "" = it succeeds
	By, Reason string
	Ask        int64
}

// Refused is the answer to a verb that does not apply. It changes nothing. It is recorded
// so that the person who sent the verb sees the answer.
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
func (CompensateRequested) event() {}
func (SettleRequested) event()     {}
func (SignalReceived) event()      {}
func (Refused) event()             {}

// Asked returns the number of the message that holds the verb e. If e is a Refused, Asked
// returns the number for the refused verb, and e itself as refused. ok is false for every
// other event.
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
	case CompensateRequested:
		return ev.Ask, Refused{}, true
	case SettleRequested:
		return ev.Ask, Refused{}, true
	case SignalReceived:
		return ev.Ask, Refused{}, true
	case Refused:
		return ev.Ask, ev, true
	}
	return 0, Refused{}, false
}

// WithAsk returns the verb e with Ask set to ask, the number of the message that holds the
// verb. It returns every other event unchanged.
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
	case CompensateRequested:
		ev.Ask = ask
		return ev
	case SettleRequested:
		ev.Ask = ask
		return ev
	case SignalReceived:
		ev.Ask = ask
		return ev
	}
	return e
}
