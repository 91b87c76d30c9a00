// Package machine is the core of the engine: one pure function that moves a
// run forward. Nothing in it reads a clock, uses chance, blocks, or knows a
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
// An engine that decides often gives Input.Scratch, so that decisions share their memory.
// A reader that only wants a state folds rows with a Loader (package wire does).
//
// In: a definition, a state and an event. Out: a record, and the state after it. The data
// of a run are in package model, their bytes in wire, and texts for people in story. The
// package may touch nothing but the state that it is given.
//
// One decision is the work of a decider. It has a part for each concern: slots, caller,
// answers, clocks, forward, undoing, ending and verbs.
//
// The files form layers. A file uses only files of its own line and of earlier lines.
//
//	event, failure, index, ceilings   events, failures, indexes, ceilings
//	state, view, apply, record        the state of a run, and how records change it
//	draft, loader                     memory of decisions and of folds
//	decider, scope                    a decision, its parts, and its expressions
//	slots, attempt, ending, rerun     what a decision does to one node or to the run
//	nodeend, turn                     a node ends; the run turns back
//	retry, undo                       what follows a failed attempt; undo
//	dispatch, forward                 calls start; steps start
//	answer, expire                    answers and deadlines
//	verbs, settle, correct            what people ask for
//	decide                            one event, from beginning to end
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
// # Choices
//
// Where the language is silent the machine does this:
//
//   - A lookup starts only once no attempt can be at work, like an undo, and is
//     tried three times.
//   - A step deadline that passes is a failure that ran out of time: catch takes
//     it, else on_exhausted decides. For a for_each step each instance's catch
//     is asked.
//   - max_parallel counts instances from their beginning to their end, pauses
//     included. It does not bound undos; agents' slots do.
//   - An instance whose outcome nobody can find out parks the run even where
//     max_failures would tolerate its failure.
//   - A for_each step shows as waiting while its instances run: it has no
//     attempt of its own.
//   - A postcondition's failure is repeated, if retry.on names it, only where
//     the action is idempotent.
//   - While nobody knows whether the pivot took effect, a cancel or a passed
//     deadline waits for the answer; if it succeeded they are off.
//   - A parked run's step deadlines stand still; they go on when it does.
//   - settle --not-done repeats nothing and undoes nothing: unless a catch takes
//     the failure the run stays parked for retry or compensate.
//   - retry is refused for a step in doubt whose action is not idempotent, and so
//     is compensate --retry for such an undo: settle comes first.
//   - A settled or late answer never reopens what has ended.
//   - A checkpoint says that something was done: the effect stays maybe although
//     the attempt fails for certain. Of several attempts the highest number counts.
//   - An undo before another attempt (on_rerun = "undo_first") is called where an
//     effect may exist, and gives the step a new key. If it fails for good, catch
//     takes the step's own failure, max_failures may tolerate it, else the run is
//     parked. See docs/decisions/0011.
//   - An attempt that is silent for too long is told to stop and its outcome is
//     unknown; until its complete-by and the grace have passed it counts as at
//     work wherever that matters.
//   - What an agent asks for by retry_after also holds for lookups and undos. An
//     operator's retry does not wait for it.
//   - A run is queued until something is attempted or fails; steps that are
//     skipped or have no instances start nothing.
//   - --extend never brings a deadline forward and makes none where there is none.
//   - Every verb is recorded while the run is open, also one that changes nothing.
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
//  14. A call that is awaited is asked to stop only if its action is read-only
//     or declares that it may be interrupted.
package machine
