package sources

import (
	"cmp"
	"context"
	"errors"

	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A SubmitAllFunc submits runs without an owner: see submit.All.
type SubmitAllFunc func(ctx context.Context, all []submit.Request) (results []submit.Result, why, left error)

// Rows returns the function that submits the runs of rows. The runs have no owner, so that all
// engines share them.
func Rows(submitAll SubmitAllFunc) selects.SubmitFunc {
	return func(ctx context.Context, runs []selects.Run) []selects.Result {
		all := make([]submit.Request, len(runs))
		for i, r := range runs {
			all[i] = submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, Trigger: r.Trigger, Kind: naming.BySelection}
		}
		return submitPage(ctx, submitAll, all)
	}
}

// submitPage submits a page of runs, and returns one result for each.
func submitPage(ctx context.Context, submitAll SubmitAllFunc, all []submit.Request) []selects.Result {
	results, why, left := submitAll(ctx, all)
	out := make([]selects.Result, len(results))
	for i, o := range results {
		out[i] = selects.Result{Name: o.Name, Exists: o.Exists, Err: o.Err}
		switch {
		case o.Err == nil && o.Run == 0: // the submission was not tried
			out[i].Err = cmp.Or(why, left, ctx.Err())
		case o.Err != nil:
			// If o.Run is not 0, the store may have the run in spite of the error. Then
			// the error is not lasting: the page is read again, and the next try finds
			// the run by its name.
			out[i].Refused = errors.Is(o.Err, naming.ErrFull)
			out[i].Lasting = o.Run == 0 && submit.Refused(ctx, o.Err)
		}
	}
	return out
}

// submitKeys returns the function that submits the runs of a page of keys of an event. The runs
// have no owner, so that all engines share them.
func submitKeys(submitAll SubmitAllFunc) func(ctx context.Context, runs []inbox.Run) []inbox.Result {
	return func(ctx context.Context, runs []inbox.Run) []inbox.Result {
		all := make([]submit.Request, len(runs))
		for i, r := range runs {
			all[i] = submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, Trigger: r.Trigger, Kind: naming.ByEvent}
		}
		out := make([]inbox.Result, len(runs))
		for i, res := range submitPage(ctx, submitAll, all) {
			out[i] = inbox.Result{Lasting: res.Lasting || res.Refused, Err: res.Err}
		}
		return out
	}
}
