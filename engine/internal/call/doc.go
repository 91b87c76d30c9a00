// Package call makes the calls of committed records, and passes the answers to the engine
// that owns the run.
//
// A Caller gets a Spec for each call, and passes an Answer to the Member, which is the engine's
// current membership. If another engine owns the run by then, the Caller puts the Answer into
// the run's inbox in the store.
// The Caller reaches agents through invoke.Invoker. It writes only inboxes and late replies to
// the store, and never changes a run. It does nothing when the complete-by of a call passes:
// only the Supervisor reports that time has passed (requirements S17 and S18).
//
// The source files form layers, lowest first: reservation and echo; reply (a Spec, and the event of
// a reply); late; call (a call in flight) and progress; report; send; child (calls for child runs);
// caller.
package call
