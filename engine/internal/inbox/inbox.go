// Package inbox turns events into runs.
//
// In: events from the role events.Store, and the published workflows. Out: submitted runs, firings
// of selections, goals that were reset, and quarantined events, each with a reason. All engines of
// a store work on the same events. No run is started twice for an event, for two reasons:
//
//   - An engine claims a batch of events before it works on them.
//   - The name of a run is computed from its workflow, the id of the event, and the key if the
//     event has a list of keys. A store accepts each name once. So if an engine dies after it has
//     submitted a run and before it has removed the event, the next engine finds the run, and
//     removes the event.
//
// An event may start a run for each key of a list. An engine works on one page of the keys, stores
// how far it has come, and ends its claim. So a long list does not hold up other events, and an
// engine that dies repeats one page at most.
//
// The source files form layers, lowest first: name; inbox; list.
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
	"github.com/saga-engine/engine/engine/internal/wait"
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

// Config holds what an Inbox needs. All fields except Sealer, Hints and NoWork are required.
type Config struct {
	Store     events.Store
	Published schedules.Store
	Sealer    crypt.Sealer
	Logger    *slog.Logger
	// Definition returns the stored definition with a workflow.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	// Submit submits a run. If a run has the name already, Submit returns nil. The result `refused`
	// is true if the run must not be submitted again.
	Submit func(ctx context.Context, r Run) (refused bool, err error)
	// SubmitAll submits the runs of a page of keys, and returns one result for each.
	SubmitAll func(ctx context.Context, runs []Run) []Result
	// Fire opens a firing of a selection. If the event has already opened a firing of the workflow,
	// Fire returns nil. The result `refused` is true if another try would be refused, too.
	Fire func(ctx context.Context, f Firing) (refused bool, err error)
	// Reset frees the key of a goal that was reached. It returns nil if no goal of the key is
	// reached. The result `refused` is true if the goal cannot be reset, and another try would be
	// refused, too.
	Reset func(ctx context.Context, r Reset) (refused bool, err error)
	// Hints receives a value when there may be events. It may be nil.
	Hints <-chan struct{}
	// NoWork reports whether the store has said a short time ago that there are no events.
	// While NoWork returns true, only a hint starts a scan, and the end of a pause does not.
	// nil = it is not known whether there are events.
	NoWork func() bool
	// MaxPause is the longest pause between two scans.
	MaxPause time.Duration
}

// A Run is the run that an event starts.
type Run struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Name       string // public name, from RunName or KeyRunName
	By         string // who sent the event
	Trigger    string // result of the function Trigger
}

// A Result says what became of a Run.
type Result struct {
	Lasting bool  // true = Err is about this run, so another try has the same error
	Err     error // nil = the run is in the store, or another run has its unique key
}

// A Firing is a firing of a selection that an event opens.
type Firing struct {
	Workflow   string
	Block      string // name of the on_event block
	Event      string // id of the event
	At         time.Time
	Definition store.WorkflowID
	Args       map[string]*string // values of the parameters; nil value = NULL
	By         string             // who sent the event
}

// A Reset frees the key of a goal that was reached.
type Reset struct {
	Workflow, Key string
	By            string // who sent the event
	Reason        string // reason for the reset: "event TYPE ID", as the function Trigger returns it
}

// An Inbox starts the runs of events. Only one goroutine may use it.
type Inbox struct {
	cfg Config

	more bool // true = the last scan has left a list unfinished, because the list has more pages

	mu   sync.Mutex                           // protects the fields below
	kept map[store.WorkflowID]*dsl.Definition // definitions of the last scan
	long longList                             // the last list of keys that has more than one page
}

// New returns an Inbox.
func New(cfg Config) *Inbox { return &Inbox{cfg: cfg, kept: map[store.WorkflowID]*dsl.Definition{}} }

