package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// gateSignal is the source text in the block of a wait step. This step waits for the signal that
// World.signal sends. If no signal comes, the run continues after a time that is shorter than
// stepTimeout.
const gateSignal = "deadline = \"1500ms\"\n    wait {\n      signal     = \"go\"\n      on_timeout = \"continue\"\n    }"

// gateTimer is the source text in the block of a step that waits for a short time.
const gateTimer = "timer { duration = \"300ms\" }"

// gate returns a random value for the field Step.Gate. In three of four cases it is "": no gate.
func gate(rng *rand.Rand) string {
	if rng.IntN(4) > 0 {
		return ""
	}
	return pick(rng, gateSignal, gateTimer)
}

// signal sends a signal with the given id to every accepted run, as another process would. If no
// step of a run can take the signal, the run refuses it. If a run gets the same id again, the
// second signal does not count.
func (w *World) signal(id string) {
	w.T.Helper()
	op := &operator.Operator{Store: w.store, Defs: w.defs}
	accepted, refused := 0, 0
	for _, r := range w.Runs() {
		ctx, cancel := context.WithTimeout(w.T.Context(), patience(10*time.Second))
		_, err := op.Ask(ctx, r.ID, machine.SignalReceived{Name: "go", ID: id, By: "test"}, "test")
		cancel()
		var no *operator.RefusedError
		switch {
		case err == nil:
			accepted++
		case errors.As(err, &no), errors.Is(err, store.ErrNotFound):
			refused++
		default:
			w.T.Fatalf("signal to %s: %v", r.Name, err)
		}
	}
	w.Note("signal %q: sent to %d runs, refused by %d", id, accepted, refused)
}

// waits checks the wait steps of a run. A signal may end at most one wait step. While the run keeps
// a signal that a wait step could take, the step may not reach its deadline. All wait steps of
// generated workflows wait for the same signal. The result is the number of wait steps that a
// signal ended.
func (j *judge) waits(r Run, records []machine.Record) (taken int) {
	state, accepted, late := machine.NewState(), map[string]bool{}, 0
	for _, rec := range records {
		if e, ok := rec.Event().(machine.SignalReceived); ok {
			accepted[cmp.Or(e.ID, fmt.Sprint("message ", e.Ask))] = true
		}
		kept := len(accepted) - taken // number of signals that were not taken before this record
		state.Apply(rec)
		nowTaken, nowLate := 0, 0
		for _, n := range state.Nodes() {
			if n.Signal.Name != "" {
				nowTaken++
			}
			if n.TimedOut && n.Signal.Awaits != "" { // count only wait steps; TimedOut is also set for calls
				nowLate++
			}
		}
		if nowLate > late && kept > 0 {
			j.fault("%s: a wait reached its deadline, and the run had %d signals for it (I1)", r.Name, kept)
		}
		taken, late = nowTaken, nowLate
	}
	if taken > len(accepted) {
		j.fault("%s: signals ended %d waits, but only %d were accepted (I4)", r.Name, taken, len(accepted))
	}
	return taken
}
