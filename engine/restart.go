package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Restarting asks for a new run that takes over results of an ended run.
type Restarting struct {
	// Definition of the new run; it must contain the workflow of the ended run.
	Definition *dsl.Definition
	Run        status.RunID // the ended run
	Step       string       // step from which the new run starts
	Again      bool         // true = the new run may run steps whose effects in the ended run stay
	Name       string       // public id of the new run; "" = made from the internal id
	By, Reason string       // person who restarts the run, and why; only for display
}

// A RestartError says why a run cannot be restarted. Nothing was written.
type RestartError struct {
	Run      string // public id of the ended run
	Refusals []moving.Refusal
}

// Error returns all reasons.
func (e *RestartError) Error() string {
	var all []string
	for _, why := range e.Refusals {
		all = append(all, why.String())
	}
	return fmt.Sprintf("run %s cannot be restarted: %s", e.Run, strings.Join(all, "; "))
}

// Restart accepts a new run that takes over results and effects of an ended run, and starts from
// the step r.Step. The new run has no owner, as after Enqueue. If the new run turns back, it also
// undoes the effects that it has taken over. The first row of the new run contains all that it
// takes over. In the commit of this row, the store checks that the ended run has no other heir.
//
// If the name is in use, or another run holds the unique key and on_conflict of the workflow is
// "attach", nothing is written: Restart returns the earlier run with Exists set. It returns a
// *RestartError if the results cannot be taken over, and a *naming.HeirError if another run has
// them already. It returns store.ErrNotFound if the ended run does not exist.
func Restart(ctx context.Context, cfg Config, r Restarting) (store.Submitted, error) {
	request, err := r.prepare(ctx, cfg)
	if err != nil {
		return store.Submitted{}, err
	}
	return enqueue(ctx, cfg, request)
}

// CheckRestart returns the error with which Restart would refuse the new run now; nil = Restart
// would accept the run. If another run holds the unique key of the new run, the error is a
// *refusal.KeyError, also if Restart would return that run with Exists set. It writes nothing. The answer may change at any time: for example, another
// run may take the last place that a limit allows.
func CheckRestart(ctx context.Context, cfg Config, r Restarting) error {
	request, err := r.prepare(ctx, cfg)
	if err != nil {
		return err
	}
	return submit.Preview(ctx, cfg.Store, request)
}

// prepare reads the ended run and returns the submission of the new run. It returns a *RestartError
// if the results cannot be taken over.
func (r *Restarting) prepare(ctx context.Context, cfg Config) (submit.Request, error) {
	loaded, err := journal.Load(ctx, cfg.Store, cfg.Sealer, journal.NewDefinitions(cfg.Store, cfg.Sealer), r.Run)
	if err != nil {
		return submit.Request{}, fmt.Errorf("restart run %s: %w", naming.RunName(r.Run), err)
	}
	past := &moving.Past{Run: loaded.State.Run(), Nodes: loaded.State.Nodes(), Flow: loaded.Flow}
	from := moving.From{Run: r.Run, Step: r.Step, Reason: r.Reason, Again: r.Again}
	plan := past.Succession(r.Definition.Workflow(loaded.Flow.Name), from)
	if len(plan.Refusals) > 0 {
		return submit.Request{}, &RestartError{Run: past.Run.Name, Refusals: plan.Refusals}
	}
	return r.request(past, from, plan), nil
}

// request returns the submission of the new run. The new run has the priority of the ended run. If
// a schedule has started the ended run, the new run also has the tick of the ended run. So the
// expressions of the new run get the same values, and its unique key is the same. It has no
// replies: the sink of the ended run has got the reply about the end already.
func (r *Restarting) request(past *moving.Past, from moving.From, plan moving.Succession) submit.Request {
	priority := past.Run.Line.Priority()
	out := submit.Request{
		Definition: r.Definition, Workflow: past.Flow.Name, Vars: plan.Vars, Name: r.Name, By: r.By, From: from, Past: past, Priority: &priority,
	}
	if _, _, scheduled := cron.TickOf(past.Run.Trigger); scheduled {
		out.Trigger = past.Run.Trigger
	}
	return out
}
