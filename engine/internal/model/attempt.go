package model

import "slices"

// An Attempt is one call. Open attempts are always kept; of closed ones only
// the last few.
type Attempt struct {
	Call       int32
	Number     int32 // for people, from 1, in its round
	Gen        int32 // of its key
	Kind       CallKind
	Status     AttemptStatus
	Started    Instant
	CompleteBy Instant
	Silent     Instant // a heartbeat is due before; 0 = none is
	Ended      Instant
	Said       *Saying // about its end; nil = nothing
}

// KeptAttempts is how many closed attempts of a node the state remembers; the
// journal has them all.
const KeptAttempts = 16

// An AttemptStatus says how an attempt has ended. Numbers are persisted.
type AttemptStatus uint8

// The statuses of attempts.
const (
	AttemptOpen     AttemptStatus = 0
	AttemptOK       AttemptStatus = 1
	AttemptFailed   AttemptStatus = 2 // definite failure
	AttemptUnknown  AttemptStatus = 3
	AttemptNotSent  AttemptStatus = 4
	AttemptNotDone  AttemptStatus = 5 // lookup: the key never had an effect
	AttemptNeedless AttemptStatus = 6 // another attempt settled the step
)

// AttemptStatuses holds the names of statuses as people see them.
var AttemptStatuses = map[AttemptStatus]string{
	AttemptOpen: "open", AttemptOK: "ok", AttemptFailed: "failed", AttemptUnknown: "unknown",
	AttemptNotSent: "not_sent", AttemptNotDone: "not_done", AttemptNeedless: "needless",
}

// Code returns the code of the failure it ended with, or "".
func (a *Attempt) Code() string {
	code, _ := a.Said.Words()
	return code
}

// Message returns the message of the failure it ended with, or "".
func (a *Attempt) Message() string {
	_, message := a.Said.Words()
	return message
}

// Expires returns when the attempt is over if nothing is heard of it.
func (a *Attempt) Expires() Instant { return Earliest(a.CompleteBy, a.Silent) }

// place returns where in a list of attempts the call with this number is, or
// belongs.
func place(list []Attempt, call int32) (i int, found bool) {
	for i = len(list); i > 0 && list[i-1].Call >= call; i-- {
		if list[i-1].Call == call {
			return i - 1, true
		}
	}
	return i, false
}

// insert puts an attempt into its place.
func insert(list []Attempt, i int, a Attempt) []Attempt {
	list = append(list, a)
	copy(list[i+1:], list[i:])
	list[i] = a
	return list
}

// Forget drops closed attempts that are too old to be kept, in place.
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
