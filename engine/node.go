package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A Node is one engine: Scheduler, Committer, Workers and Supervisor of one
// process over one store. Any number of nodes may share a store.
type Node struct {
	cfg         Config
	defs        *journal.Definitions
	clock       *clock.Clock
	calls       *call.Caller
	pool        *decisionPool
	ids         *store.RunIDSource
	specs       specCache
	followers   *followers
	quarantined *quarantine
	outage      *outage.Outage
	backoffs    *backoffSet
	told        machine.FactKinds // that an observer takes
	idle        string            // why this node starts nothing at all; "" = it does

	started  atomic.Bool
	draining atomic.Bool
	full     atomic.Bool   // the runs in memory take as much as they may
	lastPass atomic.Int64  // unix nanoseconds of the last pass, by this process's clock; 0 = none
	ready    chan struct{} // closed when the first incarnation accepts work
	ended    chan struct{} // closed when Run has returned
	stopNow  context.CancelFunc
	stopped  context.Context // ends at StopNow

	mu      sync.Mutex  // protects following fields
	term    *membership // present incarnation; nil = none
	changed chan struct{}
}

// NewNode returns a node that is not running. It touches neither store nor
// agents before Run.
func NewNode(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Store = store.WithFailpoints(cfg.Store)
	n := &Node{
		cfg: cfg, defs: journal.NewDefinitions(cfg.Store, cfg.Sealer), clock: &clock.Clock{}, ids: &store.RunIDSource{},
		followers: &followers{}, quarantined: &quarantine{}, outage: outage.New(cfg.Logger), backoffs: &backoffSet{restFor: 20 * cfg.Options.MaxScan},
		ready: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}
	n.told = factsFor(cfg.Observer)
	n.stopped, n.stopNow = context.WithCancel(context.Background())
	n.calls = call.New(call.Config{
		Invoker: cfg.Invoker, Store: cfg.Store, Sealer: cfg.Sealer, Secrets: cfg.Secrets, Observer: cfg.Observer, Logger: cfg.Logger,
		Clock: n.clock, Outage: n.outage, Present: n.member, Stopped: n.stopped,
		Lease: cfg.Options.Lease, MinScan: cfg.Options.MinScan, RetryHeld: cfg.Options.RetryHeld, RetryStore: cfg.Options.RetryStore, MaxValue: cfg.Options.MaxValue,
	})
	n.pool = newDecisionPool(n.clock)
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
// dead, it stops everything it owns and joins again under a new incarnation,
// which takes over what the former one had. It returns an error if it cannot
// join the first time, and a *LossError when it finds that the store lost what
// had been committed. Any other store that stops answering later is waited for. Run
// may be called once.
func (n *Node) Run(ctx context.Context) error {
	if n.started.Swap(true) {
		return errors.New("engine: this node has been run before")
	}
	defer close(n.ended)
	defer n.calls.StopAll()
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(n.stopped, func() {
		n.calls.StopAll() // before anything else: nothing more is sent
		cancel()
	})()

	soft, cancelSoft := context.WithCancel(ctx) // ends with ctx or at StopNow
	defer cancelSoft()
	defer context.AfterFunc(hard, cancelSoft)()
	err := journal.PinKey(soft, n.cfg.Store, n.cfg.Sealer, time.Now())
	var t *membership
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
		cause := t.run(ctx, hard)
		runs := t.scheduler.close()
		n.enter(nil)
		switch {
		case hard.Err() != nil:
			return ErrStopping
		case errors.Is(cause, errDrained):
			return n.leave(hard, t)
		case errors.As(cause, &loss):
			n.cfg.Logger.Error("the engine stops: the store lost what it had promised", "engine", t.engine, "error", loss)
			return cause
		}
		n.cfg.Observer.Fenced()
		n.cfg.Logger.Warn("the engine lost its lease and joins again", "engine", t.engine, "runs", len(runs), "cause", cause)
		former := t.engine
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
		t.former, t.inherited = former, runs
	}
}

// leave ends the membership, so that the runs are free at once.
func (n *Node) leave(ctx context.Context, t *membership) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Options.Lease)
	defer cancel()
	if err := n.cfg.Store.Leave(ctx, t.engine); err != nil && !notOwner(err) {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}

