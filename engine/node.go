package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/pointed"
)

// A Node is one engine over a store: it decides on runs, commits, calls agents and
// looks for what is due. Any number of nodes may share a store.
type Node struct {
	shared *owner.Shared
	local  *cluster.Local
	cfg    Config
	ids    *naming.RunIDSource

	started  atomic.Bool
	lastPass atomic.Int64  // unix nanoseconds of the last pass, by this process's clock; 0 = none
	ready    chan struct{} // closed when the first membership accepts work
	ended    chan struct{} // closed when Run has returned
	stopNow  context.CancelFunc
	stopped  context.Context // ends at StopNow

	mu      sync.Mutex          // protects following fields
	current *cluster.Membership // nil = none
	changed chan struct{}
}

// NewNode returns a node that is not running. It touches neither store nor
// agents before Run.
func NewNode(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Store = pointed.Store(cfg.Store)
	n := &Node{
		shared: owner.NewShared(cfg.forRuns()), cfg: cfg, ids: &naming.RunIDSource{},
		ready: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}
	n.shared.Told = factsFor(cfg.Observer)
	n.stopped, n.stopNow = context.WithCancel(context.Background())
	n.shared.Calls = call.New(call.Config{
		Invoker: cfg.Invoker, Store: store.Complete(cfg.Store), Sealer: cfg.Sealer, Secrets: cfg.Secrets, Observer: cfg.Observer, Logger: cfg.Logger,
		Clock: n.shared.Clock, Outage: n.shared.Outage, Present: n.member, Stopped: n.stopped,
		Lease: cfg.Options.Lease, MinScan: cfg.Options.MinScan, RetryHeld: cfg.Options.RetryHeld, RetryStore: cfg.Options.RetryStore, MaxValue: cfg.Options.MaxValue,
	})
	n.local = cluster.New(n.forMembers(), n.shared)
	if cfg.Capacity != nil {
		cfg.Capacity.OnFree(n.slotFreed)
	}
	return n, nil
}

// Ready returns a channel that is closed when the node accepts work.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that is closed when Run has returned.
func (n *Node) Done() <-chan struct{} { return n.ended }

// StopNow makes Run return at once, whether or not its context has ended.
// Calls in flight are cut off and the lease is left to expire: nothing is
// lost, but other engines have to wait until it has expired.
func (n *Node) StopNow() { n.stopNow() }

// Run joins the store and works until ctx ends. Then it starts nothing more,
// waits for calls in flight until their complete-by, commits what they
// brought, hands over its runs and returns nil. After StopNow it returns
// ErrStopping at once. If the lease lapses or another engine declares this one
// dead, it stops everything it owns and joins again under a new membership,
// which takes over what the former one had. It returns an error if it cannot
// join the first time, and a *LossError when it finds that the store lost what
// had been committed. Any other store that stops answering later is waited for. Run
// may be called once.
func (n *Node) Run(ctx context.Context) error {
	if n.started.Swap(true) {
		return errors.New("engine: this node has been run before")
	}
	defer close(n.ended)
	defer n.shared.Calls.StopAll()
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(n.stopped, func() {
		n.shared.Calls.StopAll() // before anything else: nothing more is sent
		cancel()
	})()

	soft, cancelSoft := context.WithCancel(ctx) // ends with ctx or at StopNow
	defer cancelSoft()
	defer context.AfterFunc(hard, cancelSoft)()
	err := journal.PinKey(soft, n.cfg.Store, n.cfg.Sealer, time.Now())
	var t *cluster.Membership
	if err == nil {
		t, err = n.joinFirst(soft)
	}
	switch {
	case err != nil && hard.Err() != nil:
		return ErrStopping
	case err != nil:
		return fmt.Errorf("join the store: %w", err)
	}
	var loss *store.LossError
	for {
		n.enter(t)
		cause := t.Run(ctx, hard)
		runs := t.Runs.Close()
		n.enter(nil)
		switch {
		case hard.Err() != nil:
			return ErrStopping
		case errors.Is(cause, cluster.ErrDrained):
			return n.leave(hard, t)
		case errors.As(cause, &loss):
			n.cfg.Logger.Error("the engine stops: the store lost what it had promised", "engine", t.Engine, "error", loss)
			return cause
		}
		n.cfg.Observer.Fenced()
		n.cfg.Logger.Warn("the engine lost its lease and joins again", "engine", t.Engine, "runs", len(runs), "cause", cause)
		former := t.Engine
		switch t, err = n.rejoin(soft); {
		case err != nil && hard.Err() != nil:
			return ErrStopping
		case errors.As(err, &loss):
			return err
		case err != nil && len(runs) > 0:
			return fmt.Errorf("hand over: %w", err) // others find its runs when they see that it is gone
		case err != nil:
			return nil // told to stop while it owned nothing: there is nothing to hand over
		}
		t.InheritFrom(former, runs)
	}
}

// leave ends the membership, so that the runs are free at once.
func (n *Node) leave(ctx context.Context, t *cluster.Membership) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Options.Lease)
	defer cancel()
	if err := n.cfg.Store.Leave(ctx, t.Engine); err != nil && !owner.NotOwner(err) {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}

