package model

import (
	"encoding/json"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// An Activity says what a track is doing now.
type Activity uint8

// The activities. The numbers are persisted.
const (
	Idle    Activity = 0
	Running Activity = 1 // an attempt is open
	Queued  Activity = 2 // waits for its agent
	Backoff Activity = 3 // waits until the time Until
	Waiting Activity = 4 // waits for a signal, or for the end of a timer
)

// A CallKind says why an agent is called. The numbers are persisted.
type CallKind uint8

// The kinds of calls.
const (
	CallNone       CallKind = 0
	CallDo         CallKind = 1
	CallLookup     CallKind = 2 // asks for the outcome of calls with the forward key
	CallUndo       CallKind = 3
	CallUndoLookup CallKind = 4 // asks for the outcome of calls with the undo key
	CallLearn      CallKind = 5 // repeats the forward call, to learn the output that the undo needs
)

// Purpose returns the purpose of the call as the agent sees it.
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

// A Track is the state of one of the two tasks of a node: its forward work, or its undo.
type Track struct {
	Act      Activity
	Kind     CallKind // kind of the present call or of the next one
	Miss     MissKind // kind of the last failure; MissNone = none
	Attempt  int32    // number of attempts in this round
	Total    int32    // number of attempts in all rounds, except those that only learn an output
	Failures int32    // number of attempts in all rounds that ended without a result
	Rounds   int16    // number of rounds that cool-downs have added
	Lookups  int16    // number of lookups without an answer since the last attempt
	Until    Instant  // end of the pause
	Rest     Instant  // the agent asked not to be called before this time
	Ready    Instant  // time at which the track could start; its deadline counts from here
	Deadline Instant
	Began    Instant // start of the first attempt
	Ended    Instant
	Said     *Saying // code and message of the last failure; nil = none
}

// Blame records the last failure. The zero Miss removes it.
func (t *Track) Blame(m Miss) {
	if t.Miss == m.Kind && t.Code() == m.Code && t.Message() == m.Message {
		return
	}
	t.Miss, t.Said = m.Kind, Said(m.Code, m.Message)
}

// Blamed returns the last failure.
func (t *Track) Blamed() Miss { return Miss{t.Miss, t.Code(), t.Message()} }

// Code returns the code of the last failure, or "".
func (t *Track) Code() string {
	code, _ := t.Said.Words()
	return code
}

// Message returns the message of the last failure, or "".
func (t *Track) Message() string {
	_, message := t.Said.Words()
	return message
}

// A Saying holds the code and the message of a failure. It never changes. nil = both are
// empty.
type Saying struct{ Code, Message string }

// Said returns a Saying; nil if both texts are empty.
func Said(code, message string) *Saying {
	if code == "" && message == "" {
		return nil
	}
	return &Saying{code, message}
}

// Words returns the code and the message.
func (s *Saying) Words() (code, message string) {
	if s == nil {
		return "", ""
	}
	return s.Code, s.Message
}

// Same reports whether both have the same code and message.
func (s *Saying) Same(o *Saying) bool {
	return s == o || s != nil && o != nil && *s == *o
}

// A MissKind says why an attempt ended without a result, or why no attempt was made.
type MissKind uint8

// The kinds of misses. The numbers are persisted.
const (
	MissNone       MissKind = 0
	MissFailed     MissKind = 1 // definite failure
	MissPermanent  MissKind = 2 // definite failure that must not be repeated
	MissUnknown    MissKind = 3
	MissCondition  MissKind = 4 // a precondition or postcondition failed
	MissExpression MissKind = 5
	MissDeadline   MissKind = 6
)

// A Miss is a failure of a step or an undo, with everything about it that decisions depend
// on.
type Miss struct {
	Kind          MissKind
	Code, Message string
}

// LastAttempt is error.data of a step for which no time was left: the code, the message
// and the data of the last attempt.
func LastAttempt(last Miss, data dsl.Value) dsl.Value {
	doc, err := json.Marshal(struct {
		Code    string          `json:"code"`
		Data    json.RawMessage `json:"data"`
		Message string          `json:"message"`
	}{last.Code, data.JSON(), last.Message})
	if err != nil {
		return dsl.Value{} // data that are no JSON: nothing can be said of them
	}
	var marks []string
	for _, m := range data.Sensitive() {
		marks = append(marks, "/data"+m)
	}
	return dsl.NewValue(doc, marks, nil)
}
