package apply

import (
	"context"
	"errors"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
)

// adoptEvery is the pause between two tries to become the owner of a run whose owner is gone.
const adoptEvery = 2 * time.Second

// run is the method that works on the run. It returns when the run has ended or needs a human,
// or when the user stops the command. If another process has locked the embedded state and
// works on the run, this process only follows the run. When the other process ends, this
// process opens the state and works on the run.
func (w *work) run(ctx context.Context) (follow.Outcome, error) {
	for {
		s, err := session.OpenWriter(ctx, w.a, w.r.Dir, w.r.Shown)
		var locked *sqlite.LockedError
		if errors.As(err, &locked) {
			end, done, err := followOther(ctx, w, locked)
			if err != nil || done {
				return end, err
			}
			continue
		}
		if err != nil {
			return follow.Outcome{}, err
		}
		if !w.begun {
			session.NoteState(w.a, s)
		}
		end, err := w.with(ctx, s)
		s.Close()
		return end, err
	}
}

// with is the method that starts an engine for the open session s, lets the engine work on the run,
// and stops the engine.
func (w *work) with(ctx context.Context, s *session.Session) (follow.Outcome, error) {
	logs := engine.NewLogKeeper(s.Store, w.a.Logger())
	pool := engines.NewPool(w.a, w.r.Catalog, circuitObserver{w.circuits}, logs.Keep, &w.o.Ceilings)
	defer pool.Close()
	defer engines.KeepLogs(ctx, logs)()
	err := interruptible(ctx, w, func(ctx context.Context) error { return checkAgents(ctx, pool, w.r.Workflow, w.r.Vars, w.starting) })
	if err != nil {
		return follow.Outcome{}, err
	}
	sinks, err := engines.ReplySinks(w.a, w.o.ReplySinks)
	if err != nil {
		return follow.Outcome{}, err
	}
	node, err := engines.NewNode(w.a, s, pool, engines.Settings{
		Replies: sinks, Capacity: pool, Observer: w.others, Options: w.o.Ceilings.To(engine.Options{Lease: applyLease, OnlyOwnRuns: w.o.Only}),
	})
	if err != nil {
		return follow.Outcome{}, err
	}
	nodeCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- node.Run(nodeCtx) }()
	e := &engineRun{node: node, stop: stop, ended: ended}
	defer leave(ctx, w, s, e)
	select {
	case <-node.Ready():
	case err := <-ended:
		close(ended)
		return follow.Outcome{}, s.Wrap("start", err)
	}
	return w.drive(ctx, s, e)
}

// drive submits the run and follows it until the run has ended or needs a human, or the engine has
// stopped.
func (w *work) drive(ctx context.Context, s *session.Session, e *engineRun) (follow.Outcome, error) {
	var run store.RunRow
	err := interruptible(ctx, w, func(ctx context.Context) (err error) {
		run, err = w.submit(ctx, s, e.node)
		return err
	})
	if err != nil {
		return follow.Outcome{}, err
	}
	followCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan follow.Followed, 1)
	go func() { ends <- w.follow(followCtx, s, e.node, run.Run) }()
	adopts := make(chan error, 1)
	var adopting bool
	ticker := time.NewTicker(follow.TickEvery)
	defer ticker.Stop()
	timeout, stopTimer := w.timeout()
	defer stopTimer()
	nextAdopt := w.a.Now()
	for {
		select {
		case fn := <-w.Updates:
			fn()
		case c := <-w.circuits:
			w.View.Circuit(c)
		case f := <-ends:
			if f.Err != nil && f.State == nil {
				return follow.Outcome{}, f.Err
			}
			notified(ctx, w, e, run, f.Through)
			return f.Outcome(run.Name), nil
		case err := <-e.ended: // the engine has stopped
			close(e.ended)
			if err != nil && !e.stopped {
				return follow.Outcome{}, s.Wrap("run the engine", err)
			}
			return w.last(ctx, s, run)
		case <-w.stops:
			interrupt(w, e)
		case <-timeout:
			w.timedOut()
			if !e.stopped {
				interrupt(w, e)
			}
		case err := <-adopts:
			adopting = false
			if err != nil && !errors.Is(err, engine.ErrNotOwner) && permanent(err) {
				return follow.Outcome{}, err
			}
		case <-ticker.C:
			now := w.a.Now()
			w.View.Tick(now)
			w.showTaken(ctx, s, w.own)
			if err := e.node.Quarantined()[run.Run]; err != nil {
				return follow.Outcome{}, err
			}
			if !adopting && !e.stopped && !run.State.NeedsHuman() && !now.Before(nextAdopt) {
				adopting, nextAdopt = true, now.Add(adoptEvery)
				go func() { adopts <- adopt(followCtx, s, e.node, run) }()
			}
		}
	}
}

