package ticks

import (
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// A plan is a schedule with everything that its runs need.
type plan struct {
	def  *dsl.Definition
	wf   *dsl.Workflow
	i    int // index of the schedule in wf.Schedules
	vars dsl.Value
}

// planOf returns the plan of a stored schedule. The parameter `def` is the published definition.
func planOf(def *dsl.Definition, r schedules.Row, sealer crypt.Sealer) (*plan, error) {
	p := &plan{def: def, wf: def.Workflow(r.Workflow), i: -1}
	if p.wf != nil {
		for i, s := range p.wf.Schedules {
			if s.Name == r.Name {
				p.i = i
			}
		}
	}
	if p.i < 0 {
		return nil, fmt.Errorf("the published definition of %q has no schedule %q; publish it again", r.Workflow, r.Name)
	}
	given, err := journal.DecodeGiven(sealer, p.wf, r.Given)
	if err != nil {
		return nil, err
	}
	if p.selects() {
		return p, nil // each run gets its variables from a row of the selection, so p.vars stays empty
	}
	vars, diags := p.wf.Bind(append(given, p.wf.Schedules[p.i].Variables...))
	if err := diags.Err(); diags.HasErrors() {
		return nil, fmt.Errorf("variables of schedule %s.%s: %w", r.Workflow, r.Name, err)
	}
	p.vars = vars
	return p, nil
}

func (p *plan) schedule() *cron.Schedule { return &p.wf.Schedules[p.i].Schedule }

// run returns the run that starts at a tick.
func (p *plan) run(tick time.Time) Run {
	name := p.schedule().Name
	return Run{
		Definition: p.def, Workflow: p.wf.Name, Vars: p.vars,
		Name: RunName(p.wf.Name, name, tick), Trigger: cron.Trigger(name, tick),
	}
}

// Between returns the runs of all ticks of a schedule in a time range. The range includes the time
// `from`, but not the time `to`. Between returns an error if the range has more than `limit` ticks.
func Between(def *dsl.Definition, r schedules.Row, sealer crypt.Sealer, from, to time.Time, limit int) ([]Run, error) {
	p, err := planOf(def, r, sealer)
	if err != nil {
		return nil, err
	}
	var runs []Run
	table := p.schedule().Timetable
	for at := table.Next(from.Add(-time.Nanosecond)); !at.IsZero() && at.Before(to); at = table.Next(at) {
		if len(runs) == limit {
			return nil, fmt.Errorf("schedule %s.%s has more than %d ticks in this time; choose a shorter one", r.Workflow, r.Name, limit)
		}
		runs = append(runs, p.run(at))
	}
	return slices.Clip(runs), nil
}
