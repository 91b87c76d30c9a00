package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
)

// An Event is something that happened to a run: a closed set of small
// structs, each persisted under a kind number that is never reused.
type Event interface{ event() }

// An AttemptID names one call of a run: the node that makes it and the number
// of the call within the node, counted over all purposes from 1.
type AttemptID struct {
	Node int
	Call int
}

// Started accepts a run: its first record (S14).
type Started struct {
	RunID     status.RunID // internal id
	Name      string       // public id
	Key       string       // value of unique.key, or ""
	Vars      dsl.Value
	Trigger   string // "manual"
	StartedBy string // who asked, for people
}

// AttemptOK is a valid result of a call (S16, S35). For a lookup or an undo
// Output may be null.
type AttemptOK struct {
	Attempt AttemptID
	Output  dsl.Value
}

// AttemptFailed is a definite failure: the agent vouches that nothing was
// done (S31).
type AttemptFailed struct {
	Attempt    AttemptID
	Code       string
	Message    string
	Permanent  bool
	RetryAfter time.Duration
	Data       dsl.Value // what the agent sent with it: step.N.error.data; null = nothing
}

// AttemptUnknown says that nobody knows whether the call took effect: agent
// lost, bad reply, panic. A timeout is not reported by it: only TimePassed
// says that time has passed.
type AttemptUnknown struct {
	Attempt    AttemptID
	Code       string
	Message    string
	RetryAfter time.Duration // no attempt before this much later; 0 = as the step says
}

// AttemptNotDone answers a lookup: the key never had an effect.
type AttemptNotDone struct {
	Attempt AttemptID
}

// AttemptDeferred says that a call was not sent: a definite outcome that
// spends no attempt. The step is held until Until, or until a slot frees if
// Until is zero.
type AttemptDeferred struct {
	Attempt AttemptID
	Until   time.Time
	Why     string
}

// AttemptProgress is a durable checkpoint or a heartbeat of a running call. It is
// a checkpoint if Blob is not nil, also if Blob is empty.
type AttemptProgress struct {
	Attempt AttemptID
	Number  int // of the checkpoint, in the author's own counting, rising
	Note    string
	Blob    []byte // what a rerun needs to continue after the checkpoint
}

// TimePassed says that the time is Input.At: all that is due by then expires. Only the Supervisor
// delivers it (S37, S44).
type TimePassed struct{}

// SlotsFreed asks held steps to try again; a hint that changes nothing by
// itself.
type SlotsFreed struct{}

// TakenOver says that an engine took over a run whose owner is gone. Open attempts of the
// former owner stay open: their answers still count. Other attempts may start as well.
type TakenOver struct {
	By   int32 // membership of the new owner
	From int32 // membership of the former owner; 0 = nobody
}

// EngineLost parks a run with which engines died: one after the other ended while
// it was about to read or decide the run. The engine that finds that sends it, in
// place of trying the run itself. A second one changes nothing, and so does one
// that reaches a run that has ended.
type EngineLost struct {
	Deaths int    // engines that ended so; 0 = none did, and Why says what happened
	Why    string // for people
}

// CancelRequested asks the run to turn back, or to stop dead.
type CancelRequested struct {
	NoCompensate bool
	By, Reason   string
	Ask          int64 // number of the message that asked, so that the asker finds the answer; 0 = none
}

// PauseRequested holds all dispatch.
type PauseRequested struct {
	By, Reason string
	Ask        int64
}

// ResumeRequested ends a pause, or lets a parked run's deadline be extended.
type ResumeRequested struct {
	Extend     time.Duration // added to now as the new run deadline; 0 = keep
	By, Reason string
	Ask        int64
}

// RetryRequested gives the failed step of a parked run a fresh round (S60).
type RetryRequested struct {
	Step       string // "" = every failed step
	NewKey     bool
	Extend     time.Duration
	By, Reason string
	Ask        int64
}

// CompensateRequested starts the undo of a parked run, or with Step repeats or
// skips one failed undo.
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

// SettleRequested states what really happened with a step or undo whose
// outcome is unknown.
type SettleRequested struct {
	Step       string
	As         Settlement
	Output     dsl.Value // SettleSucceeded
	By, Reason string
	Ask        int64
}

// SignalReceived brings a signal to a run. The first wait that listens for its name and
// takes its payload ends with it; an early signal is kept until such a wait begins.
type SignalReceived struct {
	Name       string
	ID         string // of the sender's choice; a second signal with it changes nothing; "" = none
	Payload    dsl.Value
	Fail       string // code with which the wait fails; "" = it succeeds
	By, Reason string
	Ask        int64
}

// Refused is the answer to a verb that does not apply: it changes nothing and
// is recorded so that the asker sees it.
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

// Asked returns the number of the message that an operator's verb answers, and
// the refusal if it was refused. ok is false for every other event.
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

// WithAsk returns a verb that answers the numbered message.
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
