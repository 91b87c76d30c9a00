package model

import (
	"encoding/json"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// An Activity says what a track of a node (see Track) is doing now.
type Activity uint8

// The activities. The numbers are persisted.
const (
	Idle    Activity = 0 // the track does nothing now
	Running Activity = 1 // an attempt is open
	Queued  Activity = 2 // the track waits until its agent can take a call
	Backoff Activity = 3 // the track is in a pause until the time Track.Until
	Waiting Activity = 4 // the track waits for a signal, or for the end of a timer
)

// A CallKind says why an agent is called. The numbers are persisted.
type CallKind uint8

// The kinds of calls.
const (
	CallNone       CallKind = 0
	CallDo         CallKind = 1 // calls the action of the step
	CallLookup     CallKind = 2 // asks for the outcome of the forward calls
	CallUndo       CallKind = 3
	CallUndoLookup CallKind = 4 // asks for the outcome of the undo calls
	CallLearn      CallKind = 5 // repeats the forward call, to learn the output that the undo needs
)

// Purpose returns the purpose that the agent sees; PurposeInvalid for CallNone.
func (k CallKind) Purpose() sdk.Purpose {
	switch k {
	case CallDo, CallLearn:
		return sdk.PurposeDo
	case CallUndo:
		return sdk.PurposeUndo
	case CallLookup, CallUndoLookup:
		return sdk.PurposeLookup
	}
	return sdk.PurposeInvalid
}

// A Track holds the state of one task of a node. Each node has two tracks: one for its forward
// work (Node.Fwd) and one for its undo (More.Und).
type Track struct {
	Act      Activity
	Kind     CallKind // kind of the present call or of the next one
	Miss     MissKind // kind of the last failure; MissNone = none
	Attempt  int32    // number of attempts in the present round
	Total    int32    // number of attempts in all rounds; calls of the kind CallLearn do not count
	Failures int32    // number of attempts that ended without a result, in all rounds
	Rounds   int16    // number of rounds that cool-downs have added
	Lookups  int16    // number of lookups, since the last attempt, that did not find the outcome
	// End of the present pause or timer; only used while Act is Backoff or Waiting. 0 = the track
	// waits for a signal.
	Until Instant
	// Time before which the agent wants no further call; 0 = it has given no such time.
	Rest Instant
	// Time at which the work of the track could start; 0 = it cannot start yet. Limits such as
	// deadline = "1h" count from this time.
	Ready    Instant
	Deadline Instant      // deadline of this track; 0 = none
	Began    Instant      // start of the first attempt or of the wait; 0 = it has not started
	Ended    Instant      // time at which the track ended; 0 = it has not ended
	Said     *FailureText // code and message of the last failure; nil = none
}

// Blame records m as the last failure of the track. The zero Miss removes the recorded
// failure.
func (t *Track) Blame(m Miss) {
	if t.Miss == m.Kind && t.Code() == m.Code && t.Message() == m.Message {
		return
	}
	t.Miss, t.Said = m.Kind, NewFailureText(m.Code, m.Message)
}

// Blamed returns the last failure of the track; the zero Miss if there is none.
func (t *Track) Blamed() Miss { return Miss{t.Miss, t.Code(), t.Message()} }

// Code returns the code of the last failure; "" if there is none.
func (t *Track) Code() string {
	code, _ := t.Said.Words()
	return code
}

// Message returns the message of the last failure; "" if there is none.
func (t *Track) Message() string {
	_, message := t.Said.Words()
	return message
}

// A FailureText holds the code and the message of a failure. No code changes it after it was made.
// A nil *FailureText means that both texts are empty.
type FailureText struct{ Code, Message string }

// NewFailureText returns a FailureText with this code and message. It returns nil if both are "".
func NewFailureText(code, message string) *FailureText {
	if code == "" && message == "" {
		return nil
	}
	return &FailureText{code, message}
}

// Words returns the code and the message; both are "" if s is nil.
func (s *FailureText) Words() (code, message string) {
	if s == nil {
		return "", ""
	}
	return s.Code, s.Message
}

// Same reports whether s and o have the same code and the same message.
func (s *FailureText) Same(o *FailureText) bool {
	return s == o || s != nil && o != nil && *s == *o
}

// A MissKind says why an attempt ended without a result, or why no attempt was made.
type MissKind uint8

// The kinds of misses. The numbers are persisted.
const (
	MissNone       MissKind = 0
	MissFailed     MissKind = 1 // definite failure
	MissPermanent  MissKind = 2 // definite failure; no other attempt is made
	MissUnknown    MissKind = 3 // the outcome of the call is unknown
	MissCondition  MissKind = 4 // a precondition or postcondition failed
	MissExpression MissKind = 5 // an expression failed, or a limit of the engine was reached
	MissDeadline   MissKind = 6 // a deadline has passed, or leaves no time for another attempt
)

// A Miss describes a failure of a step or of an undo. It holds all data of the failure that
// decisions use.
type Miss struct {
	Kind          MissKind
	Code, Message string
}

// LastAttempt returns error.data for a step that had no time for another attempt. It is an object
// with the code, the message and the data of the last attempt. The parameter `last` is the failure
// of that attempt, and the parameter `data` is its data.
func LastAttempt(last Miss, data dsl.Value) dsl.Value {
	doc, err := json.Marshal(struct {
		Code    string          `json:"code"`
		Data    json.RawMessage `json:"data"`
		Message string          `json:"message"`
	}{last.Code, data.JSON(), last.Message})
	if err != nil {
		return dsl.Value{} // the JSON in `data` is not valid, so there is no error.data
	}
	var marks []string
	for _, m := range data.Sensitive() {
		marks = append(marks, "/data"+m)
	}
	var secrets []dsl.Secret
	for _, s := range data.Secrets() {
		s.Path = "/data" + s.Path
		secrets = append(secrets, s)
	}
	return dsl.NewValue(doc, marks, secrets)
}
