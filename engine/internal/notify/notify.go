// Package notify makes the notifications of runs.
//
// In: notices in the store. A notice says that a state of a run has to be announced. Out: one
// notification for each notify block that announces the state, and notices that are marked as
// announced. A notification is a run. This engine owns the notification if it can call the agent.
// If it cannot, the notification has no owner.
//
// The package reads journals and definitions, and writes first rows of notifications and marks of
// notices. It calls no agent. No second notification is made for a notice: the name of a
// notification follows from its notice, and a store accepts a name once. A notice that this engine
// cannot announce stays in the store for other engines.
package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/submit"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
)

// Trigger is the trigger of a notification: a run that announces a state of another run.
const Trigger = "notify"

const (
	noticeBatch    = 100 // largest number of notices that one read returns
	noticeParallel = 4   // largest number of notices that are announced at the same time; to announce one, a journal is read
)

// Config holds the parameters of New.
type Config struct {
	Store      store.Store
	Sealer     crypt.Sealer
	Logger     *slog.Logger
	Shared     *owner.Shared
	Maker      *submit.Maker // makes the first rows of notifications
	MaxValue   int           // largest size of the variables of a notification, in bytes
	MaxScan    time.Duration
	RetryStore time.Duration // pause after the store did not answer
}

// An Announcer makes the notifications for each notice in the store. A notification is a separate
// run that calls the agent. Its name follows from the notice, and a store accepts a name once. So
// no second notification is made if an engine ends before it has marked the notice as announced.
type Announcer struct {
	cfg Config

	mu sync.Mutex // protects the field below
	// The field `later` holds the notices that this engine could not announce. The value is the
	// time at which this engine tries the notice again. Another engine may be able to announce the
	// notice, for example because it has a key that this engine lacks.
	later map[notice.Notice]time.Time
}

// New returns an Announcer.
func New(cfg Config) *Announcer {
	return &Announcer{cfg: cfg, later: map[notice.Notice]time.Time{}}
}

// The type where holds what an Announcer needs to store notifications. Both fields belong to the
// present membership.
type where struct {
	runs *owner.Scheduler
	to   *commit.Committer
}

// Run announces notices until ctx ends. It looks for notices when a run of this engine has reached
// a state that has to be announced. It also looks after each full scan, because another engine may
// have ended before it announced a state.
func (a *Announcer) Run(ctx context.Context, runs *owner.Scheduler, to *commit.Committer) {
	keeper, ok := notice.Of(a.cfg.Store)
	if !ok || a.cfg.Shared.Idle != "" {
		return
	}
	wait.Wake(a.cfg.Shared.Notices) // an earlier engine may have left notices
	for {
		select {
		case <-a.cfg.Shared.Notices:
		case <-ctx.Done():
			return
		}
		err := a.all(ctx, where{runs, to}, keeper)
		if err == nil || ctx.Err() != nil {
			continue
		}
		a.cfg.Shared.Outage.Beside("announce states of runs", err)
		if wait.For(ctx, a.cfg.RetryStore) != nil {
			return
		}
		wait.Wake(a.cfg.Shared.Notices)
	}
}

// all announces the notices in the store. If this engine cannot read the run of a notice, it leaves
// the notice in the store, so that another engine can announce the state.
func (a *Announcer) all(ctx context.Context, w where, keeper notice.Keeper) error {
	var after notice.Notice
	for !a.cfg.Shared.Draining.Load() {
		open, err := keeper.Open(ctx, after, noticeBatch)
		if err != nil || len(open) == 0 {
			return err
		}
		done, err := a.batch(ctx, w, open)
		failpoint.Hit("notify.submitted")
		if err := errors.Join(err, keeper.Announced(ctx, done...)); err != nil {
			return err
		}
		if len(open) < noticeBatch {
			return nil
		}
		after = open[len(open)-1]
	}
	return nil
}

// batch announces notices, several at the same time. It returns the notices that are announced. The
// error holds only failures after which another try may succeed soon.
func (a *Announcer) batch(ctx context.Context, w where, open []notice.Notice) (done []notice.Notice, err error) {
	var wg sync.WaitGroup
	room := make(chan struct{}, noticeParallel)
	for _, n := range open {
		if a.waits(n) {
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			failed := guard.Do(func() error { return a.announce(ctx, w, n) })
			a.mu.Lock()
			defer a.mu.Unlock()
			var never *unsendable
			switch {
			case failed == nil:
				done = append(done, n)
			case ctx.Err() != nil:
			case journal.Lasting(failed), errors.As(failed, &never):
				a.later[n] = time.Now().Add(20 * a.cfg.MaxScan)
				a.cfg.Logger.Warn("a state of a run is not announced", "run", naming.RunName(n.Run), "state", n.State, "error", failed)
			default:
				err = errors.Join(err, failed)
			}
		})
	}
	wg.Wait()
	return done, err
}

// waits reports whether this engine failed to announce the notice a short time ago, and so does not
// try again yet.
func (a *Announcer) waits(n notice.Notice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, failed := a.later[n]
	if failed && time.Now().After(at) {
		delete(a.later, n)
		return false
	}
	return failed
}

// An unsendable error says that another try of this engine would fail, too.
type unsendable struct{ error }

// Unwrap returns the cause.
func (u *unsendable) Unwrap() error { return u.error }

