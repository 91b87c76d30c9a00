package submit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/faultpoints"
)

// Batch holds the parameters of All. See engine.Config and engine.Options.
type Batch struct {
	Store                       store.Store
	Sealer                      crypt.Sealer
	Logger                      *slog.Logger
	Address                     string
	Lease                       time.Duration
	Writers                     int
	MaxBatchRows, MaxBatchBytes int
	Limits                      Limits
}

// A Result is the result of one request of All: see engine.Enqueued.
type Result struct {
	store.Submitted
	Err error
}

// tries is how often All joins the store.
const tries = 3

// All stores runs without an owner. It joins the store, submits all runs, and leaves the store. It
// returns one result for each request. A result without an error and without a run says that the
// request was not tried. In this case the result `why` is the reason. The result `left` is the
// error of leaving the store.
//
// If the membership is over too early, All joins again, for the requests that are not stored. This
// happens on an embedded state: an engine that opens the state declares all earlier engines dead.
func All(ctx context.Context, cfg Batch, all []Request) (out []Result, why, left error) {
	out = make([]Result, len(all))
	if len(all) == 0 {
		return out, nil, nil
	}
	if err := journal.PinKey(ctx, cfg.Store, cfg.Sealer, time.Now()); err != nil {
		return out, err, nil
	}
	cfg.Store = faultpoints.Store(cfg.Store)
	open := make([]int, len(all)) // indexes of the requests that are not stored
	for i := range open {
		open[i] = i
	}
	for try := 1; ; try++ {
		part := make([]Request, len(open))
		for k, i := range open {
			part[k] = all[i]
		}
		var results []Result
		results, why, left = once(ctx, cfg, part)
		var again []int
		for k, i := range open {
			out[i] = results[k]
			if r := results[k]; r.Run == 0 && owner.NotOwner(cmp.Or(r.Err, why)) {
				again = append(again, i)
			}
		}
		if open = again; len(open) == 0 || try == tries || ctx.Err() != nil {
			return out, why, left
		}
	}
}

// once does the work of All with one membership.
func once(ctx context.Context, cfg Batch, all []Request) (out []Result, why, left error) {
	out = make([]Result, len(all))
	writers := min(cfg.Writers, len(all))
	full, ticked := store.Complete(cfg.Store), &clock.Clock{}
	b := &batch{cfg: cfg, clock: ticked, all: all, out: out, Maker: New(Config{
		Store: cfg.Store, Sealer: cfg.Sealer, Defs: journal.NewDefinitions(full, cfg.Sealer), Specs: &owner.SpecCache{}, Clock: ticked, Limits: cfg.Limits,
	})}
	var err error
	if b.engine, err = cfg.Store.Join(ctx, cfg.Address, cfg.Lease, writers); err != nil {
		return out, fmt.Errorf("join the store: %w", err), nil
	}
	if why = b.tick(ctx); why == nil {
		why = b.run(ctx, writers)
	}
	// Leave the store, although this membership owns no run. Without this, the membership would
	// look like a dead engine.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Lease)
	defer cancel()
	if err := cfg.Store.Leave(last, b.engine); err != nil && !owner.NotOwner(err) {
		left = fmt.Errorf("leave the store: %w", err)
	}
	return out, why, left
}

// A batch is one call of All.
type batch struct {
	*Maker
	cfg    Batch
	clock  *clock.Clock
	engine store.EngineID
	all    []Request
	out    []Result     // one result for each request; each result is written by one writer only
	next   atomic.Int64 // index of the first request that no writer has taken yet
}

// tick renews the lease and sets the clock to the store's time.
func (b *batch) tick(ctx context.Context) error {
	sent := time.Now()
	tick, err := b.cfg.Store.Tick(ctx, b.engine, b.cfg.Lease, 1)
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	b.clock.Ticked(sent, tick.Now, b.cfg.Lease)
	return nil
}

// run submits all runs with the given number of writers. It returns an error if some submissions
// were not tried.
func (b *batch) run(ctx context.Context, writers int) error {
	// When one writer fails, the context `stop` ends. The other writers start no new batch, but
	// each of them still waits for the answer to its last batch.
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var open []store.Writer
	var failed error
	for n := range writers {
		w, err := b.cfg.Store.OpenWriter(ctx, b.engine, n)
		if err != nil {
			failed = fmt.Errorf("open writer %d: %w", n, err)
			continue
		}
		open = append(open, w)
	}
	switch {
	case len(open) == 0:
		return failed
	case failed != nil:
		b.cfg.Logger.Warn("submitting over fewer connections", "connections", len(open), "error", failed)
	}
	var work, renew sync.WaitGroup
	for _, w := range open {
		work.Go(func() {
			defer func() {
				if err := w.Close(); err != nil {
					b.cfg.Logger.Debug("close a writer", "error", err)
				}
			}()
			if err := b.work(ctx, stop, w); err != nil {
				cancel(err)
			}
		})
	}
	done := make(chan struct{})
	renew.Go(func() { b.renew(ctx, cancel, done) })
	work.Wait()
	close(done)
	renew.Wait()
	return context.Cause(stop)
}

// renew renews the lease of the membership until the channel `done` is closed. If it notices that
// the membership is over, it calls the function `cancel`, which ends the work of all writers.
func (b *batch) renew(ctx context.Context, cancel context.CancelCauseFunc, done <-chan struct{}) {
	for {
		timer := time.NewTimer(b.cfg.Lease / 3)
		select {
		case <-timer.C:
			if err := b.tick(ctx); owner.OverFor(err) {
				cancel(err)
			}
		case <-done:
			timer.Stop()
			return
		}
	}
}

// shareSize is the largest number of runs in one commit.
const shareSize = 256

// work submits up to shareSize submissions at a time, until none is left or the context `stop`
// ends. It returns an error if the store does not answer or this membership is over. After an
// error, the method `run` ends the work of all writers.
func (b *batch) work(ctx, stop context.Context, w store.Writer) error {
	for stop.Err() == nil {
		to := int(b.next.Add(shareSize))
		from := to - shareSize
		if to = min(to, len(b.all)); from >= to {
			return nil
		}
		if err := b.share(ctx, stop, w, from, to); err != nil {
			return err
		}
	}
	return nil
}
