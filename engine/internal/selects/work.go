package selects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
)

const (
	leastPause = 100 * time.Millisecond // shortest pause between two searches for a firing
	afterFault = 5 * time.Second        // pause of a firing that could not continue
)

// errLost says that another engine has the firing now, or that a person has cancelled it.
var errLost = errors.New("the firing belongs to another engine, or was cancelled")

// Config holds what a Worker needs. All fields except Sealer, Hints and NoWork are required.
type Config struct {
	Store  firings.Store
	Sealer crypt.Sealer
	Logger *slog.Logger
	Holder string        // name of this engine; only for display
	Lease  time.Duration // time after which another engine may take over a firing of an engine that has died
	// Definition returns the stored definition that contains the workflow with this id.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	Submit     SubmitFunc
	Hints      <-chan struct{} // receives a value when there may be an open firing
	MaxPause   time.Duration   // longest pause between two searches for a firing
	// NoWork reports whether the store has said a short time ago that no firing is open. When it
	// returns true at the end of a pause, no search starts, and the next pause begins. A hint
	// ends the pause in any case. If NoWork is nil, each pause ends with a search.
	NoWork func() bool
}

// A Worker works on firings. Only one goroutine may use it.
type Worker struct{ cfg Config }

// New returns a Worker.
func New(cfg Config) *Worker { return &Worker{cfg} }

// Run works on firings until ctx ends. While there are none, the pause between two searches doubles
// each time, up to Config.MaxPause. A hint ends the pause.
func (w *Worker) Run(ctx context.Context) {
	wait.Loop{Least: leastPause, Most: w.cfg.MaxPause, Hints: w.cfg.Hints, NoWork: w.cfg.NoWork, Search: func(ctx context.Context) (int, error) {
		worked, err := w.Work(ctx)
		if worked {
			return wait.More, err
		}
		return wait.Nothing, err
	}, Failed: func(err error) {
		w.cfg.Logger.Warn("look for firings of selections", "error", err)
	}}.Run(ctx)
}

// Work claims one firing, if a firing is open, and works on it until it ends. It reports whether it
// has claimed a firing. If the firing cannot continue, Work gives the firing and the error back to
// the store, and logs the error.
func (w *Worker) Work(ctx context.Context) (bool, error) {
	f, err := w.cfg.Store.Claim(ctx, w.cfg.Holder, w.cfg.Lease)
	if err != nil || f == nil {
		return false, err
	}
	name := f.Workflow + "." + f.Schedule
	err = w.firing(ctx, f)
	switch {
	case err == nil:
		r := f.Report
		w.cfg.Logger.Info("firing is complete", "schedule", name, "tick", f.Tick, "selected", r.Selected, "started", r.Started, "refused", r.Refused,
			"filtered", r.Filtered, "quarantined", r.Quarantined, "vanished", r.Vanished, "missed", r.Missed)
	case errors.Is(err, errLost):
		w.cfg.Logger.Info("firing was lost", "schedule", name, "tick", f.Tick)
	case ctx.Err() != nil:
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterFault)
		defer cancel()
		return true, w.cfg.Store.Release(last, f, 0, "")
	default:
		w.cfg.Logger.Error("firing does not continue", "schedule", name, "tick", f.Tick, "again_in", afterFault, "error", err)
		return true, w.cfg.Store.Release(ctx, f, afterFault, bad("", err).Error)
	}
	return true, nil
}

// firing works on a claimed firing until it ends.
func (w *Worker) firing(ctx context.Context, f *firings.Firing) error {
	if !f.Published {
		_, err := w.cfg.Store.Cancel(ctx, f.ID, "the workflow is not published any more")
		return errors.Join(err, errLost)
	}
	def, err := w.cfg.Definition(ctx, f.WorkflowID)
	if err != nil {
		return err
	}
	p, err := planOf(def, f, w.cfg.Sealer)
	if err != nil {
		return err
	}
	if p.sel.Strategy == selection.InMemory {
		return w.keys(ctx, p)
	}
	for f.State == firings.Open {
		if err := w.hand(ctx, p, p.query); err != nil {
			return err
		}
	}
	return nil
}

// keys works on a firing with strategy = "in_memory": it reads all keys, and then their rows.
func (w *Worker) keys(ctx context.Context, p *plan) error {
	most := p.sel.MaxKeys
	keys, err := w.cfg.Store.Keys(ctx, p.f, p.query, most+1)
	if err != nil {
		return err
	}
	if len(keys) > most {
		return fmt.Errorf("the query returns more than %d keys, which is max_keys; use strategy = \"keyset\", or a larger max_keys", most)
	}
	for p.f.State == firings.Open {
		q := p.query
		n := min(q.PageSize, len(keys))
		for n > 0 && n < len(keys) && keys[n] == keys[n-1] {
			n++ // all rows with the same key must be in one page
		}
		q.Keys, keys = slices.Clip(append([]string{}, keys[:n]...)), keys[n:]
		q.Last = len(keys) == 0
		if err := w.hand(ctx, p, q); err != nil {
			return err
		}
	}
	return nil
}

// hand works on one page: the store reads the rows, their runs start, and the store keeps the
// progress. Meanwhile hand renews the lease of the firing.
func (w *Worker) hand(ctx context.Context, p *plan, q firings.Query) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := make(chan struct{})
	stop := make(chan struct{})
	held := *p.f
	go func() {
		defer close(renewed)
		w.renew(ctx, &held, stop, cancel)
	}()
	moved, err := w.cfg.Store.Hand(ctx, p.f, q, func(ctx context.Context, rows []firings.Row) (firings.Progress, error) {
		return p.page(ctx, w.cfg.Submit, rows)
	})
	failpoint.Hit("select.moved")
	close(stop)
	<-renewed
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost), err == nil && !moved:
		return errLost
	default:
		return err
	}
}

// renew renews the lease of a firing until the channel `stop` is closed. If the firing is lost,
// renew cancels the work on it.
func (w *Worker) renew(ctx context.Context, f *firings.Firing, stop <-chan struct{}, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(w.cfg.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		switch held, err := w.cfg.Store.Renew(ctx, f, w.cfg.Lease); {
		case err != nil:
			w.cfg.Logger.Warn("renew the lease of a firing", "error", err)
		case !held:
			select {
			// The firing is not lost. Its version has changed because the method `hand` stored the
			// progress.
			case <-stop:
			default:
				cancel(errLost)
			}
			return
		}
	}
}
