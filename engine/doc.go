// Package engine runs workflows durably. It is what an embedder uses: Node, Config,
// Options, Submit, Wait, Follow and Observer. The loops are behind it:
//
//   - internal/owner decides on the runs that this engine owns,
//
//   - internal/commit puts their transitions into batches,
//
//   - internal/call makes the calls that landed transitions ask for,
//
//   - internal/cluster keeps the lease, finds runs whose time has passed, and takes over
//     runs that no engine works on.
//
//     event ──▶ Scheduler: load (or cached) ─▶ machine.Decide ─▶ commit   one row of the run's journal,
//     ▲                                                          │      in a batch with other runs' rows
//     │                                           ┌──────────────┴─────────────┐
//     │                                           ▼                            ▼
//     │                                   calls to make               the run's next due time
//     │                                           │                            │
//     ├── result, failure, unknown, deferred ◀── Worker: Invoke the agent      │
//     └── TimePassed ◀───────────────────────── Supervisor: what is due ◀──────┘
//
// The loop closes in one direction only: store, worker or supervisor, event,
// Deliver, store. Nothing else writes the state of a run.
//
// # Reading order
//
//  1. examples/order-saga/workflow.hcl: what people write
//  2. dsl/workflow.go: the same as immutable nouns
//  3. engine/machine/event.go: what can happen to a run
//  4. engine/machine/decide.go: what a run does about it, as a pure function
//  5. engine/internal/owner/run.go: one run in its owner's memory: load, decide, commit, act
//  6. engine/internal/call/send.go: one call of an agent: prepare, send, conclude
//  7. sdk/agent.go: the other side of that call
//  8. engine/internal/cluster/supervisor.go: the only one who says that time has passed
//
// # Guarantees
//
// An accepted run is never lost. Effects happen at least once, the recorded
// outcome exactly once, and the effect exactly once where the remote honours
// the idempotency key.
//
// A record is committed before what it asks for is done. A run belongs to one
// engine at a time, and only its owner appends to its journal; the journal's
// key refuses a second row with the same number, and a dead engine's fence row
// is gone, so nothing of it can land. Correctness rests on those two checks
// alone: cached states, leases and clocks only decide how fast things go.
//
// What a frozen engine can still do when others have declared it dead: a
// commit that is already at the store lands; calls whose record had landed may
// still be sent until their complete-by, with a fencing token lower than the
// new owner's; its agents go on until then. Nothing else: its commits are
// refused, it notices, stops everything it owns and joins again under a new
// number.
//
// # Times
//
// Every time in a journal is store time: what the store's clock said at the
// last tick plus what this process's monotonic clock has measured since. It
// never falls within a run. Nothing is sent when no tick succeeded for a lease.
//
// # When deciding goes wrong
//
// A panic while one run is decided or folded, a row that cannot be read, a row
// the store refuses: the run is quarantined. Its journal stays as it is, an alert
// is logged and written beside it in the store, everyone who waits for it gets a
// *journal.RunError, Node.Quarantined lists it, and the engine goes on with the others. An
// engine that can read it takes it over as soon as this one leaves.
package engine