// Run starts the runs of events until ctx ends. While there are no events, the pause between two
// scans doubles each time, up to Config.MaxPause. A hint ends the pause.
func (x *Inbox) Run(ctx context.Context) {
	wait.Loop{Least: leastScan, Most: x.cfg.MaxPause, Hints: x.cfg.Hints, NoWork: x.cfg.NoWork, Search: func(ctx context.Context) (int, error) {
		n, err := x.Scan(ctx)
		if n == page || x.more {
			return wait.More, err
		}
		return min(n, wait.Some), err
	}, Failed: func(err error) {
		x.cfg.Logger.Warn("start the runs of events", "error", err)
	}}.Run(ctx)
}

// Scan claims a batch of events, starts their runs, and returns how many events there were. If the
// runs of an event are in the store, the event is removed. A bad event is quarantined, and does not
// delay other events. If an event has a list of keys, this Scan works on one page of the list, and
// the next Scan of any engine works on the next page. If this engine cannot work on an event now,
// the event stays in the store until the claim of this engine is over. Then any engine can claim it
// again.
func (x *Inbox) Scan(ctx context.Context) (int, error) {
	x.more = false
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
		left  []int64 // events with unfinished lists
		errs  []error
	)
	slots := make(chan struct{}, atOnce)
	for _, e := range list {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			state, err := x.one(ctx, e, flows)
			mu.Lock()
			defer mu.Unlock()
			switch state {
			case finished:
				done = append(done, e.Seq)
			case unfinished:
				left = append(left, e.Seq)
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
	if len(left) > 0 {
		x.more = true
		errs = append(errs, x.cfg.Store.ReleaseEvents(ctx, left...))
	}
	return len(list), errors.Join(errs...)
}

// forget removes from memory the definitions that are not published any more.
func (x *Inbox) forget(flows []schedules.Workflow) {
	kept := map[store.WorkflowID]*dsl.Definition{}
	for _, f := range flows {
		if def := x.kept[f.ID]; def != nil {
			kept[f.ID] = def
		}
	}
	x.kept = kept
}

// These constants say what an engine has achieved with an event.
const (
	kept       = iota // the event stays claimed or is quarantined
	finished          // no workflow needs the event any more
	unfinished        // a list of the event has more keys
)

// one starts the runs of an event, but only one page of each list of keys. The result `state` is
// one of the constants `kept`, `finished` and `unfinished`. An error says that this engine
// could not finish the event now.
func (x *Inbox) one(ctx context.Context, e events.Event, flows []schedules.Workflow) (state int, err error) {
	done := slices.Clone(e.Done)
	var (
		faults []string // why the event starts no run
		errs   []error  // errors because of which it is not known yet whether the event starts a run
		wanted bool
		more   bool
	)
	for _, f := range flows {
		if !slices.Contains(f.Events, e.Type) {
			continue
		}
		wanted = true
		if slices.Contains(e.Done, f.Name) {
			continue
		}
		fault, left, err := x.start(ctx, &e, f)
		more = more || left
		switch {
		case left && err == nil:
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
	if len(errs) == 0 && len(faults) == 0 && !more {
		return finished, nil
	}
	why := ""
	if len(errs) == 0 && !more {
		why = strings.Join(faults, "\n")
	}
	if why != "" || len(done) > len(e.Done) {
		errs = append(errs, x.cfg.Store.KeepEvent(ctx, e.Seq, done, why))
		failpoint.Hit("event.kept")
	}
	if err := errors.Join(errs...); err != nil || !more {
		return kept, err
	}
	return unfinished, nil
}

// start does what the on_event or reset_on block of one workflow says: it starts a run or the runs
// of a page of keys, opens a firing, or resets a goal. If the event can never do that, the result
// `fault` says why. The result `more` is true if a list of keys is not finished. An error says that
// this engine could not do the work now.
func (x *Inbox) start(ctx context.Context, e *events.Event, f schedules.Workflow) (fault string, more bool, err error) {
	def, err := x.definition(ctx, f.ID)
	if err != nil {
		return "", false, err
	}
	wf := def.Workflow(f.Name)
	if wf == nil {
		return "the published definition has no such workflow; publish it again", false, nil
	}
	for _, on := range wf.OnEvents {
		if on.Type != e.Type {
			continue
		}
		switch data := dsl.NewValue(e.Data, nil, nil); {
		case on.Key != nil:
			key, err := on.Resets(e.ID, e.At, data)
			if err != nil {
				return err.Error(), false, nil
			}
			fault, err = x.reset(ctx, *e, f, key)
			return fault, false, err
		case on.Select != nil:
			args, starts, err := on.Fires(e.ID, e.At, data)
			if err != nil {
				return err.Error(), false, nil
			}
			if starts {
				fault, err = x.fire(ctx, e, f, on.Name, args)
			}
			return fault, false, err
		case on.ForEach != nil:
			l := &lister{x: x, e: e, f: f, def: def, on: on}
			return l.work(ctx)
		default:
			given, starts, err := on.Given(e.ID, e.At, data)
			if err != nil {
				return err.Error(), false, nil
			}
			if starts {
				fault, err = x.single(ctx, e, f, def, given)
			}
			return fault, false, err
		}
	}
	return "the published definition has no on_event or reset_on block for this type; publish it again", false, nil
}

// single starts the run of a workflow for an event, if the on_event block has no list of keys. The
// results mean the same as those of the method `start`.
func (x *Inbox) single(ctx context.Context, e *events.Event, f schedules.Workflow, def *dsl.Definition, given []dsl.Assignment) (fault string, err error) {
	b, err := x.binder(def.Workflow(f.Name), f)
	if err != nil {
		return "", err
	}
	run := Run{Definition: def, Workflow: f.Name, Name: RunName(f.Name, e.ID), By: e.By, Trigger: Trigger(e.Type, e.ID)}
	if run.Vars, fault = b.bind(given); fault != "" {
		return fault, nil
	}
	refused, err := x.cfg.Submit(ctx, run)
	if err != nil && refused {
		return err.Error(), nil
	}
	return "", err
}

// fire opens the firing of an event and a workflow. The results mean the same as those of the
// method `start`.
func (x *Inbox) fire(ctx context.Context, e *events.Event, f schedules.Workflow, block string, args map[string]*string) (fault string, err error) {
	refused, err := x.cfg.Fire(ctx, Firing{Workflow: f.Name, Block: block, Event: e.ID, At: e.At, Definition: f.ID, Args: args, By: e.By})
	failpoint.Hit("event.fired")
	if err != nil && refused {
		return err.Error(), nil
	}
	return "", err
}

// reset resets the goal of a key, because an event says so. An empty key means that the condition
// of the reset_on block is false. The results mean the same as those of the method `start`.
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

// A binder gives values to the variables of runs.
type binder struct {
	wf      *dsl.Workflow
	outside []dsl.Assignment // values of the variables outside of workflows
}

func (x *Inbox) binder(wf *dsl.Workflow, f schedules.Workflow) (*binder, error) {
	b := &binder{wf: wf}
	if len(f.Given) == 0 {
		return b, nil
	}
	var err error
	b.outside, err = journal.DecodeGiven(x.cfg.Sealer, wf, f.Given)
	return b, err
}

// bind returns the values of all variables of a run. The result `fault` says why the run cannot
// have the given values.
func (b *binder) bind(given []dsl.Assignment) (vars dsl.Value, fault string) {
	for _, a := range given {
		for _, v := range b.wf.Variables {
			if v.Name == a.Name && v.Sensitive {
				return dsl.Value{}, fmt.Sprintf("variable %q is sensitive, and a store keeps the data of events in clear", v.Name)
			}
		}
	}
	bound, diags := b.wf.Bind(append(slices.Clone(b.outside), given...))
	if diags.HasErrors() {
		return dsl.Value{}, fmt.Sprint(diags.Err())
	}
	return bound, ""
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
