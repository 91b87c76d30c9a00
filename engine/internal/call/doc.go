// Package call makes the calls of landed records, and hands the answers to the engine that
// owns the run.
//
// In comes a Spec; out goes an Answer, to the present Member, or into the run's inbox in
// the store if another engine owns the run by then. The package reaches agents through
// invoke.Invoker, and the store for inboxes and evidence. It never changes a run. It does
// nothing when the complete-by of a call passes: only the Supervisor reports that time has
// passed (S17, S18).
//
// The files form layers, lowest first: reservation and echo; reply (a Spec, and the event
// of a reply); late; call (a call in flight) and progress; report; send; caller.
package call
