package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// Config holds the parameters of NewNode.
type Config struct {
	Store   store.Store    // required
	Invoker invoke.Invoker // required
	// Capacity limits the calls of each agent; nil = no limit. If Capacity is nil, this engine also
	// ignores the limits that engines share (max_concurrency and rate_limit of agents).
	Capacity invoke.Capacity
	// Sealer encrypts sensitive data. Run returns a *crypt.KeyError if the keys of the Sealer do
	// not fit the keys that the store has recorded (journal.PinKey). nil = a run with sensitive
	// values is refused.
	Sealer crypt.Sealer
	// Secrets resolves a reference such as "env:X" right before a call. If it returns an
	// error, the step is held, and people see the error as the reason. nil = no reference
	// can be resolved.
	Secrets func(ref string) (string, error)
	// Replies sends the replies of runs to webhooks. nil = this engine accepts no run whose replies
	// go to a webhook, and sends none.
	Replies  ReplySender
	Observer Observer     // nil = NoObserver
	Logger   *slog.Logger // nil = the node does not log
	Options  Options
}

// defaultMaxRunMemory is the default of Options.MaxRunMemory, in bytes. An engine on a machine with
// 512 MiB has approximately this much memory for runs.
const defaultMaxRunMemory = 256 << 20

// Options are the settings of a Node. A field that is zero has its default.
type Options struct {
	// Address of this engine, such as host:pid; stored so that people can find the process.
	Address string

	// Lease is how long this engine counts as alive after its last sign of life. The default is 30
	// s.
	Lease time.Duration
	// MinScan and MaxScan limit the pause between two scans of the Supervisor. Each scan also
	// renews the lease (S36, S47). The default of MinScan is 200 ms, or MaxScan if MaxScan is
	// shorter. The default of MaxScan is half of Lease, or a third of Lease if Lease is below 10 s.
	// MaxScan may be at most half of Lease.
	MinScan, MaxScan time.Duration

	// ClaimBatch is the largest number of runs that the engine claims or takes over in one batch
	// (S75). It may take over a few batches of runs of dead engines at the same time. Default 256.
	ClaimBatch int
	// ClaimInterval is the shortest pause between two searches for runs of owners that have
	// died, for all engines together (S74). It does not limit the search for runs without an
	// owner, which is part of each scan. Default MinScan.
	ClaimInterval time.Duration
	// Retention is how long runs are kept after they have finished. If the store is a
	// store.Retainer, everything about a run is removed afterwards, including its name. But the
	// unique key of the run stays held for as long as the unique block says. Some runs are kept
	// longer, for example while a reply waits for its sink: see Retainer.Retain. Default 0: runs
	// are kept for ever, unless their workflow has its own retention. The retention of a workflow
	// always comes first. All engines of a store should have the same value.
	Retention time.Duration
	// If OnlyOwnRuns is true, the engine ignores the runs of other engines, even if those engines
	// die. It works only on runs that were submitted to it, or that the methods Adopt or TakeOver
	// have taken over.
	OnlyOwnRuns bool

	// Writers is the number of connections over which this engine commits. Default 2; use 1
	// for an embedded store.
	Writers int
	// Shards is the number of goroutines that decide on runs. Default: one for each CPU.
	Shards int
	// MaxBatchRows and MaxBatchBytes limit the size of one commit. A commit with at least
	// MaxBatchBytes bytes takes no further row. The defaults are 1,000 rows and 1 MiB.
	MaxBatchRows, MaxBatchBytes int

	// MaxValue is the largest size of an agent's reply and of a run's variables, in bytes.
	// Default 1 MiB.
	MaxValue int
	// MaxRow is the largest size of a journal row, in bytes. A run that needs a larger row
	// is quarantined. Default 64 MiB.
	MaxRow int
	// SnapshotRows is the number of journal rows after which the engine stores a snapshot of a run.
	// To load the run, an engine then needs only the snapshot and the rows after it. A run with
	// large rows gets a snapshot earlier, and a run with a large state gets one later. With a
	// smaller number, the engine writes more bytes for snapshots. Default 1,000.
	SnapshotRows int
	// Ceilings limit the size of one run. All engines of a store should have the same
	// ceilings.
	Ceilings machine.Ceilings
	// MaxRunMemory is the approximate limit, in bytes, for the memory of all runs in this engine.
	// Above the limit the engine claims and takes over no more runs. Default defaultMaxRunMemory.
	MaxRunMemory int64

	// Grace is how long a stopping node waits for a call after the call's complete-by.
	// Default 2 s.
	Grace time.Duration
	// RetryRefused is the first pause before the engine tries again a call that could not be
	// prepared, for example because a secret was missing. Each further pause is twice as long, up
	// to one minute. Default 10 s.
	RetryRefused time.Duration
	// Poll is the longest pause between two reads of a run that a caller follows, and the pause
	// between two questions to the store about child runs for which steps of this engine wait.
	// Default 1 s.
	Poll time.Duration
	// RetryStore is the longest pause between two tries to reach a store that does not answer. The
	// pauses grow until they are this long. Default 5 s.
	RetryStore time.Duration
}

