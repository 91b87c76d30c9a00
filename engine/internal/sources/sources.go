package sources

import (
	"context"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/internal/intake"
	"github.com/saga-engine/engine/engine/internal/publish"
	"github.com/saga-engine/engine/engine/internal/selects"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/ticks"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/goals"
	storeintake "github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// selectPause is the longest pause before an engine searches for open firings again.
const selectPause = 5 * time.Second

// Roles are the roles of a store from which runs start; nil = the store does not have this role.
type Roles struct {
	Schedules schedules.Store
	Intake    storeintake.Store // submissions of other programs
	Events    events.Store      // sent events
	Firings   firings.Store     // firings of selections, which read business tables
	Goals     goals.Keeper
}

// RolesOf returns the roles that a store has.
func RolesOf(s store.Store) (r Roles) {
	r.Schedules, _ = schedules.Of(s)
	r.Intake, _ = storeintake.Of(s)
	r.Events, _ = events.Of(s)
	r.Firings, _ = firings.Of(s)
	r.Goals, _ = goals.Of(s)
	return r
}

// Config holds the parameters of New.
type Config struct {
	Store   store.Store
	Roles   Roles
	Sealer  crypt.Sealer
	Logger  *slog.Logger
	Address string // address of this engine; only for display
	Lease   time.Duration
	MaxScan time.Duration // longest pause between two looks into the store
	Defs    *journal.Definitions
	Now     func() time.Time // returns the store's time
	// Submit submits a run of which this engine becomes the owner.
	Submit    func(ctx context.Context, r submit.Request) (store.Submitted, error)
	SubmitAll SubmitAllFunc
	Idle      *IdleHint
}

// Sources are the sources from which an engine starts runs.
type Sources struct {
	cfg Config
	all store.Full // cfg.Store with all its roles
	// Each channel receives a value when there may be work of one source.
	due, submitted, sent, fired chan struct{}
}

// New returns Sources. They start no run before the method Start is called.
func New(cfg Config) *Sources {
	hints := func() chan struct{} { return make(chan struct{}, 1) }
	s := &Sources{cfg: cfg, all: store.Complete(cfg.Store), due: hints(), submitted: hints(), sent: hints(), fired: hints()}
	cfg.Idle.Wakes(s.Hinted, func() { wait.Wake(s.due) })
	return s
}

// Hinted wakes the goroutines that start runs for submissions, sent events and firings.
func (s *Sources) Hinted() {
	wait.Wake(s.submitted)
	wait.Wake(s.sent)
	wait.Wake(s.fired)
}

// Start starts one goroutine for each source that the store has. The goroutines start runs until
// ctx ends. Each goroutine closes one of the returned channels when it ends.
func (s *Sources) Start(ctx context.Context) (ended []<-chan struct{}) {
	start := func(run func(context.Context)) {
		done := make(chan struct{})
		ended = append(ended, done)
		go func() {
			defer close(done)
			run(ctx)
		}()
	}
	roles := s.cfg.Roles
	if roles.Schedules != nil {
		start(s.ofSchedules().Run)
	}
	if roles.Intake != nil {
		start(s.ofPrograms().Run)
	}
	if roles.Firings != nil {
		start(s.ofSelections().Run)
	}
	if roles.Events != nil && roles.Schedules != nil {
		start(s.ofEvents().Run)
	}
	return ended
}

// openings returns the object that opens the firings of schedules and events.
func (s *Sources) openings() publish.Firings {
	return publish.Firings{
		Publisher: publish.Publisher{Store: s.cfg.Store, Sealer: s.cfg.Sealer}, Role: s.cfg.Roles.Firings, Fired: s.fired,
	}
}

// ofSchedules returns the object that starts the runs of schedules.
func (s *Sources) ofSchedules() *ticks.Firer {
	cfg := ticks.Config{
		Store: s.cfg.Roles.Schedules, Sealer: s.cfg.Sealer, Logger: s.cfg.Logger, Now: s.cfg.Now, Pass: s.all.Pass,
		Definition: s.cfg.Defs.Shared, Hints: s.due, NoWork: s.cfg.Idle.NoWork, MaxPause: s.cfg.MaxScan,
		Submit: s.submitTick, Open: s.openTick, Cancel: s.cancelTick,
	}
	if s.cfg.Roles.Firings != nil {
		cfg.Selections = s.openings()
	}
	return ticks.New(cfg)
}

// ofPrograms returns the object that turns submissions of other programs into runs.
func (s *Sources) ofPrograms() *intake.Intake {
	return intake.New(intake.Config{
		Store: s.cfg.Roles.Intake, Sealer: s.cfg.Sealer, Logger: s.cfg.Logger, Pass: s.all.Pass,
		Definition: s.cfg.Defs.Shared, Hints: s.submitted, NoWork: s.cfg.Idle.NoWork, MaxPause: s.cfg.MaxScan,
		Submit: s.submitOfProgram,
	})
}

// ofSelections returns the object that works on the firings of selections.
func (s *Sources) ofSelections() *selects.Worker {
	return selects.New(selects.Config{
		Store: s.cfg.Roles.Firings, Sealer: s.cfg.Sealer, Logger: s.cfg.Logger, Holder: s.cfg.Address, Lease: s.cfg.Lease,
		Definition: s.cfg.Defs.Shared, Submit: Rows(s.cfg.SubmitAll), Hints: s.fired, NoWork: s.cfg.Idle.NoWork, MaxPause: min(s.cfg.MaxScan, selectPause),
	})
}

// ofEvents returns the object that starts the runs of sent events.
func (s *Sources) ofEvents() *inbox.Inbox {
	return inbox.New(inbox.Config{
		Store: s.cfg.Roles.Events, Published: s.cfg.Roles.Schedules, Sealer: s.cfg.Sealer, Logger: s.cfg.Logger,
		Definition: s.cfg.Defs.Shared, Hints: s.sent, NoWork: s.cfg.Idle.NoWork, MaxPause: s.cfg.MaxScan,
		Submit: s.submitOfEvent, SubmitAll: submitKeys(s.cfg.SubmitAll), Fire: s.openings().FireEvent, Reset: s.resetGoal,
	})
}
