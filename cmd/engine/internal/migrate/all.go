package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/operator"
	"github.com/saga-engine/engine/engine/store"
)

// mostRuns is the largest number of runs that one command moves.
const mostRuns = 10_000

// A result says whether one run can be moved, and what the command has done with it.
type result struct {
	run  string
	plan moving.Plan
	// err says why the run could not be read, or why the event could not be sent to the run; nil =
	// no error. Reasons against the move are in the field `plan`.
	err  error
	sent bool // the event is in the inbox of the run
}

func (x result) can() bool { return len(x.plan.Refusals) == 0 && x.err == nil }

// why returns the first reason why the run cannot be moved; "" = the run can be moved.
func (x result) why() string {
	switch {
	case x.err != nil:
		return x.err.Error()
	case len(x.plan.Refusals) > 0:
		return x.plan.Refusals[0].String()
	}
	return ""
}

// All moves the open runs of a workflow that can be moved, at most mostRuns. Without --yes it only
// says which runs can be moved.
func All(ctx context.Context, a *cli.App, o Options) error {
	next, err := module.Link(ctx, a, o.To, o.Agents)
	if err != nil {
		return err
	}
	wf, err := module.Choose(next.Def, o.Workflow)
	if err != nil {
		return err
	}
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.RightKey(ctx); err != nil {
		return err
	}
	rows, err := s.Store.Runs(ctx, store.RunFilter{Workflow: o.Workflow, States: history.OpenStates(), Limit: mostRuns})
	if err != nil {
		return s.Wrap("list the runs", err)
	}
	var verb machine.Event
	if o.Yes && len(rows) > 0 {
		if verb, err = event(ctx, s, next.Def, wf.Name, verbs.Person(), o.Reason); err != nil {
			return err
		}
	}
	results := make([]result, 0, len(rows))
	for _, row := range rows {
		x, err := consider(ctx, s, row, wf, verb)
		if err != nil {
			return err
		}
		results = append(results, x)
	}
	return report(a, results, o)
}

// consider compares the definition of one run with the given workflow. If the run can be moved
// and the parameter `verb` is not nil, consider sends the event `verb` to the run. It returns
// an error only if the command cannot continue.
func consider(ctx context.Context, s *session.Session, row store.RunRow, wf *dsl.Workflow, verb machine.Event) (result, error) {
	x := result{run: row.Name}
	r, err := history.Read(ctx, s, row)
	if ctx.Err() != nil {
		return x, ctx.Err()
	}
	if err != nil {
		x.err = err
		return x, nil
	}
	x.plan = moving.Compare(r.Flow, wf, r.State.Run(), r.State.Nodes(), moving.Moment{At: time.Now(), Signals: r.State.EarlySignals()})
	if verb == nil || len(x.plan.Refusals) > 0 {
		return x, nil
	}
	op := &operator.Operator{Store: s.Store, Sealer: s.Sealer, Defs: s.Defs}
	_, err = op.Ask(ctx, row.Run, verb, verbs.Person())
	var refused *operator.RefusedError
	switch {
	case err == nil:
		x.sent = true
	case errors.As(err, &refused):
		x.err = errors.New(refused.Reason)
	case ctx.Err() != nil:
		return x, ctx.Err()
	default:
		x.err = err
	}
	return x, nil
}

// report shows one line for each run. It returns an error if a run cannot be moved.
func report(a *cli.App, results []result, o Options) error {
	bad := 0
	for _, x := range results {
		if !x.can() {
			bad++
		}
	}
	if a.JSON {
		runs := []map[string]any{}
		for _, x := range results {
			m := map[string]any{"run": x.run, "can_migrate": x.can(), "recorded": x.sent}
			if why := x.why(); why != "" {
				m["reason"] = why
			}
			runs = append(runs, m)
		}
		if err := a.PrintJSON(map[string]any{"workflow": o.Workflow, "runs": runs, "dry_run": !o.Yes}); err != nil {
			return err
		}
		return leave(bad)
	}
	if len(results) == 0 {
		a.Note("No open runs of workflow %s.", o.Workflow)
		return nil
	}
	table := render.Table{Head: []string{"RUN", "MIGRATE", "WHY NOT"}}
	for _, x := range results {
		word := "can"
		switch {
		case !x.can():
			word = "cannot"
		case x.sent:
			word = "recorded"
		}
		table.Add(x.run, word, x.why())
	}
	if err := table.Write(a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	if len(results) == mostRuns {
		a.Note("Only the newest %d runs are listed. Run the command again afterwards.", mostRuns)
	}
	if !o.Yes {
		a.Note("Nothing was changed. With --yes the command moves the runs that can be moved.")
	}
	return leave(bad)
}
