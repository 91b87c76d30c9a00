// Package inbox turns events into runs.
//
// In: events from the role events.Store, and the published workflows. Out: submitted runs, goals that
// were reset, and quarantined events with a reason. All engines of a store work on the same events. An event never
// starts two runs of a workflow, for two reasons:
//
//   - An engine claims a batch of events before it works on them.
//   - The name of a run is computed from its workflow and the id of the event, and a store accepts
//     each name once. So if an engine dies after it has submitted a run and before it has removed the
//     event, the next engine finds the run, and removes the event.
//
// The files form layers: name; inbox.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
)

const (
	page      = 500                    // largest number of events in one batch
	atOnce    = 100                    // largest number of events that are worked on at the same time
	leastScan = 100 * time.Millisecond // shortest pause; it follows a scan that has found events
	lease     = 30 * time.Second       // how long a batch belongs to one engine
)

// Config holds what an Inbox needs. All fields except Sealer and Hints are required.
type Config struct {
	Store     events.Store
	Published schedules.Store
	Sealer    crypt.Sealer
	Logger    *slog.Logger
	// Definition returns the stored definition with a workflow.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	// Submit submits a run. If a run has the name already, Submit returns nil. The result refused is
	// true if the run must not be submitted again.
	Submit func(ctx context.Context, r Run) (refused bool, err error)
	// Reset frees the key of a goal that was reached. It returns nil if no goal of the key is reached. The
	// result refused is true if the goal cannot be reset, and another try would be refused, too.
	Reset func(ctx context.Context, r Reset) (refused bool, err error)
	// Hints receives a value when there may be events. It may be nil.
	Hints <-chan struct{}
	// MaxPause is the longest pause between two scans.
	MaxPause time.Duration
}

// A Run is the run that an event starts.
type Run struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Name       string // public name, from RunName
	By         string // who sent the event
	Trigger    string // from Trigger
}

// A Reset frees the key of a goal that was reached.
type Reset struct {
	Workflow, Key string
	By            string // who sent the event
	Reason        string // from Trigger
}

// An Inbox starts the runs of events. Only one goroutine may use it.
type Inbox struct {
	cfg Config

	mu   sync.Mutex                           // protects following field
	kept map[store.WorkflowID]*dsl.Definition // definitions of the last scan
}

// New returns an Inbox.
func New(cfg Config) *Inbox { return &Inbox{cfg: cfg, kept: map[store.WorkflowID]*dsl.Definition{}} }

