package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// work is one apply at work. Its loop runs in one goroutine, which alone calls
// the view; others send it functions.
type work struct {
	*feed
	a        *app
	r        *request
	o        applyOptions
	path     string
	stops    <-chan os.Signal
	circuits chan render.Circuit

	begun bool // the view knows the run

	own    status.RunID // the command's run; 0 = not known yet
	others *others      // what else this process works on
}

// The parts of a work. Each is the same work with the methods of one concern.

func (w *work) attachment() attachment { return attachment{w} }
func (w *work) leaving() leaving       { return leaving{w} }

// adoptEvery is the pause between two attempts to get a run whose owner is gone.
const adoptEvery = 2 * time.Second

// run works until the run has ended, needs a human, or the user stops it. If
// another process holds the embedded state and already works on the run, it
// looks on, and takes the state over when that process goes.
func (w *work) run(ctx context.Context) (outcome, error) {
	for {
		s, err := w.a.opener().openWriter(ctx, w.r.dir, w.r.shown)
		var locked *sqlite.LockedError
		if errors.As(err, &locked) {
			end, done, err := w.attachment().lookOn(ctx, locked)
			if err != nil || done {
				return end, err
			}
			continue
		}
		if err != nil {
			return outcome{}, err
		}
		if !w.begun {
			w.a.follower().notePlace(s)
		}
		end, err := w.with(ctx, s)
		s.close()
		return end, err
	}
}

// with works on an open store.
func (w *work) with(ctx context.Context, s *session) (outcome, error) {
	logs := engine.NewLogKeeper(s.store, w.a.logger())
	pool := w.a.opener().newPool(w.r.catalog, circuitObserver{w.circuits}, logs.Keep, &w.o.ceilings)
	defer pool.Close()
	defer keepLogs(ctx, logs)()
	err := w.leaving().interruptible(ctx, func(ctx context.Context) error { return checkAgents(ctx, pool, w.r.wf, w.r.vars, w.starting) })
	if err != nil {
		return outcome{}, err
	}
	node, err := w.a.opener().newNode(s, pool, nodeParts{
		capacity: pool, observer: w.others, options: w.o.ceilings.to(engine.Options{Lease: applyLease, Alone: w.o.only}),
	})
	if err != nil {
		return outcome{}, err
	}
	nodeCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- node.Run(nodeCtx) }()
	e := &engineRun{node: node, stop: stop, ended: ended}
	defer w.leaving().leave(ctx, s, e)
	select {
	case <-node.Ready():
	case err := <-ended:
		close(ended)
		return outcome{}, s.wrap("start", err)
	}
	return w.drive(ctx, s, e)
}

// starting says for people what takes the first tenths of a second.
func (w *work) starting(text string) {
	if !w.a.json {
		w.view.Note(text)
	}
}

// drive submits the run and follows it.
func (w *work) drive(ctx context.Context, s *session, e *engineRun) (outcome, error) {
	var run store.RunRow
	err := w.leaving().interruptible(ctx, func(ctx context.Context) (err error) {
		run, err = w.submit(ctx, s, e.node)
		return err
	})
	if err != nil {
		return outcome{}, err
	}
	followCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan followed, 1)
	go func() { ends <- w.follow(followCtx, s, e.node, run.Run) }()
	adopts := make(chan error, 1)
	var adopting bool
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	timeout, stopTimer := w.timeout()
	defer stopTimer()
	nextAdopt := w.a.now()
	for {
		select {
		case fn := <-w.updates:
			fn()
		case c := <-w.circuits:
			w.view.Circuit(c)
		case f := <-ends:
			if f.err != nil && f.state == nil {
				return outcome{}, f.err
			}
			return outcome{run: run.Name, state: f.state}, nil
		case err := <-e.ended: // stopped, and everything in flight has ended
			close(e.ended)
			if err != nil && !e.stopped {
				return outcome{}, s.wrap("run the engine", err)
			}
			return w.last(ctx, s, run)
		case <-w.stops:
			w.leaving().interrupt(e)
		case <-timeout:
			w.timedOut()
			if !e.stopped {
				w.leaving().interrupt(e)
			}
		case err := <-adopts:
			adopting = false
			if err != nil && !errors.Is(err, engine.ErrNotOwner) && permanent(err) {
				return outcome{}, err
			}
		case <-ticker.C:
			now := w.a.now()
			w.view.Tick(now)
			w.tellTaken(ctx, s, w.own)
			if err := e.node.Quarantined()[run.Run]; err != nil {
				return outcome{}, err
			}
			if !adopting && !e.stopped && !run.State.NeedsHuman() && !now.Before(nextAdopt) {
				adopting, nextAdopt = true, now.Add(adoptEvery)
				go func() { adopts <- adopt(followCtx, s, e.node, run) }()
			}
		}
	}
}

