package cluster

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A Local is what the memberships of one node share.
type Local struct {
	cfg    Config
	shared *owner.Shared
	full   atomic.Bool // the runs in memory have reached the limit
}

// Config is what a Local is made of. See engine.Config. All functions are required.
type Config struct {
	Store    store.Full
	Sealer   crypt.Sealer
	Observer Observer
	Logger   *slog.Logger
	Passed   func(Pass)
	Retained func(store.RetainStats)
	Options  Options
}

// An Observer is told what happens to runs without an engine of their own. See
// engine.Observer.
type Observer interface {
	Facts(run machine.RunID, first int, facts []story.Fact)
	LateReply(run machine.RunID, attempt machine.AttemptID)
}

// Options are the settings. See engine.Options.
type Options struct {
	Address                                    string
	Lease, MinScan, MaxScan, Grace, RetryStore time.Duration
	ClaimBatch                                 int
	ClaimInterval, Retention                   time.Duration
	Writers                                    int
	MaxBatchRows, MaxBatchBytes                int
	MaxHeld                                    int64
}

// New returns what the memberships of a node share.
func New(cfg Config, shared *owner.Shared) *Local { return &Local{cfg: cfg, shared: shared} }
