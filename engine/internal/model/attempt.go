package model

import (
	"slices"
	"time"
)

// An Attempt describes one call that a node made: a call of its action, a call of its undo, or a
// lookup. The state keeps all open attempts and the last KeptAttempts closed attempts.
type Attempt struct {
	Call   int32 // number of the call within its node, counted from 1 over calls of all kinds
	Number int32 // number that people see, counted from 1 in each round of attempts
	// Value of Node.Gen at the start of this call; it is part of the idempotency key.
	Gen        int32
	Kind       CallKind
	Status     AttemptStatus
	Started    Instant
	CompleteBy Instant
	// time at which the attempt expires if no heartbeat comes; 0 = no heartbeat is necessary
	Silent Instant
	Ended  Instant      // time at which the attempt was closed; 0 = it is open
	Said   *FailureText // code and message of the failure with which it ended; nil = none
}

// An OpenCall describes a call in flight.
type OpenCall struct {
	Node, Call int       // number of the node, and of the call within its node
	Agent      string    // key of the agent in the map Workflow.Agents
	CompleteBy time.Time // complete-by of the call
}

// KeptAttempts is the largest number of closed attempts of a node that the state keeps. The
// journal keeps all attempts.
const KeptAttempts = 16

// An AttemptStatus says whether an attempt is open, or how it ended. The journal stores these
// numbers.
type AttemptStatus uint8

// The statuses of attempts.
const (
	AttemptOpen AttemptStatus = 0
	AttemptOK   AttemptStatus = 1
	// definite failure: the agent guarantees that nothing was done
	AttemptFailed  AttemptStatus = 2
	AttemptUnknown AttemptStatus = 3
	AttemptNotSent AttemptStatus = 4
	// the result of a lookup: no call with the idempotency key had an effect
	AttemptNotDone  AttemptStatus = 5
	AttemptNeedless AttemptStatus = 6 // closed because another attempt had decided the outcome
)

// AttemptStatuses maps each status to the name that people see.
var AttemptStatuses = map[AttemptStatus]string{
	AttemptOpen: "open", AttemptOK: "ok", AttemptFailed: "failed", AttemptUnknown: "unknown",
	AttemptNotSent: "not_sent", AttemptNotDone: "not_done", AttemptNeedless: "needless",
}

// Code returns the code of the failure with which the attempt ended; "" if there is none.
func (a *Attempt) Code() string {
	code, _ := a.Said.Words()
	return code
}

// Message returns the message of the failure with which the attempt ended; "" if there is
// none.
func (a *Attempt) Message() string {
	_, message := a.Said.Words()
	return message
}

// Expires returns the time at which an open attempt expires: CompleteBy, or Silent if Silent is
// earlier and not 0.
func (a *Attempt) Expires() Instant { return Earliest(a.CompleteBy, a.Silent) }

// indexOfCall searches a list of attempts for the attempt with the given call number. It returns
// the index of this attempt, and true. If there is none, it returns the index at which the caller
// can insert it, and false.
func indexOfCall(list []Attempt, call int32) (i int, found bool) {
	for i = len(list); i > 0 && list[i-1].Call >= call; i-- {
		if list[i-1].Call == call {
			return i - 1, true
		}
	}
	return i, false
}

// insert inserts an attempt at index i of a list, and returns the longer list.
func insert(list []Attempt, i int, a Attempt) []Attempt {
	list = append(list, a)
	copy(list[i+1:], list[i:])
	list[i] = a
	return list
}

// Forget removes old closed attempts from the list in place, and returns the list. It keeps
// all open attempts and the newest KeptAttempts of the closed ones.
func Forget(now []Attempt) []Attempt {
	if len(now) <= KeptAttempts {
		return now
	}
	closed := 0
	for i := len(now) - 1; i >= 0; i-- {
		if now[i].Status == AttemptOpen {
			continue
		}
		if closed++; closed > KeptAttempts {
			now = slices.Delete(now, i, i+1)
		}
	}
	return now
}
