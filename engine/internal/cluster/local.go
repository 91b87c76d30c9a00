package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A Local holds everything that the memberships of one node share.
type Local struct {
	cfg    Config
	shared *owner.Shared
	full   atomic.Bool // the runs in memory need all the memory that Options.MaxRunMemory allows
}

// Config holds the parameters of New. See engine.Config. All functions are required.
type Config struct {
	Store    store.Full
	Sealer   crypt.Sealer
	Observer Observer
	Logger   *slog.Logger
	Passed   func(Pass)
	Retained func(store.RetainStats)
	// Announce makes notifications for the notices in the store, until ctx ends. The parameters
	// `runs` and `to` belong to the membership: its Scheduler and its Committer.
	Announce func(ctx context.Context, runs *owner.Scheduler, to *commit.Committer)
	Hinted   func() // called for each hint of the store; it does not block
	// Searched is called after each tick in which the store has looked for work that starts runs or
	// delivers replies (store.Tick). The parameter `found` says whether there is any. It does not
	// block.
	Searched func(found bool)
	Options  Options
}

// An Observer receives the facts that follow from this engine's decisions about unstaffed
// runs. See engine.Observer.
type Observer interface {
	Facts(run status.RunID, first int, facts []story.Fact)
	LateReply(run status.RunID, attempt machine.AttemptID)
}

// Options holds the settings. See engine.Options.
type Options struct {
	Address                                    string
	Lease, MinScan, MaxScan, Grace, RetryStore time.Duration
	ClaimBatch                                 int
	ClaimInterval, Retention                   time.Duration
	Writers                                    int
	MaxBatchRows, MaxBatchBytes                int
	MaxRunMemory                               int64
}

// New returns the Local of a node.
func New(cfg Config, shared *owner.Shared) *Local { return &Local{cfg: cfg, shared: shared} }

// Pass holds the results and the cost of one scan of the Supervisor. See engine.PassStats.
type Pass struct {
	Took    time.Duration // duration of the scan, and of the work on the runs that it found
	Due     int           // number of due runs that were found
	Lag     time.Duration // largest delay of the due runs; 0 = no run was late
	Foreign bool          // the scan also looked for runs that this engine does not own
	Taken   int           // number of runs taken over or claimed
}

// find returns the ids of the runs that a filter selects.
func (n *Local) find(ctx context.Context, f store.RunFilter) ([]status.RunID, error) {
	rows, err := n.cfg.Store.Runs(ctx, f)
	if err != nil {
		return nil, err
	}
	runs := make([]status.RunID, len(rows))
	for i, r := range rows {
		runs[i] = r.Run
	}
	return runs, nil
}

// overFor reports whether the error err says that this membership is over, or that it does not own
// a run any more. See owner.OverFor.
func overFor(err error) bool { return owner.OverFor(err) }

// backOff quarantines a run that this engine cannot work on, and adds the run to the backoff
// set.
func (n *Local) backOff(run status.RunID, err *journal.RunError) {
	n.noteQuarantined(run, err)
	n.shared.Backoffs.Add(run, n.shared.Clock.Now(), n.cfg.Options.MaxScan)
}

// noteQuarantined records why a run is quarantined. It logs the reason if the reason is new.
func (n *Local) noteQuarantined(run status.RunID, err *journal.RunError) {
	if n.shared.Quarantined.Note(run, err) {
		n.cfg.Logger.Warn("run is quarantined", "run", err.PublicName(), "error", err)
	}
}

// rests reports whether a run waits for a person, has no call in flight, and is not due now. Such a
// run may become due later, when a deadline passes. Then an engine takes the run over and raises an
// alert. After the alert, the run stays at rest (Head.AtRest).
func (n *Local) rests(story owner.Story) bool {
	if !story.State.Status().NeedsHuman() || story.State.InFlight() {
		return false
	}
	due, ok := story.State.NextDue()
	return !ok || due.After(n.shared.Clock.Now())
}

// removed reports whether retention may have removed a run that is missing in the store. It returns
// false if the id of the run is greater than the ids of all removed runs (Retainer.Retained), or if
// the store removes no runs: then the store has lost the run.
func (n *Local) removed(ctx context.Context, run status.RunID) (bool, error) {
	retainer, ok := n.cfg.Store.Store.(store.Retainer)
	if !ok {
		return false, nil
	}
	last, err := retainer.Retained(ctx)
	if err != nil {
		return false, fmt.Errorf("ask how far runs were removed: %w", err)
	}
	return run <= last, nil
}
