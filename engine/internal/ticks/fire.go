package ticks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// passName is the name of the scan that starts the runs of schedules.
const passName = "schedules"

const (
	page       = 10_000          // largest number of schedules that one scan reads
	minPause   = time.Second     // shortest pause between two scans, for all engines together
	afterFault = 5 * time.Second // pause of a schedule whose run could not be started
)

// Config holds what a Firer needs. All fields except Sealer are required.
type Config struct {
	Store  schedules.Store
	Sealer crypt.Sealer
	Logger *slog.Logger
	Now    func() time.Time // returns the store's time
	// Pass reports whether this engine may make the named scan now (store.Passes).
	Pass func(ctx context.Context, name string, period time.Duration) (bool, error)
	// Definition returns the stored definition with a workflow.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	// Submit submits a run. If a run has the name already, it returns nil.
	Submit func(ctx context.Context, r Run) error
	// Open reports whether the run with the given public name exists and has not ended.
	Open func(ctx context.Context, name string) (bool, error)
	// Cancel asks the run with the given public name to turn back.
	Cancel func(ctx context.Context, name, reason string) error
	// Selections opens the firings of schedules with a select block. nil = the store has no business
	// tables, so such a schedule starts nothing.
	Selections Selections
	// MaxPause is the longest pause between two scans. After this time at the latest, the Firer finds
	// a schedule that was published during the pause.
	MaxPause time.Duration
}

// A Run is a run that a schedule starts.
type Run struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Name       string // public name, from RunName
	Trigger    string // from cron.Trigger
}

// A Firer starts the runs of due schedules. Only one goroutine may use it.
type Firer struct {
	cfg  Config
	kept map[store.WorkflowID]*dsl.Definition // definitions of the schedules of the last scan
	ill  map[string]time.Time                 // time before which a schedule is not tried again after an error
}

// New returns a Firer.
func New(cfg Config) *Firer {
	return &Firer{cfg: cfg, kept: map[store.WorkflowID]*dsl.Definition{}, ill: map[string]time.Time{}}
}

// Run starts runs until ctx ends. It logs an error of one schedule and works on the next schedule.
func (f *Firer) Run(ctx context.Context) {
	for {
		pause := f.cfg.MaxPause
		switch due, err := f.look(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.cfg.Logger.Warn("look for due schedules", "error", err)
		case !due.IsZero():
			pause = min(pause, max(due.Sub(f.cfg.Now()), minPause))
		}
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}

// look makes one scan if a schedule is due and Config.Pass allows the scan. It returns the earliest
// next tick of all schedules, as it was before the scan; zero = there is none.
func (f *Firer) look(ctx context.Context) (time.Time, error) {
	now := f.cfg.Now()
	due, err := f.cfg.Store.Schedules(ctx, store.Never, 1)
	if err != nil || len(due) == 0 {
		return time.Time{}, err
	}
	if due[0].Next.After(now) {
		return due[0].Next, nil
	}
	may, err := f.cfg.Pass(ctx, passName, minPause)
	if err != nil || !may {
		return due[0].Next, err
	}
	return due[0].Next, f.Scan(ctx)
}

// Scan starts the runs of all schedules that are due now.
func (f *Firer) Scan(ctx context.Context) error {
	now := f.cfg.Now()
	rows, err := f.cfg.Store.Schedules(ctx, now.Add(time.Microsecond), page)
	if err != nil {
		return fmt.Errorf("look for due schedules: %w", err)
	}
	kept := map[store.WorkflowID]*dsl.Definition{}
	for _, r := range rows {
		name := r.Workflow + "." + r.Name
		if now.Before(f.ill[name]) {
			continue
		}
		delete(f.ill, name)
		if err := f.one(ctx, r, now); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.ill[name] = now.Add(afterFault)
			f.cfg.Logger.Error("schedule starts no run", "schedule", name, "tick", r.Next, "again_in", afterFault, "error", err)
		}
		if def := f.kept[r.ID]; def != nil {
			kept[r.ID] = def
		}
	}
	f.kept = kept
	return nil
}

// one starts the run of one due schedule, and moves the schedule to its next tick.
func (f *Firer) one(ctx context.Context, r schedules.Row, now time.Time) error {
	def, err := f.definition(ctx, r.ID)
	if err != nil {
		return err
	}
	plan, err := planOf(def, r, f.cfg.Sealer)
	if err != nil {
		return err
	}
	open, err := f.open(ctx, plan, r)
	if err != nil {
		return err
	}
	step := Decide(plan.schedule(), r.Next, now, open)
	if step.Wait {
		return nil
	}
	if step.Cancel {
		if err := f.cancel(ctx, plan, r); err != nil {
			return err
		}
	}
	next := r
	next.Next = step.Next
	if next.Next.IsZero() {
		next.Next = store.Never
	}
	if !step.Tick.IsZero() {
		run := plan.run(step.Tick)
		if err := f.start(ctx, plan, r, run, step.Tick); err != nil {
			return err
		}
		failpoint.Hit("tick.submitted")
		next.Last, next.LastRun = step.Tick, run.Name
	}
	if _, err := f.cfg.Store.Move(ctx, next); err != nil {
		return fmt.Errorf("move schedule %s.%s: %w", r.Workflow, r.Name, err)
	}
	return nil
}

// definition returns a stored definition. It keeps the definitions of the last scan in memory.
func (f *Firer) definition(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	if def := f.kept[id]; def != nil {
		return def, nil
	}
	def, err := f.cfg.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	f.kept[id] = def
	return def, nil
}
