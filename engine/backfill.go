package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// MaxBackfill is the largest number of ticks of one call of Backfill.
const MaxBackfill = 10_000

// Backfill accepts the runs of the ticks of a schedule from one time up to another, the second
// excluded. The ticks may be in the past. A tick whose run exists already starts no second run: its
// result has Exists set. Overlap and CatchUp of the schedule do not matter, and its next tick stays
// the same. The runs have no owner; engines on the store claim them. Backfill uses the Config as
// EnqueueAll does, and returns one result for each tick.
func Backfill(ctx context.Context, cfg Config, row schedules.Row, from, to time.Time) ([]Enqueued, error) {
	def, err := journal.NewDefinitions(cfg.Store, cfg.Sealer).Definition(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	runs, err := ticks.Between(def, row, cfg.Sealer, from, to, MaxBackfill)
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	var all []Submission
	for _, r := range runs {
		all = append(all, Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: starter, trigger: r.Trigger})
	}
	return EnqueueAll(ctx, cfg, slices.Clip(all))
}
