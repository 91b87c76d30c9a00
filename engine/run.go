package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/notify"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/sources"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/faultpoints"
)

// NewNode returns a node that is not running. Until Run is called, the node uses neither the store
// nor agents.
func NewNode(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	roles := sources.RolesOf(cfg.Store)
	cfg.Store = faultpoints.Store(cfg.Store)
	n := &Node{
		shared: owner.NewShared(cfg.forRuns()), cfg: cfg, idle: sources.NewIdleHint(2 * cfg.Options.MaxScan),
		ready: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}
	n.shared.FactKinds = factsFor(cfg.Observer)
	n.stopped, n.stopNow = context.WithCancel(context.Background())
	n.submitter = &submit.Submitter{Maker: submit.New(submit.Config{
		Store: cfg.Store, Sealer: cfg.Sealer, Defs: n.shared.Defs, Specs: &n.shared.Specs, Clock: n.shared.Clock, Limits: cfg.Options.ofRun(),
	}), Sinks: cfg.Replies, Present: n.accepting}
	n.kids = children.New(n.stopped, children.Config{
		Submit: n.submitter.Child, Store: store.Complete(cfg.Store), Sealer: cfg.Sealer, Defs: n.shared.Defs,
		Clock: n.shared.Clock, Outage: n.shared.Outage, Poll: cfg.Options.Poll,
	})
	n.shared.Ended = n.kids.Ended
	n.sources = sources.New(sources.Config{
		Store: cfg.Store, Roles: roles, Sealer: cfg.Sealer, Logger: cfg.Logger,
		Address: cfg.Options.Address, Lease: cfg.Options.Lease, MaxScan: cfg.Options.MaxScan,
		Defs: n.shared.Defs, Now: n.shared.Clock.Now, Submit: n.submitter.Submit, SubmitAll: cfg.submitAll, Idle: n.idle,
	})
	if n.sender = (replier{n}).sender(); n.sender != nil {
		n.shared.Posted = n.sender.Posted
		n.idle.Wakes(func() { n.sender.Posted("") })
	}
	n.shared.Calls = call.New(call.Config{
		Invoker: cfg.Invoker, Children: n.kids, Store: store.Complete(cfg.Store), Sealer: cfg.Sealer, Secrets: cfg.Secrets, Observer: cfg.Observer, Logger: cfg.Logger,
		Clock: n.shared.Clock, Outage: n.shared.Outage, Present: n.member, Stopped: n.stopped,
		Lease: cfg.Options.Lease, MinScan: cfg.Options.MinScan, RetryRefused: cfg.Options.RetryRefused, RetryStore: cfg.Options.RetryStore, MaxValue: cfg.Options.MaxValue,
	})
	n.local = cluster.New(n.forMembers(), n.shared)
	if cfg.Capacity != nil {
		cfg.Capacity.OnFree(n.slotFreed)
	}
	return n, nil
}

// Run joins the store and works until ctx ends. Then it starts nothing new, waits for calls in
// flight until their complete-by, commits their results, releases its runs and returns nil. After
// StopNow it returns ErrStopping at once.
//
// If the lease expires or another engine declares this engine dead, Run decides nothing more for
// this membership. Calls in flight continue. Then Run joins again with a new membership, which
// takes over the runs of the former one. Run may be called only once.
//
// If Run cannot join at the start, it returns an error. If ctx ends before Run has joined, it
// returns nil. If ctx ends while Run tries to join again, it returns an error if its former
// membership owned runs, and nil otherwise. It returns a *LossError if it finds that the store has
// lost committed rows. It returns a *crypt.KeyError if it has to join again and the key of the
// store was changed. If the store does not answer after Run has joined, Run waits for the store.
func (n *Node) Run(ctx context.Context) error {
	if n.started.Swap(true) {
		return errors.New("engine: this node has been run before")
	}
	defer close(n.ended)
	defer n.shared.Calls.StopAll()
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(n.stopped, func() {
		// StopAll must come before cancel: after cancel, a call could still be sent.
		n.shared.Calls.StopAll()
		cancel()
	})()

	soft, cancelSoft := context.WithCancel(ctx) // `soft` ends with ctx, or when StopNow is called
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
	case err != nil && soft.Err() != nil:
		return nil // the node was asked to stop before it had begun
	case err != nil:
		return fmt.Errorf("join the store: %w", err)
	}
	others := n.startOthers(soft)
	defer func() {
		cancelSoft()
		for _, ended := range others {
			<-ended
		}
	}()
	following := make(chan struct{})
	go func() {
		defer close(following)
		n.kids.Run(hard)
	}()
	defer func() {
		cancel()
		<-following
	}()
	var loss *store.LossError
	var key *crypt.KeyError
	for {
		n.enter(t)
		cause := t.Run(ctx, hard)
		runs := t.Runs.Close()
		n.enter(nil)
		n.kids.Forget()
		switch {
		case hard.Err() != nil:
			return ErrStopping
		case errors.Is(cause, cluster.ErrDrained):
			return n.leave(hard, t)
		case errors.As(cause, &loss):
			n.cfg.Logger.Error("the engine stops: the store has lost committed rows", "engine", t.Engine, "error", loss)
			return cause
		}
		n.cfg.Observer.Fenced()
		n.cfg.Logger.Warn("the engine lost its lease and joins again", "engine", t.Engine, "runs", len(runs), "cause", cause)
		former := t.Engine
		switch t, err = n.rejoin(soft); {
		case err != nil && hard.Err() != nil:
			return ErrStopping
		case errors.As(err, &loss), errors.As(err, &key):
			return err
		case err != nil && len(runs) > 0:
			// Other engines take the runs over when they notice that this node is gone.
			return fmt.Errorf("hand over: %w", err)
		case err != nil:
			return nil // the node was asked to stop while it owned no run
		}
		t.InheritFrom(former, runs)
	}
}

