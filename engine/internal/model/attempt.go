package model

import "slices"

// An Attempt describes one call of a node: of its action, its undo or a lookup. The state keeps
// all attempts without an outcome, and the last few of the others.
type Attempt struct {
	Call       int32
	Number     int32 // number of the attempt as people see it, counted from 1 in its round
	Gen        int32 // generation of the idempotency key (Node.Gen)
	Kind       CallKind
	Status     AttemptStatus
	Started    Instant
	CompleteBy Instant
	Silent     Instant // time before which a heartbeat must arrive; 0 = no heartbeat is needed
	Ended      Instant
	Said       *Saying // code and message of the failure with which it ended; nil = none
}

// KeptAttempts is how many closed attempts of a node the state keeps. The journal has all
// of them.
const KeptAttempts = 16

// An AttemptStatus says how an attempt has ended. The numbers are persisted.
type AttemptStatus uint8

// The statuses of attempts.
const (
	AttemptOpen     AttemptStatus = 0
	AttemptOK       AttemptStatus = 1
	AttemptFailed   AttemptStatus = 2 // a definite failure
	AttemptUnknown  AttemptStatus = 3
	AttemptNotSent  AttemptStatus = 4
	AttemptNotDone  AttemptStatus = 5 // answer to a lookup: the key never had an effect
	AttemptNeedless AttemptStatus = 6 // another attempt decided the outcome first
)

// AttemptStatuses holds the names of statuses as people see them.
var AttemptStatuses = map[AttemptStatus]string{
	AttemptOpen: "open", AttemptOK: "ok", AttemptFailed: "failed", AttemptUnknown: "unknown",
	AttemptNotSent: "not_sent", AttemptNotDone: "not_done", AttemptNeedless: "needless",
}

// Code returns the code of the failure with which the attempt ended, or "".
func (a *Attempt) Code() string {
	code, _ := a.Said.Words()
	return code
}

// Message returns the message of the failure with which the attempt ended, or "".
func (a *Attempt) Message() string {
	_, message := a.Said.Words()
	return message
}

// Expires returns when the attempt expires if there is no answer and no sign of life.
func (a *Attempt) Expires() Instant { return Earliest(a.CompleteBy, a.Silent) }

// place returns the index of a call in a list of attempts. If the call is not in the list,
// it returns the index at which to insert it.
func place(list []Attempt, call int32) (i int, found bool) {
	for i = len(list); i > 0 && list[i-1].Call >= call; i-- {
		if list[i-1].Call == call {
			return i - 1, true
		}
	}
	return i, false
}

// insert puts an attempt at index i.
func insert(list []Attempt, i int, a Attempt) []Attempt {
	list = append(list, a)
	copy(list[i+1:], list[i:])
	list[i] = a
	return list
}

// Forget removes, in place, the closed attempts that are too old to be kept.
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