// follow shows what happens to the run, until the run has ended or needs a human. If the store
// does not answer, follow asks it again.
func (w *work) follow(ctx context.Context, s *session.Session, node *engine.Node, run status.RunID) follow.Followed {
	return w.Following(ctx, s, func(ctx context.Context, from int, fn func(int, []story.Fact), o journal.FollowOptions) (*machine.State, error) {
		return node.Follow(ctx, run, from, fn, o)
	})
}

// adopt makes the node the owner of a run whose owner is gone. It does nothing if the run has
// ended or its owner is alive. It reads the run's row first, because that costs less than reading
// the whole run.
func adopt(ctx context.Context, s *session.Session, node *engine.Node, run store.RunRow) error {
	row, err := s.Store.Find(ctx, run.Name)
	if err != nil {
		return s.Wrap("look at the run", err)
	}
	if row.State.Final() || row.OwnerAlive {
		return nil
	}
	return node.Adopt(ctx, run.Run)
}

// submit starts the run, or finds the run if it exists already. Before that, it takes over the open
// runs that no engine owns, unless --only is given.
func (w *work) submit(ctx context.Context, s *session.Session, node *engine.Node) (store.RunRow, error) {
	if err := inTime(ctx, w, s); err != nil {
		return store.RunRow{}, err
	}
	if !w.o.Only {
		if _, err := node.TakeOver(ctx); err != nil {
			return store.RunRow{}, s.Wrap("take over open runs", err)
		}
	}
	sub, err := node.Submit(ctx, engine.Submission{
		Definition: w.r.Def, Workflow: w.r.Workflow.Name, Vars: w.r.Vars, Name: w.o.RunID, By: cli.UserName(),
		ReplyTo: w.o.ReplyTo, Correlation: w.o.Correlation, StartBy: w.o.startBy(), Priority: w.o.priority(),
	})
	if err != nil && sub.Run != 0 {
		sub, err = reread(ctx, w, s, sub, err)
		if err != nil {
			return store.RunRow{}, err
		}
	}
	if err != nil {
		return store.RunRow{}, s.Wrap("start the run", err)
	}
	row, err := findAgain(ctx, s, sub.Name)
	if err != nil {
		return store.RunRow{}, unsure(w, s, sub.Name, err)
	}
	if sub.Exists {
		if err := attach(ctx, w, s, row); err != nil {
			return store.RunRow{}, err
		}
	}
	w.own = row.Run
	w.begin(row, sub.Exists)
	w.showTaken(ctx, s, w.own)
	return row, nil
}

// findAgain reads the row of a run that certainly exists. If the store does not answer,
// findAgain asks it again until ctx ends.
func findAgain(ctx context.Context, s *session.Session, name string) (store.RunRow, error) {
	for again := 100 * time.Millisecond; ; again = min(2*again, 5*time.Second) {
		row, err := s.Store.Find(ctx, name)
		if err == nil || permanent(err) || ctx.Err() != nil {
			return row, err
		}
		_ = pause.For(ctx, again) // if ctx has ended, the next answer is returned
	}
}

// permanent reports whether asking the store again would bring the same error.
func permanent(err error) bool {
	var run *journal.RunError
	var key *crypt.KeyError
	return errors.As(err, &run) || errors.As(err, &key) || errors.Is(err, store.ErrNotFound)
}
