// Package owner decides on the runs that one engine owns: one run in its owner's memory.
//
// In come events of a run: answers of calls, messages of its inbox, times that have
// passed, a new run, the wish to take it over. Out go transitions to the commit package
// and, once they have landed, calls to the call package.
//
// A run belongs to one goroutine, its shard: no other goroutine reads or writes its state.
// The shard's decider turns events into a row of the run's journal, its gate says which
// calls may start, and its outbox sends the row. One row of a run is on its way at a time,
// and nothing is told or done before it has landed. Runs whose agents are missing are
// decided by the same decider, with a gate that starts no call.
//
// The package reads journals, inboxes and evidence from the store; it changes runs through
// commits alone. It knows no lease and no other engine: the cluster package tells it which
// runs to take over.
package owner