// Run starts the runs of events until ctx ends. While there are no events, the pause between two
// scans doubles each time, up to Config.MaxPause. A hint ends the pause.
func (x *Inbox) Run(ctx context.Context) {
	pause := leastScan
	for {
		n, err := x.Scan(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			x.cfg.Logger.Warn("start the runs of events", "error", err)
		}
		switch {
		case n == page && err == nil:
			continue // there may be more
		case n > 0 && err == nil:
			pause = leastScan
		default:
			pause = min(2*pause, x.cfg.MaxPause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-x.cfg.Hints:
			pause = leastScan
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Scan claims a batch of events, starts their runs, and returns how many events there were. An event
// whose runs are in the store is removed. A bad event is quarantined, and stops no other event. If
// this engine cannot work on an event now, the event stays in the store until its claim is over.
func (x *Inbox) Scan(ctx context.Context) (int, error) {
	list, err := x.cfg.Store.ClaimEvents(ctx, page, lease)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	failpoint.Hit("event.claimed")
	flows, err := x.cfg.Published.Published(ctx)
	if err != nil {
		return len(list), err
	}
	x.forget(flows)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		done  []int64
		errs  []error
	)
	slots := make(chan struct{}, atOnce)
	for _, e := range list {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			finished, err := x.one(ctx, e, flows)
			mu.Lock()
			defer mu.Unlock()
			if finished {
				done = append(done, e.Seq)
			}
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	failpoint.Hit("event.submitted")
	if len(done) > 0 {
		slices.Sort(done)
		if err := x.cfg.Store.RemoveEvents(ctx, done...); err != nil {
			errs = append(errs, err)
		}
	}
	failpoint.Hit("event.removed")
	return len(list), errors.Join(errs...)
}

// forget removes the definitions that are not published any more from memory.
func (x *Inbox) forget(flows []schedules.Workflow) {
	kept := map[store.WorkflowID]*dsl.Definition{}
	for _, f := range flows {
		if def := x.kept[f.ID]; def != nil {
			kept[f.ID] = def
		}
	}
	x.kept = kept
}

// one starts the runs of an event. The result finished is true if no workflow needs the event any
// more. An error says that this engine could not finish the event now.
func (x *Inbox) one(ctx context.Context, e events.Event, flows []schedules.Workflow) (finished bool, err error) {
	done := slices.Clone(e.Done)
	var (
		faults []string // why the event starts no run
		errs   []error  // why it is not known yet whether the event starts a run
		wanted bool
	)
	for _, f := range flows {
		if !slices.Contains(f.Events, e.Type) {
			continue
		}
		wanted = true
		if slices.Contains(e.Done, f.Name) {
			continue
		}
		fault, err := x.start(ctx, e, f)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("event %s, workflow %s: %w", e.ID, f.Name, err))
		case fault != "":
			faults = append(faults, "workflow "+f.Name+": "+fault)
		default:
			done = append(done, f.Name)
		}
	}
	if !wanted && len(e.Done) == 0 {
		faults = append(faults, fmt.Sprintf("no published workflow has an on_event or reset_on block for type %s", e.Type))
	}
	if len(errs) == 0 && len(faults) == 0 {
		return true, nil
	}
	why := ""
	if len(errs) == 0 {
		why = strings.Join(faults, "\n")
	}
	if why != "" || len(done) > len(e.Done) {
		errs = append(errs, x.cfg.Store.KeepEvent(ctx, e.Seq, done, why))
		failpoint.Hit("event.kept")
	}
	return false, errors.Join(errs...)
}

// start starts the run of an event and one workflow, if the condition of the on_event block is true.
// The result fault says why the event can never start this run. An error says that this engine
// cannot decide that now.
func (x *Inbox) start(ctx context.Context, e events.Event, f schedules.Workflow) (fault string, err error) {
	def, err := x.definition(ctx, f.ID)
	if err != nil {
		return "", err
	}
	wf := def.Workflow(f.Name)
	if wf == nil {
		return "the published definition has no such workflow; publish it again", nil
	}
	for _, on := range wf.OnEvents {
		if on.Type != e.Type {
			continue
		}
		if on.Key != nil {
			key, err := on.Resets(e.ID, e.At, dsl.NewValue(e.Data, nil, nil))
			if err != nil {
				return err.Error(), nil
			}
			return x.reset(ctx, e, f, key)
		}
		given, starts, err := on.Given(e.ID, e.At, dsl.NewValue(e.Data, nil, nil))
		if err != nil {
			return err.Error(), nil
		}
		if !starts {
			return "", nil
		}
		run := Run{Definition: def, Workflow: f.Name, Name: RunName(f.Name, e.ID), By: e.By, Trigger: Trigger(e.Type, e.ID)}
		if fault, err = x.bind(wf, f, given, &run.Vars); fault != "" || err != nil {
			return fault, err
		}
		refused, err := x.cfg.Submit(ctx, run)
		if err != nil && refused {
			return err.Error(), nil
		}
		return "", err
	}
	return "the published definition has no on_event or reset_on block for this type; publish it again", nil
}

// reset resets the goal of a key, because an event says so. An empty key means that the condition of
// the reset_on block is false. The results are those of start.
func (x *Inbox) reset(ctx context.Context, e events.Event, f schedules.Workflow, key string) (fault string, err error) {
	if key == "" {
		return "", nil
	}
	refused, err := x.cfg.Reset(ctx, Reset{Workflow: f.Name, Key: key, By: cmp.Or(e.By, "event"), Reason: Trigger(e.Type, e.ID)})
	if err != nil && refused {
		return err.Error(), nil
	}
	return "", err
}

// bind gives values to the variables of a run.
func (x *Inbox) bind(wf *dsl.Workflow, f schedules.Workflow, given []dsl.Assignment, vars *dsl.Value) (fault string, err error) {
	for _, a := range given {
		for _, v := range wf.Variables {
			if v.Name == a.Name && v.Sensitive {
				return fmt.Sprintf("variable %q is sensitive, and a store keeps the data of events in clear", v.Name), nil
			}
		}
	}
	var all []dsl.Assignment
	if len(f.Given) > 0 {
		if all, err = journal.DecodeGiven(x.cfg.Sealer, wf, f.Given); err != nil {
			return "", err
		}
	}
	bound, diags := wf.Bind(append(all, given...))
	if diags.HasErrors() {
		return fmt.Sprint(diags.Err()), nil
	}
	*vars = bound
	return "", nil
}

// definition returns a stored definition. It keeps the definitions of the last scan in memory.
func (x *Inbox) definition(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if def := x.kept[id]; def != nil {
		return def, nil
	}
	def, err := x.cfg.Definition(ctx, id)
	if err != nil {
		return nil, err
	}
	x.kept[id] = def
	return def, nil
}
