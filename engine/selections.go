package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// ErrNoSelections says that the store has no business tables, so a select block cannot read them.
var ErrNoSelections = errors.New("engine: a select block reads business tables of the same PostgreSQL database, and this store has none; use a state in PostgreSQL (--dsn)")

// selectPause is the longest pause before an engine searches for open firings again.
const selectPause = 5 * time.Second

// startSelects starts a goroutine that works on the firings of selections until ctx ends. The
// goroutine closes the result when it ends. startSelects starts no goroutine if the store has no
// business tables, or if the engine works only on its own runs. Then the result is closed already.
func (n ticker) startSelects(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if n.firings == nil || n.cfg.Options.OnlyOwnRuns {
		close(done)
		return done
	}
	w := selects.New(selects.Config{
		Store: n.firings, Sealer: n.cfg.Sealer, Logger: n.cfg.Logger, Holder: n.cfg.Options.Address, Lease: n.cfg.Options.Lease,
		Definition: n.shared.Defs.Shared, Submit: submitRows(n.cfg), Hints: n.fired, NoWork: n.quiet.is, MaxPause: min(n.cfg.Options.MaxScan, selectPause),
	})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return done
}

// submitRows returns the function that submits the runs of rows. The runs have no owner, so that all
// engines share them.
func submitRows(cfg Config) selects.SubmitFunc {
	return func(ctx context.Context, runs []selects.Run) []selects.Result {
		all := make([]Submission, len(runs))
		for i, r := range runs {
			all[i] = Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, trigger: r.Trigger, kind: naming.BySelection}
		}
		e := &enqueuer{cfg: cfg.withDefaults(), all: all, out: make([]Enqueued, len(all))}
		return e.page(ctx)
	}
}

// page submits a page of runs, and returns one result for each.
func (e *enqueuer) page(ctx context.Context) []selects.Result {
	why, left := e.enqueue(ctx)
	out := make([]selects.Result, len(e.out))
	for i, o := range e.out {
		out[i] = selects.Result{Name: o.Name, Exists: o.Exists, Err: o.Err}
		switch {
		case o.Err == nil && o.Run == 0: // the submission was not tried
			out[i].Err = cmp.Or(why, left, ctx.Err())
		case o.Err != nil:
			// If the run may be stored (o.Run is not 0), the error is not lasting. Then the page is read
			// again, and the next try finds the run by its name.
			out[i].Refused = errors.Is(o.Err, naming.ErrFull)
			out[i].Lasting = o.Run == 0 && refused(ctx, o.Err)
		}
	}
	return out
}

// submitKeys returns the function that submits the runs of a page of keys of an event. The runs have no
// owner, so that all engines share them.
func submitKeys(cfg Config) func(ctx context.Context, runs []inbox.Run) []inbox.Result {
	return func(ctx context.Context, runs []inbox.Run) []inbox.Result {
		all := make([]Submission, len(runs))
		for i, r := range runs {
			all[i] = Submission{Definition: r.Definition, Workflow: r.Workflow, Vars: r.Vars, Name: r.Name, By: r.By, trigger: r.Trigger, kind: naming.ByEvent}
		}
		e := &enqueuer{cfg: cfg.withDefaults(), all: all, out: make([]Enqueued, len(all))}
		out := make([]inbox.Result, len(runs))
		for i, res := range e.page(ctx) {
			out[i] = inbox.Result{Lasting: res.Lasting || res.Refused, Err: res.Err}
		}
		return out
	}
}

// fireEvent opens the firing of an event. The result `refused` is true if the store has no business
// tables.
func (n ticker) fireEvent(ctx context.Context, f inbox.Firing) (refused bool, err error) {
	if n.firings == nil {
		return true, ErrNoSelections
	}
	args, err := json.Marshal(f.Args)
	if err != nil || f.Args == nil {
		args = nil
	}
	open := firings.Firing{Workflow: f.Workflow, Schedule: f.Block, Event: f.Event, Tick: f.At, WorkflowID: f.Definition, By: f.By, Args: args}
	open.Runs = selects.Begin(&open)
	_, err = n.firings.Fire(ctx, open, false)
	if err == nil {
		wait.Wake(n.fired)
	}
	return false, err
}

// selections returns the object that opens and ends the firings of schedules; nil = the store has
// no business tables.
func (n ticker) selections() ticks.Selections {
	if n.firings == nil {
		return nil
	}
	return selector{n.firings, n.cfg, n.fired}
}

// A selector opens the firings of schedules.
type selector struct {
	role  firings.Store
	cfg   Config
	fired chan struct{}
}

// Fire opens the firing of a schedule at a tick.
func (s selector) Fire(ctx context.Context, r schedules.Row, tick, before time.Time) error {
	sel, _, err := selectionOf(ctx, s.cfg, r)
	if err != nil {
		return err
	}
	f := firings.Firing{Workflow: r.Workflow, Schedule: r.Name, Tick: tick, WorkflowID: r.ID, By: starter, From: before}
	f.Runs = selects.Begin(&f)
	_, err = s.role.Fire(ctx, f, sel.Strategy == selection.Window)
	if err == nil {
		wait.Wake(s.fired)
	}
	return err
}

