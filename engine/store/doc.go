// Package store is the contract between engines and what keeps their state.
//
// In: transitions of runs (what one commit writes), messages for runs, leases of
// engines, definitions. Out: the same, read back, and errors that callers branch on.
// A store keeps rows and enforces three rules inside its statements: a transition
// lands only after the row before it (Transition.Seq), only for an engine that was
// not declared dead (ErrFenced), and never twice. It does not know what a workflow
// is and decides nothing.
//
// Store is the sum of five small roles: Catalogue, Members, Journal, Inbox and
// with 15 methods. All other roles are optional, and each says what happens without it;
// Complete adds the fallbacks. Implementations are the packages postgres, sqlite and
// memory below this one; storetest holds the rules that all of them obey, and storekit
// what they share.
package store
