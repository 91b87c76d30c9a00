package ticks

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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
	chunk      = 2_000           // largest number of schedules whose runs start at the same time, and that move in one commit
	minPause   = time.Second     // shortest pause between two scans, for all engines together
	afterFault = 5 * time.Second // pause of a schedule whose run could not be started
)

// Config holds what a Firer needs. All fields except Sealer, Selections, Hints and NoWork are
// required. Several goroutines call the functions at the same time.
type Config struct {
	Store  schedules.Store
	Sealer crypt.Sealer
	Logger *slog.Logger
	Now    func() time.Time // returns the store's time
	// Pass reports whether this engine may make the named scan now (store.Passes).
	Pass func(ctx context.Context, name string, period time.Duration) (bool, error)
	// Definition returns the stored definition that contains the workflow with this id.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	// Submit submits a run. If there is a run with the same name already, Submit returns nil.
	Submit func(ctx context.Context, r Run) error
	// Open reports whether the run with the given public name exists and has not ended.
	Open func(ctx context.Context, name string) (bool, error)
	// Cancel asks the run with the given public name to turn back.
	Cancel func(ctx context.Context, name, reason string) error
	// Selections opens the firings of schedules with a select block. nil = the store has no
	// business tables, so such a schedule starts nothing.
	Selections Selections
	// Hints receives a value when a schedule may be due; nil = never.
	Hints <-chan struct{}
	// NoWork reports whether the store has said a short time ago that no schedule is due. When it
	// returns true at the end of a pause, no scan starts, and the next pause begins, unless the
	// next known tick is near. A hint ends the pause in any case. If NoWork is nil, each pause ends
	// with a scan.
	NoWork func() bool
	// MaxPause is the longest pause between two scans, unless NoWork makes the pause longer. A
	// schedule may be published during a pause. Without hints, the Firer finds this schedule only
	// when the pause is over.
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
	cfg         Config
	failedUntil map[string]time.Time // time before which a schedule is not tried again after an error

	mu   sync.Mutex                           // protects the field below
	kept map[store.WorkflowID]*dsl.Definition // definitions of the schedules of the last scan
}

// New returns a Firer.
func New(cfg Config) *Firer {
	return &Firer{cfg: cfg, kept: map[store.WorkflowID]*dsl.Definition{}, failedUntil: map[string]time.Time{}}
}

// Run starts the runs of schedules until ctx ends. After an error of one schedule, it logs the
// error and works on the next schedule.
func (f *Firer) Run(ctx context.Context) {
	for {
		due, err := f.scanDue(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.cfg.Logger.Warn("look for due schedules", "error", err)
		}
		if f.rest(ctx, due, err == nil) != nil {
			return
		}
	}
}

// rest waits until a schedule may be due. The parameter `due` is the next known tick; zero = no
// tick is known. The wait ends after a hint, at this tick, or when Config.MaxPause has passed. But
// if Config.NoWork returns true when Config.MaxPause has passed, and the tick is not near, the
// pause begins again. If the parameter `known` is false, rest does not call Config.NoWork.
func (f *Firer) rest(ctx context.Context, due time.Time, known bool) error {
	pause := func() time.Duration {
		if due.IsZero() {
			return f.cfg.MaxPause
		}
		return min(f.cfg.MaxPause, max(due.Sub(f.cfg.Now()), minPause))
	}
	_, err := wait.Idle(ctx, pause(), f.cfg.Hints, func() bool {
		return known && f.cfg.NoWork != nil && f.cfg.NoWork() && pause() == f.cfg.MaxPause
	})
	return err
}

