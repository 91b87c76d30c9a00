package wire

import (
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// putKept writes what remains of the effects of a child run, if the event says that effects remain.
// After that, the caller writes the event in its ordinary form.
func putKept(e *encoder, event machine.Event) {
	kept := status.Kept(0)
	switch ev := event.(type) {
	case machine.AttemptOK:
		kept = ev.Kept
	case machine.AttemptFailed:
		kept = ev.Kept
	}
	if kept != 0 {
		e.uint(kindChildEnded)
		e.uint(uint64(kept))
	}
}

// childEnded reads the end of a child run: first what remains of its effects, and then the answer
// to the call.
func childEnded(d *decoder) machine.Event {
	kept := getKept(d)
	switch kind := d.uint(); kind {
	case kindAttemptOK:
		ev := attemptOK(d)
		ev.Kept = kept
		return ev
	case kindAttemptFailed, kindAttemptRefused:
		ev := attemptFailed(d, kind)
		ev.Kept = kept
		return ev
	}
	d.fail()
	return machine.TimePassed{}
}

// attemptOK reads the result of a call.
func attemptOK(d *decoder) machine.AttemptOK {
	return machine.AttemptOK{Attempt: d.attemptID(), Output: d.value()}
}

// attemptFailed reads a definite failure of a call. The kind says whether it has data.
func attemptFailed(d *decoder, kind uint64) machine.AttemptFailed {
	ev := machine.AttemptFailed{Attempt: d.attemptID(), Code: d.string(), Message: d.string(), Permanent: d.bool(), RetryAfter: d.duration()}
	if kind == kindAttemptRefused {
		ev.Data = d.value()
	}
	return ev
}

// getKept reads what remains of the effects of child runs.
func getKept(d *decoder) status.Kept {
	read := d.uint()
	kept := status.Kept(read)
	if uint64(kept) != read || !kept.Valid() {
		d.fail()
	}
	return kept
}
