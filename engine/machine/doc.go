// Package machine is the core of the engine: one pure function, Decide, that moves a run
// forward. The package reads no clock, uses no random numbers and never blocks. It uses no
// processes, no database and no network.
//
//	event ──▶ Decide(workflow, state, event) ──▶ Record ──▶ State.Apply
//	                                               │
//	                                               └─▶ Record.Commands: what the engine does next
//
// The caller's loop is
//
//	rec := machine.Decide(wf, state, machine.Input{At: now, Event: ev, Slots: slots})
//	if rec.Empty() {
//		return // a duplicate, a late answer, nothing due
//	}
//	commit(rec)          // durable, or the record does not count
//	state.Apply(rec)     // cannot fail
//	act(rec.Commands())  // only now, and only in the process that committed
//	wake(state.NextDue()) // deliver TimePassed then
//
// An engine that makes many decisions sets Input.Scratch, so that all of them reuse the
// same memory. To compute only the state from the rows of a journal, a reader uses a Loader,
// as package wire does.
//
// Decide reads a definition, a state and an event, and returns a record. State.Apply computes
// the state after the record. Package model defines the data of a run. Package wire converts
// these data to bytes, and package story converts them to texts for people. This package
// changes only the state that the caller passes to Apply.
//
// A decider makes one decision. Its methods are in one type for each concern, such as slots,
// caller, answers, clocks, forward, undoing, ending and verbs.
//
// These are the source files, the lower layers first. Most of them use only files of their own line
// and of earlier lines. There are exceptions: for example, nodeend and turn also use undo.
//
//	event, failure, index, signal     events, failures, ceilings, indexes, early signals
//	state, apply, record              the state of a run, and how records change it
//	draft, loader                     reused memory, for decisions and for folding records
//	decider, scope                    a decision, and its expressions
//	handover                          early signals for groups
//	slots, attempt, ending            what a decision does to one node or to the run
//	nodeend, turn                     the end of a node; the run turns back
//	retry, undo                       what follows a failed attempt; the undo of a node
//	loop, waits                       iterations; steps that call no agent
//	dispatch, forward                 the start of calls; the start of steps
//	answer, expire                    the answers of agents; deadlines that have passed
//	verbs, settle, correct            the verbs of people
//	decide                            the function Decide, for one event
//
// A state is computed by folding the records of a run: they are applied one after the other.
// A record contains the event and also the decision. So a newer engine computes the same
// state from an old journal.
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
// A step also has an effect: none, maybe or done. The undo of a run depends on the effects
// only. An attempt of unknown outcome leaves the effect "maybe". Only a definite answer, or a
// person who states the outcome (settle), changes that.
//
// # Choices
//
// Where the definition of the language leaves a choice, the machine does this:
//
//   - A lookup is tried at most three times. Like an undo, it starts only when no attempt can be
//     running any more.
//   - When the deadline of a step passes, the step fails and gets no other attempt. The
//     step's catch may accept this failure. If it does not, on_exhausted decides. For a
//     for_each step, the catch is evaluated for each instance.
//   - max_parallel limits how many instances may be active. An instance is active from its
//     begin to its end, also during a pause. max_parallel does not limit undos. Only the slots
//     of agents limit them.
//   - An instance whose outcome stays unknown parks the run, even where max_failures would
//     tolerate its failure.
//   - A for_each step shows as waiting while its instances run, because it has no attempt
//     of its own. It shows as held only if its next instance waits for a slot, and no other
//     instance has begun and not ended.
//   - After a failed postcondition, the step is repeated only if retry.on names the code of
//     this failure. If the step has an effect, its action must also be idempotent, or its
//     effect must be undone first (on_rerun = "undo_first").
//   - While the outcome of the pivot is unknown, a cancel or a passed deadline waits until
//     the outcome is known. If the pivot then succeeds, the run continues forward. The cancel
//     is ignored; the passed deadline only raises an alert.
//   - While a run is parked, the deadlines of its steps do not pass. When the run continues,
//     these deadlines move by the time for which the run was parked.
//   - The verb settle --not-done starts no attempt of the step. Unless a catch accepts the
//     failure, or max_failures tolerates it, the run stays parked until a retry or a compensate.
//     But if the run only waited for the outcome of its pivot, it turns back.
//   - The verb retry is refused for a step of unknown outcome whose action is not idempotent,
//     unless the step can be undone before its next attempt (on_rerun = "undo_first").
//     In the same way, compensate --retry is refused for an undo of unknown outcome whose
//     action is not idempotent. A person must use settle first.
//   - A settlement or a late answer never makes an ended step or run active again.
//   - A checkpoint says that the step has changed something. So the effect stays "maybe",
//     even if the attempt ends in a definite failure. If several attempts report
//     checkpoints, the checkpoint with the highest number counts.
//   - With on_rerun = "undo_first", a step is undone before another attempt if an effect may
//     exist. After the undo the step has a new idempotency key. If the undo fails, catch may
//     accept the step's own failure, or max_failures may tolerate this failure. Otherwise the
//     run is parked. See docs/decisions/0011.
//   - If an agent is silent for too long, the engine asks it to stop the attempt. The
//     outcome is unknown. The attempt counts as running until a short time (grace) after its
//     complete-by.
//   - A pause that an agent asks for by retry_after also applies to lookups and undos. An
//     operator's retry does not wait for the end of this pause.
//   - A run is queued until a step is attempted or fails. Steps that are skipped, or that
//     have no instances, do not change that. After a pause, or after the run was parked, the
//     run is not queued any more.
//   - The option --extend never makes a deadline earlier, and never gives a deadline to a run
//     that has none.
//   - While a run is open, every verb is recorded, even a verb that changes nothing.
//
// # Promises
//
// Property tests check each of these promises with generated workflows and simulated worlds.
//
//  1. The same input gives the same output, and the input is not changed.
//  2. A duplicate or late event changes nothing and causes no command.
//  3. A final state never changes. There is one exception: a child run that has succeeded
//     turns back when its parent is undone.
//  4. The state of a run that has not ended shows why the run is not stuck. An attempt is in
//     flight, or a time is due later. Or the run is paused, or waits for a slot, a place, a
//     unique key, a signal or a person.
//  5. Every run ends if agents and people keep answering.
//  6. A step is invoked only after its dependencies are done.
//  7. No round has more attempts than its limit allows.
//  8. The undo follows the executed graph backwards.
//  9. In a run with the status "compensated", every possible effect was undone or left in
//     place. An effect is left only if the workflow declares this or an operator decided it.
//  10. Folding the records gives the same state as deciding them.
//  11. Encoding and decoding a record does not change it.
//  12. Every attempt that a record starts has a complete-by, so that engines find the attempt
//     later.
//  13. NextDue is never later than the first change that time alone causes.
//  14. While the engine waits for the answer of a call, it asks the agent to stop the call only
//     if the action is read-only or declares that it may be interrupted.
package machine
