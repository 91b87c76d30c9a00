package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// MaxBackfill is the largest number of ticks that one call of Backfill accepts.
const MaxBackfill = 10_000

// Backfill submits one run for each tick of a schedule in a time range. A tick at the time `from`
// is in the range, a tick at the time `to` is not. The ticks may be in the past. A tick whose run
// exists already starts no second run: its result has Exists set. For a schedule with a select
// block, Backfill opens a firing for each tick, and the names in the results are names of firings.
// Backfill ignores Overlap and CatchUp of the schedule, and does not change its next tick. The runs
// have no owner, so that engines on the store claim them. Backfill uses the same fields of cfg as
// EnqueueAll, and returns one result for each tick. If the range has more than MaxBackfill ticks,
// Backfill returns an error and submits nothing.
func Backfill(ctx context.Context, cfg Config, row schedules.Row, from, to time.Time) ([]Enqueued, error) {
	def, err := journal.NewDefinitions(cfg.Store, cfg.Sealer).Definition(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	runs, err := ticks.Between(def, row, cfg.Sealer, from, to, MaxBackfill)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	sel, _, err := selectionOf(ctx, cfg, row)
	if err != nil {
		return nil, err
	}
	if sel != nil {
		return backfillSelection(ctx, cfg, row, runs)
	}
	var all []submit.Request
	for _, r := range runs {
		all = append(all, submit.Request{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: starter, Trigger: r.Trigger, Kind: naming.BySchedule})
	}
	return enqueueAll(ctx, cfg, slices.Clip(all))
}

// backfillSelection opens one firing for each tick of a schedule with a select block.
func backfillSelection(ctx context.Context, cfg Config, row schedules.Row, runs []ticks.Run) ([]Enqueued, error) {
	var out []Enqueued
	for _, r := range runs {
		_, tick, _ := cron.TickOf(r.Trigger)
		added, err := OpenFiring(ctx, cfg, FiringRequest{Schedule: row, Tick: tick, By: starter})
		if err != nil {
			return out, err
		}
		out = append(out, Enqueued{Submitted: store.Submitted{Name: r.Name, Exists: !added}})
	}
	return out, nil
}