// adopt makes the node the owner of a run whose owner is gone. A look at its
// row comes first: it costs less than reading the run.
func adopt(ctx context.Context, s *session, node *engine.Node, run store.RunRow) error {
	row, err := s.store.Find(ctx, run.Name)
	if err != nil {
		return s.wrap("look at the run", err)
	}
	if row.State.Final() || row.OwnerAlive {
		return nil
	}
	return node.Adopt(ctx, run.Run)
}

// timeout fires when --wait-timeout is over.
func (w *work) timeout() (<-chan time.Time, func()) {
	if w.o.wait == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(w.o.wait)
	return timer.C, func() { timer.Stop() }
}

// timedOut says that --wait-timeout is over.
func (w *work) timedOut() {
	w.view.Note(fmt.Sprintf("The run is still open after %s.", w.o.wait))
}

// last shows what was recorded while the node stopped, and tells how the run
// stands.
func (w *work) last(ctx context.Context, s *session, run store.RunRow) (outcome, error) {
	told, err := journal.Load(ctx, s.store, s.sealer, s.defs, run.Run)
	if err != nil {
		return outcome{}, s.wrap("read the run", err)
	}
	if facts := factsOf(told.Flow, told.Records); len(facts) > w.seen {
		w.view.Facts(w.seen+1, facts[w.seen:])
		w.seen = len(facts)
	}
	return outcome{run: run.Name, state: told.State}, nil
}

// submit takes over what nobody works on, then starts the run or finds the one
// there is.
func (w *work) submit(ctx context.Context, s *session, node *engine.Node) (store.RunRow, error) {
	if err := w.inTime(ctx, s); err != nil {
		return store.RunRow{}, err
	}
	if !w.o.only {
		if _, err := node.TakeOver(ctx); err != nil {
			return store.RunRow{}, s.wrap("take over open runs", err)
		}
	}
	sub, err := node.Submit(ctx, engine.Submission{
		Definition: w.r.def, Workflow: w.r.wf.Name, Vars: w.r.vars, Name: w.o.runID, By: userName(),
	})
	if err != nil && sub.Run != 0 {
		sub, err = w.leaving().reread(ctx, s, sub, err)
		if err != nil {
			return store.RunRow{}, err
		}
	}
	if err != nil {
		return store.RunRow{}, s.wrap("start the run", err)
	}
	row, err := s.findAgain(ctx, sub.Name)
	if err != nil {
		return store.RunRow{}, w.leaving().unsure(s, sub.Name, err)
	}
	if sub.Exists {
		if err := w.attachment().attach(ctx, s, row); err != nil {
			return store.RunRow{}, err
		}
	}
	w.own = row.Run
	w.begin(row, sub.Exists)
	w.tellTaken(ctx, s, w.own)
	return row, nil
}

// findAgain finds a run that is known to be there. A store that does not answer
// is asked again until ctx ends.
func (s *session) findAgain(ctx context.Context, name string) (store.RunRow, error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		row, err := s.store.Find(ctx, name)
		if err == nil || permanent(err) || ctx.Err() != nil {
			return row, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// inTime refuses a new run whose deadline has passed already.
func (w *work) inTime(ctx context.Context, s *session) error {
	if w.r.wf.Deadline == nil {
		return nil
	}
	now := w.a.now()
	scope := &dsl.Scope{Vars: w.r.vars, Run: dsl.RunInfo{ID: w.o.runID, Workflow: w.r.wf.Name, StartedAt: now}}
	limit, err := w.r.wf.Deadline(scope)
	if err != nil {
		return failed("Cannot evaluate deadline", "%s.", upperFirst(err.Error()))
	}
	by, limited := limit.From(now)
	if !limited || by.After(now) {
		return nil
	}
	earlier, err := w.attachment().find(ctx, s)
	if err != nil || earlier != nil { // one that exists is followed, in time or not
		return err
	}
	return failed("Deadline has passed", "The deadline of workflow %q is %s, which is %s ago. Nothing was started.",
		w.r.wf.Name, stamp(by), render.Span(now.Sub(by)))
}

// begin tells the view of the run, once.
func (w *work) begin(row store.RunRow, attached bool) {
	if w.begun {
		return
	}
	w.begun = true
	w.a.runs.follow(row)
	w.view.Begin(storyOf(w.r.wf, row, attached))
}
