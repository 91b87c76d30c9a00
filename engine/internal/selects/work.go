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
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
)

const (
	leastPause = 100 * time.Millisecond // shortest pause between two looks for a firing
	afterFault = 5 * time.Second        // pause of a firing that could not continue
)

// errLost says that another engine has the firing now, or that a person has cancelled it.
var errLost = errors.New("the firing belongs to another engine, or was cancelled")

// Config holds what a Worker needs. All fields except Sealer and Hints are required.
type Config struct {
	Store  firings.Store
	Sealer crypt.Sealer
	Logger *slog.Logger
	Holder string        // name of this engine; only for display
	Lease  time.Duration // time after which another engine may take over a firing of an engine that has died
	// Definition returns the stored definition with a workflow.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	Submit     SubmitFunc
	Hints      <-chan struct{} // receives a value when there may be an open firing
	MaxPause   time.Duration   // longest pause between two looks for a firing
}

// A Worker works on firings. Only one goroutine may use it.
type Worker struct{ cfg Config }

// New returns a Worker.
func New(cfg Config) *Worker { return &Worker{cfg} }

// Run works on firings until ctx ends. While there are none, the pause between two looks doubles each
// time, up to Config.MaxPause. A hint ends the pause.
func (w *Worker) Run(ctx context.Context) {
	pause := leastPause
	for {
		worked, err := w.Work(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.cfg.Logger.Warn("look for firings of selections", "error", err)
		case worked:
			pause = leastPause
			continue
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, w.cfg.MaxPause)
		select {
		case <-timer.C:
		case <-w.cfg.Hints:
			pause = leastPause
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Work claims one firing and works on it to its end. It reports whether there was one. If the firing
// cannot continue, Work gives it back with the error, and logs the error.
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

// keys works on a firing of the strategy in_memory: it reads all keys, and then the rows of these keys.
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
			n++ // rows with the same key are in one page
		}
		q.Keys, keys = slices.Clip(append([]string{}, keys[:n]...)), keys[n:]
		q.Last = len(keys) == 0
		if err := w.hand(ctx, p, q); err != nil {
			return err
		}
	}
	return nil
}

// hand hands on one page. It renews the lease of the firing in the meantime.
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
	close(stop)
	<-renewed
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errLost), err == nil && !moved:
		return errLost
	default:
		return err
	}
}

// renew renews the lease of a firing until stop is closed. If the firing is lost, renew cancels the
// work on it.
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
			case <-stop: // the page has stored its progress, which changes the version
			default:
				cancel(errLost)
			}
			return
		}
	}
}
