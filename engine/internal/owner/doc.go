// Package owner decides on the runs that one engine owns. It holds these runs in memory,
// except for runs at rest.
//
// The package receives events of runs: answers to calls, messages of inboxes, times that
// have passed, new runs, and takeovers. It sends transitions to the commit package. After
// the commit of a transition it passes the calls to the call package.
//
// Each run belongs to one shard, which is a goroutine. No other goroutine reads or writes
// the run's state. The shard's decider turns events into a row of the run's journal. The
// shard's gate says which calls may start. The shard's outbox sends the row. Only one row
// of a run is in flight at a time. The engine reports nothing and starts no call before the
// row is committed. If the agents of a run are missing, a decider of another kind decides
// the run's events. That decider starts no call.
//
// The source files form layers. A file uses only files of its own line and of earlier lines. The
// file rooms is not in the list: the lines of record and decision use its functions about places,
// and its methods of the Scheduler belong to the last line.
//
//	delivery, turn, taskqueue, ownedrun    an event, a task, a run
//	backoff, slots, ledger, specs, timers  tables of runs and agents
//	quarantine, followers, record, outbox  tables of runs; rows that are sent to the store
//	costly, shared                         the decision pool; data that all runs of a node share
//	evident, hands, gate, bound            late answers, runs in hand, slots, next checks
//	decide, decision                       events become a row
//	shard, load, snapshot                  a shard, what it reads, and the snapshots that it stores
//	run                                    one run: decide, commit, act
//	loop                                   the tasks that a shard receives
//	scheduler, unstaffedrun                functions that the cluster and the node call
//
// The package reads journals and inboxes from the store. It changes runs only through
// commits. It does not know the other engines: the cluster package says which runs the
// engine must take over.
package owner
