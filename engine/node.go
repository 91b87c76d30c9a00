package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/outbox"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/sources"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Node is one engine on a store. It decides on runs, commits, calls agents and finds runs
// whose time has passed. Any number of nodes may share a store.
type Node struct {
	shared    *owner.Shared
	local     *cluster.Local
	kids      *children.Waits // open calls that start or undo child runs
	cfg       Config
	submitter *submit.Submitter
	sources   *sources.Sources // starts runs that no caller submits
	idle      *sources.IdleHint
	sender    *outbox.Sender // delivers replies; nil = the store keeps none

	started atomic.Bool
	// Time of the last scan in unix nanoseconds, by this process's clock; 0 = no scan yet.
	lastPass atomic.Int64
	ready    chan struct{} // closed when the first membership accepts work
	ended    chan struct{} // closed when Run has returned
	stopNow  context.CancelFunc
	stopped  context.Context // ends when StopNow is called

	mu      sync.Mutex          // protects the fields below
	current *cluster.Membership // present membership; nil = there is none now
	changed chan struct{}
}

// Ready returns a channel that is closed when the node accepts work.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that is closed when Run has returned.
func (n *Node) Done() <-chan struct{} { return n.ended }

// StopNow makes Run return at once, whether or not its context has ended. Calls in flight
// are cut off, and the node does not leave the store. No run is lost, but other engines must
// wait until the lease has expired.
func (n *Node) StopNow() { n.stopNow() }

// enter makes the parameter `t` the present membership; nil means that there is none now.
func (n *Node) enter(t *cluster.Membership) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = t
	close(n.changed)
	n.changed = make(chan struct{})
	if t != nil {
		select {
		case <-n.ready:
		default:
			close(n.ready)
		}
	}
}

// present returns the present membership. If there is none, it waits for one.
func (n *Node) present(ctx context.Context) (*cluster.Membership, error) {
	for {
		n.mu.Lock()
		t, changed := n.current, n.changed
		n.mu.Unlock()
		if t != nil {
			return t, nil
		}
		select {
		case <-changed:
		case <-n.ended:
			return nil, ErrStopping
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// accepting returns the runs of the present membership, for a submission. If there is no membership
// now, accepting waits for one. It returns ErrStopping if the node is stopping.
func (n *Node) accepting(ctx context.Context) (submit.Runs, error) {
	t, err := n.present(ctx)
	switch {
	case err != nil:
		return nil, err
	case n.shared.Draining.Load():
		return nil, ErrStopping
	}
	return t.Runs, nil
}

// now returns the present membership; nil = there is none.
func (n *Node) now() *cluster.Membership {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// member returns the runs of the present membership, in the form that package call needs. It
// returns nil if there is no membership.
func (n *Node) member() call.Member {
	if t := n.now(); t != nil {
		return t.Runs
	}
	// Do not return t.Runs here: it would be an interface that holds a nil pointer, and such an
	// interface is not equal to nil.
	return nil
}

// Engine returns the number of the present membership; 0 while there is none.
func (n *Node) Engine() store.EngineID {
	if t := n.now(); t != nil {
		return t.Engine
	}
	return 0
}

// Deliver delivers an event to a run. It returns nil if the event is committed, or if the event was
// a duplicate that changes nothing. Delivering an event again is safe. Deliver returns ErrNotOwner
// if another engine owns the run, ErrNotFound if there is no such run, ErrStopping if the method
// Run has returned, and a *RunError if the run is quarantined. If there is no membership now,
// Deliver waits for one.
func (n *Node) Deliver(ctx context.Context, run status.RunID, e machine.Event) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	if err := t.Runs.DeliverAndWait(ctx, run, e); err != nil {
		return fmt.Errorf("deliver to run %s: %w", naming.RunName(run), err)
	}
	return nil
}

// passed reports a scan to the observer, and keeps the time of the scan for Status.
func (n *Node) passed(p cluster.Pass) {
	n.lastPass.Store(time.Now().UnixNano())
	n.cfg.Observer.Pass(PassStats(p))
}

// retained reports the numbers of removed runs and partitions to the observer.
func (n *Node) retained(s store.RetainStats) {
	if o, ok := n.cfg.Observer.(RetentionObserver); ok {
		o.Retained(s)
	}
}

// slotFreed notifies a run that waits for a slot of the agent with this key. Config.Capacity calls
// slotFreed when such a slot may have become free.
func (n *Node) slotFreed(key string) {
	if t := n.now(); t != nil {
		t.Runs.Queue.Free(key)
	}
}

// Quarantined returns the runs that this node has quarantined, with the reasons.
func (n *Node) Quarantined() map[status.RunID]error { return n.shared.Quarantined.All() }

// TakeOver makes this engine the owner of all open runs that have no owner or whose owner is gone
// (S19, S49). The engine then continues these runs. TakeOver returns the number of these runs. A
// node takes over runs automatically from time to time, unless Options.OnlyOwnRuns is set. A call
// of TakeOver takes them over now.
//
// TakeOver does not take runs that only wait for a person; Adopt can take such a run. It also does
// not take a run that this engine could not continue a short time ago, or that another engine has
// in hand. Before TakeOver takes the runs of a dead member, it fences the member, so that none of
// the member's rows can be committed afterwards. If two engines try to take the same run, one of
// them gets it. If the definition of a run cannot be read here, or its agents are missing, TakeOver
// does not take the run, and Quarantined shows the run.
func (n *Node) TakeOver(ctx context.Context) (int, error) {
	t, err := n.present(ctx)
	if err != nil {
		return 0, err
	}
	return t.TakeOver(ctx)
}

// Adopt makes this engine the owner of one run that has no owner or whose owner is gone. It does
// nothing if this engine owns the run already, or if the run has ended. It returns ErrNotOwner if
// the run's owner is alive or another engine has the run in hand, ErrNotFound if there is no such
// run, and a *RunError if this engine cannot work on the run.
func (n *Node) Adopt(ctx context.Context, run status.RunID) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	return t.Adopt(ctx, run)
}

// Status returns what the node is doing now.
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
		s.Memory, s.QueueAge = t.Runs.Memory(), t.QueueAge()
		s.Slowest = max(s.Slowest, t.Runs.Slowest())
		s.Queued, s.Behind = t.Committer.Waiting(), t.Committer.Oldest()
	}
	return s
}
