package model

import (
	"encoding/json"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// An Activity says what a track does right now.
type Activity uint8

// The activities. Numbers are persisted.
const (
	Idle    Activity = 0
	Running Activity = 1 // an attempt is open
	Queued  Activity = 2 // waits for its agent
	Backoff Activity = 3 // waits for until
	Waiting Activity = 4 // a wait or a timer: waits for a signal, or for until
)

// A CallKind says why an agent is called. Numbers are persisted; kinds for
// waits, timers, loops and child runs follow when they exist.
type CallKind uint8

// The kinds of calls.
const (
	CallNone       CallKind = 0
	CallDo         CallKind = 1
	CallLookup     CallKind = 2 // what became of the forward key?
	CallUndo       CallKind = 3
	CallUndoLookup CallKind = 4 // what became of the undo key?
	CallLearn      CallKind = 5 // the forward call once more, to learn its output before the undo
)

// Purpose returns the purpose of the call, as the agent gets it.
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

// A Track is one of the two things a node may do: its work, or its undo.
type Track struct {
	Act      Activity
	Kind     CallKind // what is called, or will be
	Miss     MissKind // the last failure; MissNone = none
	Attempt  int32    // attempts in this round
	Total    int32    // attempts in all rounds, without those that only learn an output
	Failures int32    // attempts that ended without result, all rounds
	Rounds   int16    // rounds added by cool-downs
	Lookups  int16    // lookups that brought no answer, since the last attempt
	Until    Instant  // backoff: when it goes on
	Rest     Instant  // the agent asked not to be called before
	Ready    Instant  // when it could start: the deadline's beginning
	Deadline Instant
	Began    Instant // first attempt
	Ended    Instant
	Said     *Saying // of the last failure; nil = nothing
}

// Blame notes the last failure; the zero Miss takes it away.
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

// A Saying is the code and the message of a failure. It is never changed; nil = nothing.
type Saying struct{ Code, Message string }

// Said returns what was said; nil for nothing.
func Said(code, message string) *Saying {
	if code == "" && message == "" {
		return nil
	}
	return &Saying{code, message}
}

// Words returns code and message.
func (s *Saying) Words() (code, message string) {
	if s == nil {
		return "", ""
	}
	return s.Code, s.Message
}

// Same reports whether the same was said.
func (s *Saying) Same(o *Saying) bool {
	return s == o || s != nil && o != nil && *s == *o
}

// A MissKind says how an attempt ended without result, or why none was made.
type MissKind uint8

// The kinds of misses. Numbers are persisted.
const (
	MissNone       MissKind = 0
	MissFailed     MissKind = 1 // definite failure
	MissPermanent  MissKind = 2 // definite failure that must not be repeated
	MissUnknown    MissKind = 3
	MissCondition  MissKind = 4 // precondition or postcondition
	MissExpression MissKind = 5
	MissDeadline   MissKind = 6
)

// A Miss is a failure of a step or undo, as far as it decides anything.
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