// joinTries is how often joining is tried at the start where the lease runs out
// before the engine has begun, as a short one may on a machine that is busy.
const joinTries = 20

// joinFirst joins. A store that does not answer is an error; a lease that ran
// out meanwhile is not.
func (n *Node) joinFirst(ctx context.Context) (*cluster.Membership, error) {
	for try := 1; ; try++ {
		t, err := n.local.Join(ctx)
		if !owner.NotOwner(err) || try == joinTries || ctx.Err() != nil {
			return t, err
		}
		n.cfg.Logger.Warn("the lease ran out before the engine had begun, joining again", "lease", n.cfg.Options.Lease)
	}
}

// rejoin joins until it succeeds or ctx ends.
func (n *Node) rejoin(ctx context.Context) (*cluster.Membership, error) {
	pause := 20 * time.Millisecond
	for {
		t, err := n.local.Join(ctx)
		var loss *store.LossError
		if err == nil || ctx.Err() != nil || errors.As(err, &loss) {
			n.shared.Outage.Over(outage.Join)
			return t, err
		}
		n.shared.Outage.Failed(outage.Join, err)
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
		pause = min(2*pause, n.cfg.Options.RetryStore)
	}
}

// enter makes t the present membership.
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

// present returns the present membership, and waits for one if there is none.
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

// now returns the present membership, or nil.
func (n *Node) now() *cluster.Membership {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// member is now for calls.
func (n *Node) member() call.Member {
	if t := n.now(); t != nil {
		return t.Runs
	}
	return nil // and not a nil membership in an interface
}

// Engine returns the present membership, 0 while there is none.
func (n *Node) Engine() store.EngineID {
	if t := n.now(); t != nil {
		return t.Engine
	}
	return 0
}

// Deliver hands an event to a run. nil means that it is committed, or that it
// was a harmless duplicate; delivering again is safe. Returns ErrNotOwner if
// another engine owns the run, ErrNotFound if there is no such run, ErrStopping
// if this engine is not running, and a *RunError if the run is quarantined.
func (n *Node) Deliver(ctx context.Context, run status.RunID, e machine.Event) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	if err := t.Runs.Tell(ctx, run, e); err != nil {
		return fmt.Errorf("deliver to run %s: %w", naming.RunName(run), err)
	}
	return nil
}

// passed reports a pass.
func (n *Node) passed(p cluster.Pass) {
	n.lastPass.Store(time.Now().UnixNano())
	n.cfg.Observer.Pass(PassStats(p))
}

// retained reports what retention removed.
func (n *Node) retained(s store.RetainStats) {
	if o, ok := n.cfg.Observer.(RetentionObserver); ok {
		o.Retained(s)
	}
}

// forMembers is what of the configuration concerns memberships.
func (n *Node) forMembers() cluster.Config {
	c, o := n.cfg, n.cfg.Options
	return cluster.Config{
		Store: store.Complete(c.Store), Sealer: c.Sealer, Observer: c.Observer, Logger: c.Logger, Passed: n.passed, Retained: n.retained,
		Options: cluster.Options{
			Address: o.Address, Lease: o.Lease, MinScan: o.MinScan, MaxScan: o.MaxScan, Grace: o.Grace, RetryStore: o.RetryStore,
			ClaimBatch: o.ClaimBatch, ClaimInterval: o.ClaimInterval, Retention: o.Retention,
			Writers: o.Writers, MaxBatchRows: o.MaxBatchRows, MaxBatchBytes: o.MaxBatchBytes, MaxHeld: o.MaxHeld,
		},
	}
}

// slotFreed is told by the agents' side that a slot may have become free.
func (n *Node) slotFreed(key string) {
	if t := n.now(); t != nil {
		t.Runs.Queue.Free(key)
	}
}

// Quarantined returns the runs that this node leaves alone, with the reason.
func (n *Node) Quarantined() map[status.RunID]error { return n.shared.Quarantined.All() }

// TakeOver makes this engine the owner of every open run whose owner is gone
// or that nobody owns, and goes on with them (S19, S49). It returns how many it
// got. It is what the node does by itself, unless Options.Alone, from time to
// time; here it is done now, and for all runs at once.
// Runs that wait for a person and that time does not move now stay as they are:
// Adopt takes one.
// Dead members are fenced off first, so that nothing of theirs can land
// afterwards. Of two engines that try it for one run, one gets it. A run whose
// definition cannot be read here, or whose agents are missing, is left alone
// and shows in Quarantined.
func (n *Node) TakeOver(ctx context.Context) (int, error) {
	t, err := n.present(ctx)
	if err != nil {
		return 0, err
	}
	return t.TakeOver(ctx)
}

// Adopt makes this engine the owner of one run, if its owner is gone or it has
// none. It is harmless for a run that this engine owns or that has ended.
// Returns ErrNotOwner if its owner is alive, ErrNotFound if there is no such
// run, a *RunError if it cannot be worked on here.
func (n *Node) Adopt(ctx context.Context, run status.RunID) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	return t.Adopt(ctx, run)
}