// leave ends the membership, so that other engines can take its runs at once. It returns no
// error if the membership is over already.
func (n *Node) leave(ctx context.Context, t *cluster.Membership) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Options.Lease)
	defer cancel()
	if err := n.cfg.Store.Leave(ctx, t.Engine); err != nil && !owner.NotOwner(err) {
		return fmt.Errorf("hand over: %w", err)
	}
	return nil
}

// joinTries is the largest number of times that joinFirst tries to join. joinFirst tries again only
// if the lease expires before the engine has begun. This may happen if the lease is short and the
// machine is busy.
const joinTries = 20

// joinFirst joins the store. It returns an error if the store does not answer. If the lease
// expires before the membership has begun, joinFirst tries again.
func (n *Node) joinFirst(ctx context.Context) (*cluster.Membership, error) {
	for try := 1; ; try++ {
		t, err := n.local.Join(ctx)
		if !owner.NotOwner(err) || try == joinTries || ctx.Err() != nil {
			return t, err
		}
		n.cfg.Logger.Warn("the lease expired before the engine had begun; it joins again", "lease", n.cfg.Options.Lease)
	}
}

// rejoin tries to join until a try succeeds, and returns the new membership. If ctx ends, or the
// store returns a *LossError, rejoin returns the error. It returns a *crypt.KeyError if the key of
// the store was changed and the keys of this engine do not fit any more.
func (n *Node) rejoin(ctx context.Context) (*cluster.Membership, error) {
	pause := 20 * time.Millisecond
	for {
		err := journal.PinKey(ctx, n.cfg.Store, n.cfg.Sealer, time.Now())
		var t *cluster.Membership
		if err == nil {
			t, err = n.local.Join(ctx)
		}
		var loss *store.LossError
		var key *crypt.KeyError
		if err == nil || ctx.Err() != nil || errors.As(err, &loss) || errors.As(err, &key) {
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

// forMembers returns the part of the configuration that memberships need.
func (n *Node) forMembers() cluster.Config {
	c, o := n.cfg, n.cfg.Options
	return cluster.Config{
		Store: store.Complete(c.Store), Sealer: c.Sealer, Observer: c.Observer, Logger: c.Logger, Passed: n.passed, Retained: n.retained, Hinted: n.sources.Hinted, Searched: n.idle.Looked,
		Announce: notify.New(notify.Config{
			Store: c.Store, Sealer: c.Sealer, Logger: c.Logger, Shared: n.shared, Maker: n.submitter.Maker,
			MaxValue: o.MaxValue, MaxScan: o.MaxScan, RetryStore: o.RetryStore,
		}).Run,
		Options: cluster.Options{
			Address: o.Address, Lease: o.Lease, MinScan: o.MinScan, MaxScan: o.MaxScan, Grace: o.Grace, RetryStore: o.RetryStore,
			ClaimBatch: o.ClaimBatch, ClaimInterval: o.ClaimInterval, Retention: o.Retention,
			Writers: o.Writers, MaxBatchRows: o.MaxBatchRows, MaxBatchBytes: o.MaxBatchBytes, MaxRunMemory: o.MaxRunMemory,
		},
	}
}

// startOthers starts the loops that need no membership. They start runs for schedules, selections,
// sent events and submissions of other programs, and they deliver replies. If Options.OnlyOwnRuns
// is true, startOthers starts only the loop that delivers replies. Each loop ends soon after ctx
// has ended, and then closes its channel.
func (n *Node) startOthers(ctx context.Context) []<-chan struct{} {
	var ended []<-chan struct{}
	if !n.cfg.Options.OnlyOwnRuns {
		ended = n.sources.Start(ctx)
	}
	return append(ended, startReplies(ctx, n.sender))
}