// joinTries is how often joining is tried at the start where the lease runs out
// before the engine has begun, as a short one may on a machine that is busy.
const joinTries = 20

// joinFirst joins. A store that does not answer is an error; a lease that ran
// out meanwhile is not.
func (n *Node) joinFirst(ctx context.Context) (*membership, error) {
	for try := 1; ; try++ {
		t, err := n.join(ctx)
		if !notOwner(err) || try == joinTries || ctx.Err() != nil {
			return t, err
		}
		n.cfg.Logger.Warn("the lease ran out before the engine had begun, joining again", "lease", n.cfg.Options.Lease)
	}
}

// rejoin joins until it succeeds or ctx ends.
func (n *Node) rejoin(ctx context.Context) (*membership, error) {
	pause := 20 * time.Millisecond
	for {
		t, err := n.join(ctx)
		var loss *store.LossError
		if err == nil || ctx.Err() != nil || errors.As(err, &loss) {
			n.outage.Over(outage.Join)
			return t, err
		}
		n.outage.Failed(outage.Join, err)
		if wait.For(ctx, pause) != nil {
			return nil, err
		}
		pause = min(2*pause, n.cfg.Options.RetryStore)
	}
}

// enter makes t the present incarnation.
func (n *Node) enter(t *membership) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term = t
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

// present returns the present incarnation, and waits for one if there is none.
func (n *Node) present(ctx context.Context) (*membership, error) {
	for {
		n.mu.Lock()
		t, changed := n.term, n.changed
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

// now returns the present incarnation, or nil.
func (n *Node) now() *membership {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.term
}

// member is now for calls.
func (n *Node) member() call.Member {
	if t := n.now(); t != nil {
		return t.scheduler
	}
	return nil // and not a nil membership in an interface
}

// Engine returns the present incarnation, 0 while there is none.
func (n *Node) Engine() store.EngineID {
	if t := n.now(); t != nil {
		return t.engine
	}
	return 0
}

// Deliver hands an event to a run. nil means that it is committed, or that it
// was a harmless duplicate; delivering again is safe. Returns ErrNotOwner if
// another engine owns the run, ErrNotFound if there is no such run, ErrStopping
// if this engine is not running, and a *RunError if the run is quarantined.
func (n *Node) Deliver(ctx context.Context, run machine.RunID, e machine.Event) error {
	t, err := n.present(ctx)
	if err != nil {
		return err
	}
	if err := t.scheduler.ask(ctx, run, &delivery{Answer: call.Answer{Event: e, Arrived: n.clock.Now()}}); err != nil {
		return fmt.Errorf("deliver to run %s: %w", store.RunName(run), err)
	}
	return nil
}

// claims reports whether this node takes up runs without an owner.
func (n *Node) claims() bool {
	return !n.cfg.Options.Alone && !n.draining.Load() && n.idle == ""
}

// passed reports a pass.
func (n *Node) passed(p PassStats) {
	n.lastPass.Store(time.Now().UnixNano())
	n.cfg.Observer.Pass(p)
}

// slotFreed is told by the agents' side that a slot may have become free.
func (n *Node) slotFreed(key string) {
	if t := n.now(); t != nil {
		t.scheduler.queue.free(key)
	}
}

// Quarantined returns the runs that this node leaves alone, with the reason.
func (n *Node) Quarantined() map[machine.RunID]error { return n.quarantined.all() }

// quarantine remembers runs that cannot be worked on here.
type quarantine struct {
	mu   sync.Mutex // protects following field
	runs map[machine.RunID]error
}

// note remembers why a run is left alone, and reports whether that is news.
func (t *quarantine) note(run machine.RunID, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == nil {
		t.runs = map[machine.RunID]error{}
	}
	old := t.runs[run]
	t.runs[run] = err
	return old == nil || old.Error() != err.Error()
}

// gone forgets a run that is over.
func (t *quarantine) gone(run machine.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, run)
}

func (t *quarantine) all() map[machine.RunID]error {
	t.mu.Lock()
	defer t.mu.Unlock()
	runs := make(map[machine.RunID]error, len(t.runs))
	for run, err := range t.runs {
		runs[run] = err
	}
	return runs
}
