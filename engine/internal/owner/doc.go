// Package owner decides on the runs that one engine owns. It holds each of these runs in
// memory.
//
// In: events of a run. They are answers to calls, messages of its inbox, times that have
// passed, a new run, or a takeover. Out: transitions for the commit package and, once they
// are committed, calls for the call package.
//
// A run belongs to one goroutine, its shard. No other goroutine reads or writes its state.
// The shard's decider turns events into a row of the run's journal. Its gate says which
// calls may start. Its outbox sends the row. Only one row of a run is in flight at a time.
// Nothing is reported and no call starts before the row is committed. A run whose agents
// are missing is decided by the same decider, with a gate that starts no call.
//
// The files form layers. A file uses only files of its own line and of earlier lines.
//
//	delivery, turn, taskqueue, ownedrun    an event, a task, a run
//	backoff, slots, ledger, specs, timers  tables of runs and agents
//	quarantine, followers, record, outbox  tables of runs; rows that are sent to the store
//	costly, shared                         the decision pool; data that all runs of a node share
//	evident, hands, gate, bound            late answers, runs in hand, slots, next checks
//	decide, decision                       events become a row
//	shard, load                            a shard, and what it reads
//	run                                    one run: decide, commit, act
//	loop                                   the tasks that a shard receives
//	scheduler, unstaffedrun                functions that the cluster and the node call
//
// The package reads journals, inboxes and evidence from the store. It changes runs only
// through commits. It knows no lease and no other engine: the cluster package says which
// runs to take over.
package owner