// announce makes the notifications of one notice: one for each notify block that announces the
// state. It computes the run's state at the time when the run reached the announced state. So even
// if the run was moved later, the notify blocks of that time announce it.
func (a *Announcer) announce(ctx context.Context, w where, n notice.Notice) error {
	cfg, defs := a.cfg, a.cfg.Shared.Defs
	run, err := journal.Reader{Store: cfg.Store, Sealer: cfg.Sealer, Defs: defs}.LoadAt(ctx, n.Run, n.Seq)
	if err != nil {
		return err
	}
	blocks := run.Flow.Notifications(n.State)
	if len(blocks) == 0 {
		return nil
	}
	of, err := a.around(ctx, &run, blocks[0].Flow.Notifies)
	if err != nil {
		return err
	}
	for k, block := range blocks {
		vars, err := announced(of, &run, n.State, cfg.MaxValue, block.Variables)
		if err != nil {
			return &unsendable{err}
		}
		id, err := defs.Beside(ctx, run.Workflow(), block.Flow.Name)
		if err != nil {
			return err
		}
		st := owner.Start{Workflow: id, Flow: block.Flow, Names: naming.Names{Workflow: block.Flow.Name, Name: n.Name(run.Head.Name, k), Trigger: naming.ByNotification}}
		if st.Specs, err = a.cfg.Shared.Specs.Specs(block.Flow, vars); err != nil {
			return &unsendable{err}
		}
		if err := a.submit(ctx, w, st, vars); err != nil {
			return fmt.Errorf("announce that run %s is %s: %w", run.Head.Name, n.State, err)
		}
	}
	return nil
}

// A subject is the run that a notification names: its variables, and the values of run.* in the
// notify block.
type subject struct {
	vars dsl.Value
	info dsl.RunInfo
}

// around returns the run that a notification names. Usually this is the run in the parameter `run`.
// But people do not know the run of a group. So for such a run, around goes from parent to parent
// until it finds a run of the workflow in the parameter `workflow`. The notify block uses the
// variables of that run. If the store has not kept that run, around returns only its name, without
// variables.
func (a *Announcer) around(ctx context.Context, run *journal.Run, workflow string) (subject, error) {
	for run.Flow.Name != workflow {
		parent := run.State.Run().Parent
		outer, err := journal.LoadState(ctx, store.Complete(a.cfg.Store), a.cfg.Sealer, a.cfg.Shared.Defs, parent.Run)
		if errors.Is(err, store.ErrNotFound) || parent.Run == 0 {
			return subject{info: dsl.RunInfo{ID: cmp.Or(parent.Name, run.State.Name()), Workflow: workflow}}, nil
		}
		if err != nil {
			return subject{}, err
		}
		run = &outer
	}
	of := run.State.Run()
	return subject{run.State.Vars(), dsl.RunInfo{ID: run.State.Name(), Workflow: run.Flow.Name, Key: of.Key, StartedAt: of.Started.Time(), Trigger: of.Trigger}}, nil
}

// announced returns the variables of a notification. The function `with` makes them from the
// variables of the named run. If the result has more than `most` bytes, announced calls `with`
// again without the variables of the run. Then an argument of the notify block that uses such a
// variable cannot be evaluated. This argument gets a text of the engine instead, or null if its
// type is no text. The status and the failure are those of the announced run.
func announced(of subject, run *journal.Run, state string, most int, with func(dsl.Value, dsl.RunInfo, dsl.Failure) (dsl.Value, error)) (dsl.Value, error) {
	info, failure := of.info, run.State.Failure()
	info.Status = state
	if state == status.Overdue && failure == (dsl.Failure{}) {
		failure = dsl.Failure{Code: machine.CodeDeadlineExceeded, Message: "the run's deadline has passed"}
	}
	vars, err := with(of.vars, info, failure)
	if err == nil && len(vars.JSON()) > most {
		vars, err = with(dsl.Value{}, info, failure)
	}
	return vars, err
}

// submit makes a notification. This engine owns the notification if it can call the agent.
// Otherwise the notification has no owner, so that an engine that can call the agent claims it.
func (a *Announcer) submit(ctx context.Context, w where, st owner.Start, vars dsl.Value) error {
	mine := true
	for _, spec := range st.Specs {
		if err := a.cfg.Shared.Check(ctx, spec); err != nil {
			mine = false
		}
	}
	for range submit.IDTries {
		now := a.cfg.Shared.Clock.Now()
		run, err := a.cfg.Maker.AssignID(submit.Request{Vars: vars}, &st, now)
		if err != nil {
			return &unsendable{err}
		}
		event := machine.Started{RunID: run, Name: st.Public, Vars: vars, Trigger: Trigger}
		if mine {
			err = w.runs.Submit(ctx, &st, now, event)
		} else {
			err = a.leave(ctx, w, &st, event)
		}
		if !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	return fmt.Errorf("no free run id in %d tries", submit.IDTries)
}

// leave stores a notification without an owner.
func (a *Announcer) leave(ctx context.Context, w where, st *owner.Start, event machine.Started) error {
	row, err := a.cfg.Maker.Unowned(st, event, a.cfg.Shared.Clock.Now())
	if err != nil {
		return &unsendable{err}
	}
	l, err := w.to.One(ctx, row)
	if err != nil {
		return err
	}
	return l.Err
}
