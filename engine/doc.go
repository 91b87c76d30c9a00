// Package engine runs workflows durably. It is the package for programs that embed the
// engine: Node, Config, Options, Submit, Wait, Follow and Observer. The contract of the code that
// calls agents is invoke.Invoker. The stores are in engine/store/postgres, engine/store/sqlite
// and engine/store/memory.
//
// The loops are in these packages:
//
//   - internal/owner decides on the runs that this engine owns.
//   - internal/commit puts the transitions of these runs into batches.
//   - internal/call makes the calls that committed transitions ask for.
//   - internal/cluster keeps the lease, finds runs whose time has passed, and takes over runs
//     that no engine works on.
//
// Runs begin in these packages:
//
//   - internal/submit turns submissions into the first rows of runs.
//   - internal/sources submits runs for schedules, sent events, rows of business tables, and
//     submissions of other programs.
//   - internal/notify makes the runs that announce states of other runs.
//   - internal/publish publishes the workflows whose schedules and events start runs.
//
// Package refusal has the errors that say why a submission or a publication was refused.
//
// Every run goes through this loop:
//
//	event ──▶ Scheduler: load (or cached) ─▶ machine.Decide ─▶ commit   one row of the run's journal,
//	▲                                                          │      in a batch with other runs' rows
//	│                                           ┌──────────────┴─────────────┐
//	│                                           ▼                            ▼
//	│                                   calls to make               the run's next due time
//	│                                           │                            │
//	├── result, failure, unknown, deferred ◀── Caller: Invoke the agent      │
//	└── TimePassed ◀───────────────────────── Supervisor: what is due ◀──────┘
//
// The order is always the same. An event arrives: from a Caller, from the Supervisor, from a
// submission, or from the inbox of the run. The Scheduler decides the event and commits the
// decision to the store. The state of a run changes in no other way. There is one exception: if
// agents of a run are missing here, internal/cluster decides some events without an agent
// (owner.DecideUnstaffed).
//
// # Reading order
//
//  1. examples/order-saga/workflow.hcl: what people write
//  2. dsl/internal/noun/workflow.go: the same as immutable Go types
//  3. engine/machine/event.go: what can happen to a run
//  4. engine/machine/decide.go: the decision about an event, as a pure function
//  5. engine/internal/owner/run.go: one run in its owner's memory: load, decide, commit, act
//  6. engine/internal/call/send.go: one call of an agent: prepare, send, conclude
//  7. sdk/agent.go: the other side of that call
//  8. engine/internal/cluster/supervisor.go: the only code that reports that time has passed
//
// # Guarantees
//
// An accepted run is never lost. An effect happens at least once. Its outcome is recorded
// exactly once. The effect happens exactly once if the remote service deduplicates calls by
// the idempotency key.
//
// A record is committed before its commands are executed. A run belongs to one engine at a
// time, and only its owner appends to its journal. Two checks of the store guarantee this.
// First, the store refuses a second row with the same number in the journal of a run. Second, an
// engine can commit only while its fence rows are in the store. Declaring the engine dead removes
// them. Cached states, leases and clocks affect only the speed, not the correctness.
//
// An engine may be frozen while others declare it dead. Then only three things can still
// happen. First, the store may complete a commit that has already reached it. Second, the
// engine may send a call whose record was committed, until the call's complete-by. Such a call
// has a lower fencing token than calls of the new owner. Third, agents of the engine continue
// their calls until complete-by. The store refuses all later commits of the engine. The engine
// notices this, stops all its work, and joins again with a new membership.
//
// # Times
//
// Each renewal of the lease returns the store's time. If no renewal succeeds for one lease, the
// engine sends no more calls. Every time in a journal is store time: the time of the last
// renewal, plus the time that this process's monotonic clock has measured since. Within a
// run, the times of the records never go backwards.
//
// # When a decision goes wrong
//
// An engine quarantines a run if it cannot read or decide the run. The usual cases are these: a
// panic happens while the engine decides the run or computes its state from the journal; a decision
// takes too long (owner.DecisionLimit); a row of the run cannot be read; a row is larger than
// Options.MaxRow; or the store refuses a row of the run. The run's journal stays as it is. The
// engine logs the error. If the engine owns the run, it also writes an alert to the store. All
// callers that wait for the run get a *journal.RunError, and Node.Quarantined lists the run. The
// engine continues with the other runs. Another engine that can read the run takes it over as soon
// as the first engine leaves.
package engine