// scanDue makes one scan if a schedule is due and Config.Pass allows the scan. It returns the
// earliest of the next ticks of all schedules; zero = there is none. It reads this tick before the
// scan, so the tick may be in the past.
func (f *Firer) scanDue(ctx context.Context) (time.Time, error) {
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

// Scan starts the runs of all schedules that are due now. One commit for each schedule would be
// slow if thousands have the same tick. So Scan starts many runs at the same time, and then moves
// their schedules together.
func (f *Firer) Scan(ctx context.Context) error {
	now := f.cfg.Now()
	rows, err := f.cfg.Store.Schedules(ctx, now.Add(time.Microsecond), page)
	if err != nil {
		return fmt.Errorf("look for due schedules: %w", err)
	}
	for part := range slices.Chunk(rows, chunk) {
		if err := f.some(ctx, part, now); err != nil {
			return err
		}
	}
	f.forget(rows)
	return nil
}

// forget removes from memory the definitions that the given schedules do not use.
func (f *Firer) forget(rows []schedules.Row) {
	kept := map[store.WorkflowID]*dsl.Definition{}
	for _, r := range rows {
		if def := f.kept[r.ID]; def != nil {
			kept[r.ID] = def
		}
	}
	f.kept = kept
}

// A decision says what a schedule does now.
type decision struct {
	next    schedules.Row // the schedule with its next tick
	moves   bool          // the caller must store the field `next`
	started bool          // the run of a tick is in the store
	err     error
}

// some starts the runs of several due schedules, and moves the schedules to their next ticks. It
// leaves out a schedule that had an error a short time ago.
func (f *Firer) some(ctx context.Context, rows []schedules.Row, now time.Time) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r schedules.Row) bool { return now.Before(f.failedUntil[r.Workflow+"."+r.Name]) })
	done := make([]decision, len(rows))
	var group sync.WaitGroup
	for i, r := range rows {
		group.Go(func() { done[i] = f.one(ctx, r, now) })
	}
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var moves []schedules.Row
	started := false
	for i, d := range done {
		name := rows[i].Workflow + "." + rows[i].Name
		delete(f.failedUntil, name)
		if d.err != nil {
			f.failedUntil[name] = now.Add(afterFault)
			f.cfg.Logger.Error("schedule starts no run", "schedule", name, "tick", rows[i].Next, "again_in", afterFault, "error", d.err)
			continue
		}
		if started = started || d.started; d.moves {
			moves = append(moves, d.next)
		}
	}
	if started {
		failpoint.Hit("tick.submitted")
	}
	if len(moves) == 0 {
		return nil
	}
	if _, err := f.cfg.Store.Move(ctx, moves...); err != nil {
		return fmt.Errorf("move schedules to their next ticks: %w", err)
	}
	failpoint.Hit("tick.moved")
	return nil
}

// one starts the run of one due schedule, or opens its firing, as Decide says. The result holds the
// next tick of the schedule. If its field `moves` is true, the caller must store this tick.
func (f *Firer) one(ctx context.Context, r schedules.Row, now time.Time) decision {
	def, err := f.definition(ctx, r.ID)
	if err != nil {
		return decision{err: err}
	}
	plan, err := planOf(def, r, f.cfg.Sealer)
	if err != nil {
		return decision{err: err}
	}
	open, err := f.open(ctx, plan, r)
	if err != nil {
		return decision{err: err}
	}
	step := Decide(plan.schedule(), r.Next, now, open)
	if step.Wait {
		return decision{}
	}
	if step.Cancel {
		if err := f.cancel(ctx, plan, r); err != nil {
			return decision{err: err}
		}
	}
	out := decision{next: r, moves: true}
	out.next.Next = step.Next
	if step.Next.IsZero() {
		out.next.Next = store.Never
	}
	if !step.Tick.IsZero() {
		run := plan.run(step.Tick)
		if err := f.start(ctx, plan, r, run, step.Tick); err != nil {
			return decision{err: err}
		}
		out.started, out.next.Last, out.next.LastRun = true, step.Tick, run.Name
	}
	return out
}

// definition returns a stored definition. It keeps the definitions of the last scan in memory.
func (f *Firer) definition(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
