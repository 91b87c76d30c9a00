package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// Starter is the name under which schedules submit and cancel runs and open firings.
const Starter = "schedule"

// Firings opens the firings of published workflows. It implements ticks.Selections.
type Firings struct {
	Publisher
	Role  firings.Store // nil = the store has no business tables
	Fired chan struct{} // receives a value when there may be an open firing
}

// Fire opens the firing of a schedule at a tick. The schedule must have a select block. Package
// ticks has checked this in the same definition: its id is Row.ID, and a stored definition never
// changes.
func (s Firings) Fire(ctx context.Context, r schedules.Row, tick, before time.Time) error {
	sel, _, err := s.Selection(ctx, r)
	if err != nil {
		return err
	}
	f := firings.Firing{Workflow: r.Workflow, Schedule: r.Name, Tick: tick, WorkflowID: r.ID, By: Starter, From: before}
	f.Runs = selects.Begin(&f)
	_, err = s.Role.Fire(ctx, f, sel.Strategy == selection.Window)
	if err == nil {
		wait.Wake(s.Fired)
	}
	return err
}

// Open reports whether the firing of a schedule at a tick has not ended.
func (s Firings) Open(ctx context.Context, r schedules.Row, tick time.Time) (bool, error) {
	f, err := s.Role.Find(ctx, r.Workflow, r.Name, tick)
	return f != nil && f.State == firings.Open, err
}

// Cancel ends the firing of a schedule at a tick.
func (s Firings) Cancel(ctx context.Context, r schedules.Row, tick time.Time, why string) error {
	f, err := s.Role.Find(ctx, r.Workflow, r.Name, tick)
	if err != nil || f == nil {
		return err
	}
	_, err = s.Role.Cancel(ctx, f.ID, why)
	return err
}

// FireEvent opens the firing of an event. If the store has no business tables, FireEvent returns an
// error and `refused` = true.
func (s Firings) FireEvent(ctx context.Context, f inbox.Firing) (refused bool, err error) {
	if s.Role == nil {
		return true, ErrNoSelections
	}
	args, err := json.Marshal(f.Args)
	if err != nil || f.Args == nil {
		args = nil
	}
	open := firings.Firing{Workflow: f.Workflow, Schedule: f.Block, Event: f.Event, Tick: f.At, WorkflowID: f.Definition, By: f.By, Args: args}
	open.Runs = selects.Begin(&open)
	_, err = s.Role.Fire(ctx, open, false)
	if err == nil {
		wait.Wake(s.Fired)
	}
	return false, err
}

// A FiringRequest asks for a firing of a published schedule with a select block.
type FiringRequest struct {
	Schedule schedules.Row
	Tick     time.Time          // tick of the firing, in whole seconds
	Args     map[string]*string // values that replace arguments of the select block, by name; a nil value = NULL
	By       string             // person who asks; only for display
}

// OpenFiring opens the firing that a person asks for: see engine.OpenFiring.
func (c Publisher) OpenFiring(ctx context.Context, r FiringRequest) (bool, error) {
	role, ok := firings.Of(c.Store)
	if !ok {
		return false, ErrNoSelections
	}
	sel, schedule, err := c.Selection(ctx, r.Schedule)
	switch {
	case err != nil:
		return false, err
	case sel == nil:
		return false, fmt.Errorf("schedule %s.%s has no select block", r.Schedule.Workflow, r.Schedule.Name)
	}
	for name := range r.Args {
		if _, declared := sel.Args[name]; !declared {
			return false, fmt.Errorf("the selection of schedule %s.%s has no argument %q", r.Schedule.Workflow, r.Schedule.Name, name)
		}
	}
	args, err := json.Marshal(r.Args)
	if err != nil || r.Args == nil {
		args = nil
	}
	f := firings.Firing{Workflow: r.Schedule.Workflow, Schedule: r.Schedule.Name, Tick: r.Tick.UTC().Truncate(time.Second), WorkflowID: r.Schedule.ID, By: r.By, Args: args}
	f.From, f.Runs = ticks.Before(schedule, f.Tick), selects.Begin(&f)
	return role.Fire(ctx, f, sel.Strategy == selection.Window)
}
