// Package store is the contract between engines and the stores that keep their state.
//
// An engine writes transitions of runs (each is one commit of one run), messages for runs, leases
// and definitions to a store. A store returns the same data when an engine reads it again. Callers
// may test for some of the errors that a store returns. Each store enforces three rules. It commits
// a transition only if the journal has the row before it (Transition.Seq). It commits a transition
// only for an engine that was not declared dead (ErrFenced). It never commits a transition twice. A
// store does not know what a workflow is and makes no decisions about runs.
//
// The interface Store consists of four small roles with 15 methods: Catalogue, Members, Journal
// and Inbox. All other roles are optional. The comment of each optional role says what happens
// in a store without the role. The function Complete adds a fallback for missing roles. The
// packages postgres, sqlite and memory below this package implement Store. Package storetest
// holds the rules that these packages obey. Package storekit holds the code that they share.
package store
