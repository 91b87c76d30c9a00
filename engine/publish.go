package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/internal/publish"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/sources"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// Errors of stores that lack a role.
var (
	// ErrNoSchedules says that the store does not keep schedules.
	ErrNoSchedules = publish.ErrNoSchedules
	// ErrNoSelections says that the store has no business tables, so a select block cannot read
	// them.
	ErrNoSelections = publish.ErrNoSelections
)

// A Publication asks the function Publish to publish workflows of a definition.
type Publication struct {
	Definition *dsl.Definition
	Workflows  []string // names of the workflows to publish; nil = all of the definition
	// Values of variables; the store keeps only those of variables outside of workflows.
	Assigned []dsl.Assignment
	By       string // person who publishes; only for display
}

// Publish stores a definition and publishes its workflows, in place of their former versions.
// Engines on the store start the runs of their schedules. A schedule that was published before
// keeps its last tick. If its timetable is unchanged, it also keeps its next tick. Publish needs no
// running engine and no agents, and uses only the fields Store and Sealer of cfg. It returns the
// rows of the schedules.
func Publish(ctx context.Context, cfg Config, p Publication) ([]schedules.Row, error) {
	return cfg.publisher().Publish(ctx, publish.Publication(p))
}

// publisher returns the Publisher, which publishes workflows and opens firings in the store.
func (c Config) publisher() publish.Publisher {
	return publish.Publisher{Store: c.Store, Sealer: c.Sealer}
}

// A FiringRequest asks for a firing of a published schedule with a select block.
type FiringRequest struct {
	Schedule schedules.Row
	Tick     time.Time // tick of the firing, in whole seconds
	// Values that replace arguments of the select block, by name; a nil value = NULL.
	Args map[string]*string
	By   string // person who asks; only for display
}

// OpenFiring opens a firing of a published schedule. After that, engines read the rows of the
// firing and start the runs. OpenFiring returns false if the schedule has a firing at this tick
// already, or if another firing covers the interval of this tick. Of cfg, only the fields Store and
// Sealer are used.
func OpenFiring(ctx context.Context, cfg Config, r FiringRequest) (bool, error) {
	return cfg.publisher().OpenFiring(ctx, publish.FiringRequest(r))
}

// A Retried says what a retry has done with a quarantined row.
type Retried = selects.Retried

// RetryQuarantined reads quarantined rows of a firing again and starts their runs. It uses the same
// fields of cfg as EnqueueAll.
func RetryQuarantined(ctx context.Context, cfg Config, f *firings.Firing, list []firings.Bad) ([]Retried, error) {
	role, ok := firings.Of(cfg.Store)
	if !ok {
		return nil, ErrNoSelections
	}
	def, err := journal.NewDefinitions(cfg.Store, cfg.Sealer).Definition(ctx, f.WorkflowID)
	if err != nil {
		return nil, err
	}
	return selects.Retry(ctx, role, def, f, cfg.Sealer, list, sources.Rows(cfg.withDefaults().submitAll))
}

// MaxBackfill is the largest number of ticks that one call of Backfill accepts.
const MaxBackfill = 10_000

// Backfill submits one run for each tick of a schedule in a time range. A tick at the time `from`
// is in the range, a tick at the time `to` is not. The ticks may be in the past. A tick whose run
// exists already starts no second run: its result has Exists set. For a schedule with a select
// block, Backfill opens a firing for each tick, and the names in the results are names of firings.
// Backfill ignores Overlap and CatchUp of the schedule, and does not change its next tick. The runs
// have no owner, so that engines on the store claim them. Backfill uses the same fields of cfg as
// EnqueueAll, and returns one result for each tick. If a firing cannot be opened, Backfill opens no
// further firing, and returns the results until then with the error. If the range has more than
// MaxBackfill ticks, Backfill returns an error and submits nothing.
func Backfill(ctx context.Context, cfg Config, row schedules.Row, from, to time.Time) ([]Enqueued, error) {
	def, err := journal.NewDefinitions(cfg.Store, cfg.Sealer).Definition(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	runs, err := ticks.Between(def, row, cfg.Sealer, from, to, MaxBackfill)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	sel, _, err := cfg.publisher().Selection(ctx, row)
	if err != nil {
		return nil, err
	}
	if sel != nil {
		return backfillSelection(ctx, cfg, row, runs)
	}
	var all []submit.Request
	for _, r := range runs {
		all = append(all, submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: publish.Starter, Trigger: r.Trigger, Kind: naming.BySchedule})
	}
	return enqueueAll(ctx, cfg, slices.Clip(all))
}

// backfillSelection opens one firing for each tick of a schedule with a select block.
func backfillSelection(ctx context.Context, cfg Config, row schedules.Row, runs []ticks.Run) ([]Enqueued, error) {
	var out []Enqueued
	for _, r := range runs {
		_, tick, _ := cron.TickOf(r.Trigger)
		added, err := OpenFiring(ctx, cfg, FiringRequest{Schedule: row, Tick: tick, By: publish.Starter})
		if err != nil {
			return out, err
		}
		out = append(out, Enqueued{Submitted: store.Submitted{Name: r.Name, Exists: !added}})
	}
	return out, nil
}
