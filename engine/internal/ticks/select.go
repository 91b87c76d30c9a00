package ticks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// Selections opens and ends the firings of schedules with a select block.
type Selections interface {
	// Fire opens the firing of a schedule at a tick. The schedule must have a select block. The
	// parameter `before` is the previous tick; zero = there is none. If there is a firing of this
	// tick already, Fire returns nil.
	Fire(ctx context.Context, r schedules.Row, tick, before time.Time) error
	// Open reports whether the firing of a schedule at a tick has not ended.
	Open(ctx context.Context, r schedules.Row, tick time.Time) (bool, error)
	// Cancel ends the firing of a schedule at a tick.
	Cancel(ctx context.Context, r schedules.Row, tick time.Time, why string) error
}

// errNoSelections says that a schedule has a select block, and the store has no business tables.
var errNoSelections = errors.New("a select block needs a PostgreSQL database with the business tables; this store has none")

// selects reports whether a tick of the schedule opens a firing instead of starting a run.
func (p *plan) selects() bool { return p.wf.Schedules[p.i].Select != nil }

// Before returns the tick before a time; zero = there is none within about the last four years.
func Before(s *cron.Schedule, at time.Time) time.Time { return newest(s, at.Add(-time.Microsecond)) }

// open reports whether the run or the firing of the last tick has not ended.
func (f *Firer) open(ctx context.Context, p *plan, r schedules.Row) (bool, error) {
	switch {
	case r.LastRun == "":
		return false, nil
	case !p.selects():
		return f.cfg.Open(ctx, r.LastRun)
	case f.cfg.Selections == nil:
		return false, errNoSelections
	}
	return f.cfg.Selections.Open(ctx, r, r.Last)
}

// cancel ends the run or the firing of the last tick.
func (f *Firer) cancel(ctx context.Context, p *plan, r schedules.Row) (err error) {
	why := "the next tick of schedule " + r.Name + " has come"
	if p.selects() {
		err = f.cfg.Selections.Cancel(ctx, r, r.Last, why)
	} else {
		err = f.cfg.Cancel(ctx, r.LastRun, why)
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", r.LastRun, err)
	}
	return nil
}

// start starts the run of a tick. If the schedule has a select block, it opens the firing of the
// tick instead.
func (f *Firer) start(ctx context.Context, p *plan, r schedules.Row, run Run, tick time.Time) error {
	switch {
	case !p.selects():
		return f.cfg.Submit(ctx, run)
	case f.cfg.Selections == nil:
		return errNoSelections
	}
	return f.cfg.Selections.Fire(ctx, r, tick, Before(p.schedule(), tick))
}
