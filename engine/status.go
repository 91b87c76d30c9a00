package engine

import (
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// NodeStatus is a node at one moment, for people.
type NodeStatus struct {
	Engine      store.EngineID // 0 = it is not a member now
	Address     string
	Runs        int           // in memory: those it works on, at rest included
	Held        int64         // bytes that they take, about
	Waiting     int           // of them, places in the lines for agents
	Calls       int           // in flight
	Queued      int           // transitions that wait for the commit before theirs; bounded (Options.MaxBatchRows)
	Behind      time.Duration // for how long the oldest transition has waited for its commit; 0 = none waits
	Lease       time.Duration // for how long the lease is still good; 0 = it is not
	LastPass    time.Time     // of the Supervisor, by this process's clock; zero = none yet
	Slowest     time.Duration // what the slowest decision took since the start, or the one that is being made
	Stopping    bool
	Quarantined int // runs that are left alone here: see Node.Quarantined
}

// Status tells what the node is doing.
func (n *Node) Status() NodeStatus {
	s := NodeStatus{
		Address: n.cfg.Options.Address, Calls: n.shared.Calls.InFlight(), Lease: n.shared.Clock.LeaseLeft(),
		Slowest:  n.shared.Pool.Longest(),
		Stopping: n.shared.Draining.Load(), Quarantined: n.shared.Quarantined.Count(),
	}
	if at := n.lastPass.Load(); at != 0 {
		s.LastPass = time.Unix(0, at)
	}
	if t := n.now(); t != nil {
		s.Engine, s.Runs, s.Waiting = t.Engine, t.Runs.Size(), t.Runs.Queue.Waiting()
		s.Held = t.Runs.Held()
		s.Slowest = max(s.Slowest, t.Runs.Slowest())
		s.Queued, s.Behind = t.Committer.Waiting(), t.Committer.Oldest()
	}
	return s
}
