package owner

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/outage"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// Shared holds everything that the runs of one node share. It exists longer than the
// memberships that own the runs.
type Shared struct {
	cfg         Config
	Defs        *journal.Definitions
	Clock       *clock.Clock
	Calls       *call.Caller
	Pool        *DecisionPool
	Specs       SpecCache
	Followers   *Followers
	Quarantined *Quarantine
	Outage      *outage.Outage
	Backoffs    *backoffSet
	FactKinds   story.FactKinds                    // the kinds of facts that an observer asked for
	Ended       func(status.RunID, *machine.State) // called when a child run has ended here; must not keep the run's state; nil = not called
	Posted      func(sink string)                  // called with the sink after a row with replies is stored; nil = not called
	Idle        string                             // why this node starts no work at all; "" = it works
	// Notices is a channel of capacity 1. It receives a value when there may be a state of a run
	// that has to be announced (notice.Keeper).
	Notices  chan struct{}
	Draining atomic.Bool
	snapping sync.Mutex // locked while a snapshot is being made
}

// Config holds the parameters of NewShared. See engine.Config.
type Config struct {
	Store    store.Full
	Invoker  invoke.Invoker
	Capacity invoke.Capacity
	Sealer   crypt.Sealer
	Observer Observer
	Logger   *slog.Logger
	Options  Options
}

// An Observer receives the facts about runs. See engine.Observer.
type Observer interface {
	Facts(run status.RunID, first int, facts []story.Fact)
	LateReply(run status.RunID, attempt machine.AttemptID)
}

// Options holds the settings. See engine.Options.
type Options struct {
	Lease, MinScan, MaxScan, RetryStore time.Duration
	Shards                              int
	MaxBatchBytes                       int
	MaxRow, SnapshotRows                int
	Ceilings                            machine.Ceilings
	OnlyOwnRuns                         bool
}

// NewShared returns a Shared. It starts no goroutine.
func NewShared(cfg Config) *Shared {
	h := &Shared{
		cfg: cfg, Defs: journal.NewDefinitions(cfg.Store, cfg.Sealer), Clock: &clock.Clock{}, Followers: &Followers{}, Quarantined: &Quarantine{},
		Notices: make(chan struct{}, 1), Outage: outage.New(cfg.Logger), Backoffs: &backoffSet{restFor: 20 * cfg.Options.MaxScan},
	}
	h.Pool = newDecisionPool(h.Clock)
	return h
}

// Claims reports whether this node claims runs without an owner.
func (n *Shared) Claims() bool {
	return !n.cfg.Options.OnlyOwnRuns && !n.Draining.Load() && n.Idle == ""
}

// Check returns an error if this node cannot call the agent. It returns nil if the Invoker
// cannot check agents, or if this node starts no work (Idle).
func (n *Shared) Check(ctx context.Context, spec invoke.AgentSpec) error {
	if checker, ok := n.cfg.Invoker.(invoke.Checker); ok && n.Idle == "" {
		return checker.Check(ctx, spec)
	}
	return nil
}

// Equipped returns a *RunError if this node cannot call one of a run's agents. It returns nil
// if the node can call all agents of the run.
func (n *Shared) Equipped(ctx context.Context, run status.RunID, name string, specs map[string]invoke.AgentSpec) error {
	for _, spec := range specs {
		if err := n.Check(ctx, spec); err != nil {
			return &journal.RunError{Run: int64(run), Name: name, Err: err, Hint: journal.HintFor(err)}
		}
	}
	return nil
}
