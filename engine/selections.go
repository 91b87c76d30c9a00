package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/publish"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/store/naming"
)

// selectPause is the longest pause before an engine searches for open firings again.
const selectPause = 5 * time.Second

// startSelects starts a goroutine that works on the firings of selections until ctx ends. The
// goroutine closes the result when it ends. startSelects starts no goroutine if the store has no
// business tables, or if the engine works only on its own runs. Then the result is closed already.
func (n ticker) startSelects(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if n.firings == nil || n.cfg.Options.Alone {
		close(done)
		return done
	}
	w := selects.New(selects.Config{
		Store: n.firings, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Holder: n.cfg.Options.Address, Lease: n.cfg.Options.Lease,
		Definition: n.shared.Defs.Shared, Submit: submitRows(n.cfg), Hints: n.fired, Quiet: n.quiet.is, MaxPause: min(n.cfg.Options.MaxScan, selectPause),
	})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return done
}

// submitRows returns the function that submits the runs of rows. The runs have no owner, so that all
// engines share them.
func submitRows(cfg Config) selects.SubmitFunc {
	return func(ctx context.Context, runs []selects.Run) []selects.Result {
		all := make([]submit.Request, len(runs))
		for i, r := range runs {
			all[i] = submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, Trigger: r.Trigger, Kind: naming.BySelection}
		}
		return submitPage(ctx, cfg, all)
	}
}

// submitPage submits a page of runs, and returns one result for each.
func submitPage(ctx context.Context, cfg Config, all []submit.Request) []selects.Result {
	results, why, left := cfg.submitAll(ctx, all)
	out := make([]selects.Result, len(results))
	for i, o := range results {
		out[i] = selects.Result{Name: o.Name, Exists: o.Exists, Err: o.Err}
		switch {
		case o.Err == nil && o.Run == 0: // the submission was not tried
			out[i].Err = cmp.Or(why, left, ctx.Err())
		case o.Err != nil:
			// If the run may be stored (o.Run is not 0), the error is not lasting. Then the page is read
			// again, and the next try finds the run by its name.
			out[i].Refused = errors.Is(o.Err, naming.ErrFull)
			out[i].Lasting = o.Run == 0 && submit.Refused(ctx, o.Err)
		}
	}
	return out
}

// submitKeys returns the function that submits the runs of a page of keys of an event. The runs have no
// owner, so that all engines share them.
func submitKeys(cfg Config) func(ctx context.Context, runs []inbox.Run) []inbox.Result {
	return func(ctx context.Context, runs []inbox.Run) []inbox.Result {
		all := make([]submit.Request, len(runs))
		for i, r := range runs {
			all[i] = submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, Trigger: r.Trigger, Kind: naming.ByEvent}
		}
		out := make([]inbox.Result, len(runs))
		for i, res := range submitPage(ctx, cfg, all) {
			out[i] = inbox.Result{Lasting: res.Lasting || res.Refused, Err: res.Err}
		}
		return out
	}
}

// openings returns the object that opens the firings of schedules and events.
func (n ticker) openings() publish.Firings {
	return publish.Firings{Publisher: n.cfg.publisher(), Role: n.firings, Fired: n.fired}
}

// selections returns the object that opens and ends the firings of schedules; nil = the store has
// no business tables.
func (n ticker) selections() ticks.Selections {
	if n.firings == nil {
		return nil
	}
	return n.openings()
}
