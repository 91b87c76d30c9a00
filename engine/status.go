package engine

import (
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// NodeStatus describes what a node is doing at one moment. It is for display.
type NodeStatus struct {
	Engine  store.EngineID // number of the present membership; 0 = there is none now
	Address string
	// Number of runs in memory. Runs that only wait and are not due soon are usually not in memory.
	Runs   int
	Memory int64 // estimated memory of the runs that Runs counts, in bytes
	// Number of runs that wait for a slot of an agent. A run that waits for several agents
	// counts once for each of them.
	Waiting int
	Calls   int // number of calls of agents in flight
	// Number of transitions that wait until an earlier commit ends. The limit is Options.Writers
	// times Options.MaxBatchRows.
	Queued int
	// For how long the oldest transition in a commit in flight has waited; 0 = no commit is in
	// flight.
	Behind time.Duration
	// For how long the oldest due run without an owner has waited for an engine (S65); 0 = there is
	// no such run.
	QueueAge time.Duration
	Lease    time.Duration // remaining time of the lease; 0 = the lease has expired
	// Time of the last scan of the Supervisor, by this process's clock; zero = no scan yet.
	LastPass time.Time
	// Duration of the slowest task of a shard in this membership, or of the slowest decision of the
	// decision pool, whichever is longer. A task of a shard in progress counts as well.
	Slowest     time.Duration
	Stopping    bool
	Quarantined int // number of runs that this node has quarantined: see Node.Quarantined
}
