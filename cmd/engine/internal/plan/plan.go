package plan

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Plan says what apply would do with a workflow.
type Plan struct {
	label   string
	flow    *dsl.Workflow
	steps   []step // in order of waves: a step waits only for steps of earlier waves
	times   times
	key     string
	earlier *store.RunRow // the run that has the unique key of the request now; nil = none
	// Number of open runs with another definition, by the digest of that definition.
	others   map[string]int
	sameOpen int // number of open runs with this definition
	// If `embedded` is true, the state is an embedded file, which cannot check rows of an
	// application.
	embedded bool
}

// New makes the plan of a request. It looks up the runs that exist, and changes nothing.
func New(ctx context.Context, a *cli.App, r *module.Request) (*Plan, error) {
	scope := &dsl.Scope{Vars: r.Vars, Run: dsl.RunInfo{Workflow: r.Workflow.Name, StartedAt: a.Now()}}
	p := &Plan{label: r.Label(), flow: r.Workflow, steps: planner{}.stepsOf(r.Workflow, scope), others: map[string]int{}}
	p.times = estimate(r.Workflow, p.steps, scope)
	if r.Workflow.UniqueKey != nil {
		key, err := r.Workflow.UniqueKey(scope)
		if err != nil {
			return nil, cli.Failed("Cannot evaluate unique.key", "%s.", words.UpperFirst(err.Error()))
		}
		p.key = key
	}
	return p, addRuns(ctx, a, r, p)
}

// addRuns counts the open runs of the workflow, and finds the run that has the unique key now. If
// the state does not exist, there are no runs.
func addRuns(ctx context.Context, a *cli.App, r *module.Request, p *Plan) error {
	t, err := session.Resolve(a, r.Dir, r.Shown)
	if err != nil {
		return err
	}
	if t.Postgres == "" {
		p.embedded = true
		if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	s, err := session.Open(ctx, a, t, true)
	if err != nil {
		return err
	}
	defer s.Close()
	open, err := s.Store.Runs(ctx, store.RunFilter{Workflow: r.Workflow.Name, States: history.OpenStates(), Limit: 10000})
	if err != nil {
		return s.Wrap("list runs", err)
	}
	for _, row := range open {
		if row.Digest == r.Def.Digest() {
			p.sameOpen++
		} else {
			p.others[row.Digest]++
		}
	}
	if p.key != "" {
		p.earlier, err = history.Holder(ctx, s, r.Workflow.Name, p.key)
	}
	return err
}

// HasWork reports whether apply would start or continue a run.
func (p *Plan) HasWork() bool { return p.earlier == nil || p.earlier.State != status.RunSucceeded }
