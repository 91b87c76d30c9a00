// Package store is the contract between engines and the stores that keep their state.
//
// In: transitions of runs (one commit of one run each), messages for runs, leases of engines,
// and definitions. Out: the same data, read again, and errors that callers may test for. A
// store keeps rows, and its statements enforce three rules. A transition is committed only
// after the row before it (Transition.Seq). It is committed only for an engine that was not
// declared dead (ErrFenced). It is never committed twice. A store does not know what a
// workflow is and decides nothing.
//
// Store is the sum of four small roles with 15 methods: Catalogue, Members, Journal and
// Inbox. All other roles are optional, and each says what happens without it. Complete adds
// the fallbacks. The packages postgres, sqlite and memory below this one implement Store.
// Package storetest holds the rules that all of them obey, and package storekit the code that
// they share.
package store
