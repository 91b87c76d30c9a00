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
// The files form layers. A file uses only files of its own line and of earlier lines.
//
//	delivery, turn, taskqueue, ownedrun    an event, a task, a run
//	backoff, slots, ledger, specs, timers  tables of runs and agents
//	quarantine, followers, record, outbox  tables of runs; rows on their way
//	costly, shared                         the pool; what the runs of a node share
//	evident, hands, gate, bound            late answers, runs in hand, slots, next checks
//	decide, decision                       events become a row
//	shard, load                            a shard, and what it reads
//	run                                    one run: decide, commit, act
//	loop                                   what comes to a shard
//	scheduler, unstaffedrun                what the cluster and the node call
//
// The package reads journals, inboxes and evidence from the store; it changes runs through
// commits alone. It knows no lease and no other engine: the cluster package tells it which
// runs to take over.
package owner
