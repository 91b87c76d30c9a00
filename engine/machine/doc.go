// Package machine is the core of the engine: one pure function that moves a
// run forward. Nothing in it reads a clock, rolls dice, blocks, or knows a
// process, a database or a network.
//
//	event ──▶ Decide(workflow, state, event) ──▶ Record ──▶ State.Apply
//	                                               │
//	                                               └─▶ Record.Commands: what the shell does next
//
// The caller's loop is
//
//	rec := machine.Decide(wf, state, machine.Input{At: now, Event: ev, Slots: slots})
//	if rec.Empty() {
//		return // a duplicate, a late answer, nothing due
//	}
//	commit(rec)          // durable, or nothing of it happened
//	state.Apply(rec)     // cannot fail
//	act(rec.Commands())  // only now, and only by who committed
//	wake(state.NextDue()) // deliver TimePassed then
//
// A state is the fold of its run's records. Records hold what was decided, not
// only what happened, so that a newer engine reads an old journal to the same
// state.
//
// # States of a run
//
//	        ┌──────── slot ────────┐                        ┌── retry, settle ──┐
//	        │                      ▼                        ▼                   │
//	 queued ┘───────────────▶ running ───────────────▶ (forward) ─────────▶ parked
//	   │                       │  ▲                         │                   │
//	   │                 pause │  │ resume            failure, cancel,    compensate,
//	   │                       ▼  │                   deadline            cancel
//	   │                      paused                        │                   │
//	   │ cancel                                             ▼                   │
//	   │                                              compensating ◀────────────┘
//	   │                                               │        ▲ │
//	   │                                  undo failed  │        │ │ all undone
//	   │                                               ▼  retry │ │
//	   ▼                                   compensation_failed ─┘ ▼
//	cancelled                succeeded          failed  compensated  cancelled
//
// # States of a step
//
//	pending ─▶ (held) ─▶ running ─▶ succeeded, skipped, caught, failed, cancelled
//	                       │  ▲                       │
//	                       ▼  │                       ▼
//	                     backoff              undoing ─▶ undone, undo_failed
//
// Beside its state a step has an effect: none, maybe or done. Undo looks at
// the effect only. An attempt whose outcome nobody knows leaves "maybe" behind,
// and only a definite answer takes it away.
//
// # Promises
//
// Each is a property test over generated workflows and worlds.
//
//  1. Same input, same output; the input is not changed.
//  2. A duplicate or late event changes nothing and commands nothing.
//  3. Final states absorb.
//  4. A live run has an attempt in flight or a due time, or is listed as held,
//     paused or needing a person.
//  5. Every run ends if the world keeps answering.
//  6. A step is invoked only after its dependencies are done.
//  7. Attempts of a round never exceed the limit.
//  8. Undo follows the executed graph backwards.
//  9. "compensated" means that every effect that may exist was undone, or left
//     by declaration or by a recorded decision of an operator.
//  10. Folding the records gives the same state as deciding them.
//  11. Records survive their codec.
//  12. Every attempt that a record starts has a complete-by by which it is found.
//  13. NextDue is never later than what time alone would change.
package machine