// withDefaults returns a copy in which every zero field has its default.
func (o Options) withDefaults() Options {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	setInt := func(n *int, def int) {
		if *n == 0 {
			*n = def
		}
	}
	set(&o.Lease, 30*time.Second)
	if o.MaxScan == 0 && o.Lease < 10*time.Second {
		// A third, not half: even a late scan must renew a short lease before the lease ends.
		o.MaxScan = o.Lease / 3
	}
	set(&o.MaxScan, o.Lease/2)
	set(&o.MinScan, min(200*time.Millisecond, o.MaxScan))
	setInt(&o.ClaimBatch, 256)
	set(&o.ClaimInterval, o.MinScan)
	setInt(&o.Writers, 2)
	setInt(&o.Shards, runtime.GOMAXPROCS(0))
	setInt(&o.MaxBatchRows, 1000)
	setInt(&o.MaxBatchBytes, 1<<20)
	setInt(&o.MaxValue, 1<<20)
	setInt(&o.MaxRow, store.MaxRowBytes)
	setInt(&o.SnapshotRows, 1000)
	o.Ceilings = o.Ceilings.WithDefaults()
	if o.MaxRunMemory == 0 {
		o.MaxRunMemory = defaultMaxRunMemory
	}
	set(&o.Grace, 2*time.Second)
	set(&o.RetryRefused, 10*time.Second)
	set(&o.Poll, time.Second)
	set(&o.RetryStore, 5*time.Second)
	return o
}

// validate returns an error about the first field that is outside its limits; nil = there is
// none.
func (o Options) validate() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"Lease", o.Lease}, {"MinScan", o.MinScan}, {"MaxScan", o.MaxScan}, {"Grace", o.Grace},
		{"RetryRefused", o.RetryRefused}, {"ClaimInterval", o.ClaimInterval}, {"Poll", o.Poll}, {"RetryStore", o.RetryStore},
	} {
		if d.d <= 0 {
			return fmt.Errorf("engine: Options.%s must be above zero, not %s", d.name, d.d)
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{
		{"Writers", o.Writers}, {"ClaimBatch", o.ClaimBatch}, {"Shards", o.Shards}, {"MaxBatchRows", o.MaxBatchRows},
		{"MaxBatchBytes", o.MaxBatchBytes}, {"MaxValue", o.MaxValue}, {"MaxRow", o.MaxRow}, {"SnapshotRows", o.SnapshotRows},
	} {
		if n.n <= 0 {
			return fmt.Errorf("engine: Options.%s must be above zero, not %d", n.name, n.n)
		}
	}
	if err := o.Ceilings.Validate(); err != nil {
		return fmt.Errorf("engine: Options.Ceilings: %w", err)
	}
	switch {
	case o.MaxRunMemory <= 0:
		return fmt.Errorf("engine: Options.MaxRunMemory must be above zero, not %d", o.MaxRunMemory)
	case o.Retention < 0:
		return fmt.Errorf("engine: Options.Retention must not be negative, as %s is", o.Retention)
	case o.MinScan > o.MaxScan:
		return fmt.Errorf("engine: Options.MinScan must be at most MaxScan (%s), not %s", o.MaxScan, o.MinScan)
	case 2*o.MaxScan > o.Lease:
		return fmt.Errorf("engine: Options.MaxScan must be at most half of Lease (%s), not %s", o.Lease, o.MaxScan)
	case o.MaxRow > store.MaxRowBytes:
		return fmt.Errorf("engine: Options.MaxRow must be at most %d, not %d", store.MaxRowBytes, o.MaxRow)
	case o.Writers > 64:
		return fmt.Errorf("engine: Options.Writers must be at most 64, not %d", o.Writers)
	}
	return nil
}

// withDefaults returns a copy of c. In the copy, Options, Observer, Logger and Secrets have
// their defaults if they were not set.
func (c Config) withDefaults() Config {
	c.Options = c.Options.withDefaults()
	if c.Observer == nil {
		c.Observer = NoObserver{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Secrets == nil {
		c.Secrets = func(ref string) (string, error) {
			return "", fmt.Errorf("secret %s: this engine resolves no secrets", ref)
		}
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("engine: Config.Store is required")
	case c.Invoker == nil:
		return errors.New("engine: Config.Invoker is required")
	}
	return c.Options.validate()
}

// forRuns returns the part of the configuration that the owned runs need.
func (c Config) forRuns() owner.Config {
	o := c.Options
	return owner.Config{
		Store: store.Complete(c.Store), Invoker: c.Invoker, Capacity: c.Capacity, Sealer: c.Sealer, Observer: c.Observer, Logger: c.Logger,
		Options: owner.Options{
			Lease: o.Lease, MinScan: o.MinScan, MaxScan: o.MaxScan, RetryStore: o.RetryStore, Shards: o.Shards,
			MaxBatchBytes: o.MaxBatchBytes, MaxRow: o.MaxRow, SnapshotRows: o.SnapshotRows, Ceilings: o.Ceilings, OnlyOwnRuns: o.OnlyOwnRuns,
		},
	}
}