// Open reports whether the firing of a schedule at a tick has not ended.
func (s selector) Open(ctx context.Context, r schedules.Row, tick time.Time) (bool, error) {
	f, err := s.role.Find(ctx, r.Workflow, r.Name, tick)
	return f != nil && f.State == firings.Open, err
}

// Cancel ends the firing of a schedule at a tick.
func (s selector) Cancel(ctx context.Context, r schedules.Row, tick time.Time, why string) error {
	f, err := s.role.Find(ctx, r.Workflow, r.Name, tick)
	if err != nil || f == nil {
		return err
	}
	_, err = s.role.Cancel(ctx, f.ID, why)
	return err
}

// selectionOf returns the selection of a published schedule, and the schedule. The selection is nil if
// the schedule has no select block.
func selectionOf(ctx context.Context, cfg Config, r schedules.Row) (*selection.Selection, *cron.Schedule, error) {
	def, err := journal.NewDefinitions(cfg.Store, cfg.Sealer).Definition(ctx, r.ID)
	if err != nil {
		return nil, nil, err
	}
	if wf := def.Workflow(r.Workflow); wf != nil {
		for _, s := range wf.Schedules {
			switch {
			case s.Name != r.Name:
			case s.Select == nil:
				return nil, &s.Schedule, nil
			default:
				return &s.Select.Selection, &s.Schedule, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("the published definition of %q has no schedule %q; publish it again", r.Workflow, r.Name)
}

// checkSelections returns an error if the database of the store does not accept the query of a
// selection, or if the query does not return a column that the selection uses.
func checkSelections(ctx context.Context, st store.Store, wf *dsl.Workflow) error {
	for _, s := range wf.Schedules {
		if s.Select == nil {
			continue
		}
		if err := checkSelection(ctx, st, &s.Select.Selection); err != nil {
			return &SelectionError{Workflow: wf.Name, Schedule: s.Name, Err: err}
		}
	}
	for _, on := range wf.OnEvents {
		if on.Select == nil {
			continue
		}
		if err := checkSelection(ctx, st, &on.Select.Selection); err != nil {
			return &SelectionError{Workflow: wf.Name, OnEvent: on.Name, Err: err}
		}
	}
	return nil
}

// checkSelection does the work of checkSelections for one select block.
func checkSelection(ctx context.Context, st store.Store, s *selection.Selection) error {
	role, ok := firings.Of(st)
	if !ok {
		return ErrNoSelections
	}
	q, err := selects.QueryOf(s, nil)
	if err != nil {
		return err
	}
	columns, err := role.Columns(ctx, q)
	if err != nil {
		return err
	}
	for _, c := range s.Columns {
		if !slices.Contains(columns, c) {
			return fmt.Errorf("the query returns no column %q, which the block uses; it returns %s", c, strings.Join(columns, ", "))
		}
	}
	return nil
}

// A SelectionError says that a workflow cannot be published, because the database does not accept the
// query of a selection.
type SelectionError struct {
	Workflow string
	Schedule string // "" = the select block is in an on_event block
	OnEvent  string // name of the on_event block; "" = the select block is in a schedule
	Err      error
}

// Error names the block and the reason.
func (e *SelectionError) Error() string {
	if e.OnEvent != "" {
		return fmt.Sprintf("selection of on_event %q of workflow %q: %v", e.OnEvent, e.Workflow, e.Err)
	}
	return fmt.Sprintf("selection of schedule %q of workflow %q: %v", e.Schedule, e.Workflow, e.Err)
}

// Unwrap returns the reason.
func (e *SelectionError) Unwrap() error { return e.Err }

// A FiringRequest asks for a firing of a published schedule with a select block.
type FiringRequest struct {
	Schedule schedules.Row
	Tick     time.Time          // tick of the firing, in whole seconds
	Args     map[string]*string // values that replace arguments of the select block, by name; a nil value = NULL
	By       string             // person who asks; only for display
}

// OpenFiring opens a firing of a published schedule. Then engines read the rows of the firing and
// start the runs. OpenFiring returns false if the schedule has a firing at this tick already, or if
// another firing covers the interval of this tick. Of cfg, only the fields Store and Sealer are
// used.
func OpenFiring(ctx context.Context, cfg Config, r FiringRequest) (bool, error) {
	role, ok := firings.Of(cfg.Store)
	if !ok {
		return false, ErrNoSelections
	}
	sel, schedule, err := selectionOf(ctx, cfg, r.Schedule)
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
	return selects.Retry(ctx, role, def, f, cfg.Sealer, list, submitRows(cfg.withDefaults()))
}
