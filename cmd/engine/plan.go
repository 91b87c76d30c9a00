package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// planner says what a workflow would do: plan, graph.
type planner struct{ *app }

type planOptions struct {
	workflow     string
	values       []givenValue
	detailedExit bool
	agents       agentFlags
}

func planCommand(a *app) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan PATH",
		Short: "Show what apply would do",
		Long: `Shows the waves of steps that apply would run, how each is undone, and how long
it may take. It changes nothing.`,
		Args: wants("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.planner().plan(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.workflow, "workflow", "", "which workflow, if the module has several")
	f.BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit 2 if there is work")
	valueFlags(cmd, &o.values)
	o.agents.add(cmd)
	return cmd
}

// A request is what a run is made of.
type request struct {
	*linked
	wf    *dsl.Workflow
	vars  dsl.Value
	given map[string]bool // variables that were given a value
}

// request links the module at PATH and binds values to its variables.
func (a planner) request(ctx context.Context, path, workflow string, values []givenValue, f agentFlags) (*request, error) {
	l, err := a.opener().link(ctx, path, f)
	if err != nil {
		return nil, err
	}
	wf, err := choose(l.def, workflow)
	if err != nil {
		return nil, err
	}
	assigned, err := a.assignments(l.module, values)
	if err != nil {
		return nil, err
	}
	vars, diags := wf.Bind(assigned)
	if diags.HasErrors() {
		return nil, problems(l.show(diags))
	}
	r := &request{linked: l, wf: wf, vars: vars, given: map[string]bool{}}
	for _, v := range assigned {
		r.given[v.Name] = true
	}
	return r, nil
}

func (a planner) plan(ctx context.Context, path string, o planOptions) error {
	r, err := a.request(ctx, path, o.workflow, o.values, o.agents)
	if err != nil {
		return err
	}
	p, err := a.planOf(ctx, r)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(p.json())
	} else {
		err = p.write(a.stdout)
	}
	if err == nil && o.detailedExit && p.work() {
		return exitError(exitChanges)
	}
	return err
}

// A planned run is what plan shows.
type planned struct {
	label    string
	wf       *dsl.Workflow
	steps    []plannedStep // in order of waves
	times    times
	key      string
	earlier  *store.RunRow  // run that holds the key
	others   map[string]int // open runs by definition, but for this one
	sameOpen int            // open runs of this definition
}

func (a planner) planOf(ctx context.Context, r *request) (*planned, error) {
	scope := &dsl.Scope{Vars: r.vars, Run: dsl.RunInfo{Workflow: r.wf.Name, StartedAt: a.now()}}
	p := &planned{label: r.label(), wf: r.wf, steps: plannedSteps(r.wf, scope), others: map[string]int{}}
	p.times = estimate(r.wf, p.steps, scope)
	if r.wf.UniqueKey != nil {
		key, err := r.wf.UniqueKey(scope)
		if err != nil {
			return nil, failed("Cannot evaluate unique.key", "%s.", upperFirst(err.Error()))
		}
		p.key = key
	}
	return p, a.addRuns(ctx, r, p)
}

// addRuns looks up what runs there are already. No state means no runs.
func (a planner) addRuns(ctx context.Context, r *request, p *planned) error {
	t, err := a.speaker().target(r.dir, r.shown)
	if err != nil {
		return err
	}
	if t.postgres == "" {
		if _, err := os.Stat(t.path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	s, err := a.opener().open(ctx, t, true)
	if err != nil {
		return err
	}
	defer s.close()
	open, err := s.store.Runs(ctx, store.RunFilter{Workflow: r.wf.Name, States: openStates(), Limit: 10000})
	if err != nil {
		return s.wrap("list runs", err)
	}
	for _, row := range open {
		if row.Digest == r.def.Digest() {
			p.sameOpen++
		} else {
			p.others[row.Digest]++
		}
	}
	if p.key != "" {
		p.earlier, err = s.people().holder(ctx, r.wf.Name, p.key)
	}
	return err
}

// holder returns the run that holds a unique key: one that is open, needs a
// human or has succeeded; nil if the key is free.
func (s people) holder(ctx context.Context, workflow, key string) (*store.RunRow, error) {
	holds := append(openStates(), status.RunSucceeded)
	rows, err := s.store.Runs(ctx, store.RunFilter{Workflow: workflow, Key: key, States: holds, Limit: 1})
	if err != nil {
		return nil, s.wrap("look up the key", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// work reports whether apply would have something to do.
func (p *planned) work() bool { return p.earlier == nil || p.earlier.State != status.RunSucceeded }
