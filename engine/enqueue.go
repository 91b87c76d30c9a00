package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/faultpoints"
	"github.com/saga-engine/engine/engine/store/naming"
)

// whyUnowned is the text that says why no step of a run starts while the run has no owner.
const whyUnowned = "no engine has taken the run yet"

// Enqueue accepts a run without an owner. The run is durable when Enqueue returns, and it
// shows as queued with all its steps. Any engine on the store may claim it (S14, S55).
// Waiting for an engine does not count as a failure (S65). Enqueue needs no running engine,
// no agents and no Invoker: it does not use cfg.Invoker. It refuses everything that Submit
// refuses. If the name or the unique key is in use, it returns the earlier run with Exists
// set. If it returns an error and a Run other than 0, the run may be stored under that id:
// see Enqueued.
func Enqueue(ctx context.Context, cfg Config, s Submission) (store.Submitted, error) {
	out, err := EnqueueAll(ctx, cfg, []Submission{s})
	return out[0].Submitted, err
}

// An Enqueued is the result of one submission of EnqueueAll.
type Enqueued struct {
	store.Submitted
	// Err is nil if the run is stored or existed before (Exists). With an error, Run = 0
	// means that no run was stored. Any other Run means that the run was sent but the store
	// did not answer: the run may be stored under this id and Name.
	Err error
}

// EnqueueAll accepts many runs, each in the same way as Enqueue. It uses Options.Writers
// connections at the same time, and batches as large as Options allow. It returns one result
// for each submission, in order. A refused submission does not prevent others from being
// stored. If the store cannot be reached, each result says so. If a writer cannot be opened,
// the other writers do its work.
//
// The error is the first error among the results. If no result has an error, it is the error of
// leaving the store at the end, or nil. An error of leaving the store changes no result. A failed
// submission with a name or a unique key can safely be submitted again. If it has neither, but may
// be stored (Err and Run are set), search for the run first: submitting again may store it twice.
func EnqueueAll(ctx context.Context, cfg Config, all []Submission) ([]Enqueued, error) {
	e := &enqueuer{cfg: cfg.withDefaults(), all: all, out: make([]Enqueued, len(all))}
	why, left := e.enqueue(ctx)
	var first error
	for i := range e.out {
		o := &e.out[i]
		if o.Err == nil && o.Run == 0 { // the submission was not tried
			o.Err = fmt.Errorf("submit %q: %w", all[i].Workflow, why)
		}
		first = cmp.Or(first, o.Err)
	}
	return e.out, cmp.Or(first, left)
}

// An enqueuer joins the store for a short time, only to submit runs.
type enqueuer struct {
	cfg    Config
	n      *Node // a partly filled Node: only its methods that submit can be used
	engine store.EngineID
	all    []Submission
	out    []Enqueued // one result for each submission; each result is written by one writer only
	next   atomic.Int64
}

// enqueue joins the store, submits all runs, and leaves the store. If it did not try to submit all
// runs, the result `why` is the reason. The result `left` is the error of leaving the store.
func (e *enqueuer) enqueue(ctx context.Context) (why, left error) {
	cfg := e.cfg
	if cfg.Store == nil {
		return errors.New("engine: Config.Store is required"), nil
	}
	if err := cfg.Options.validate(); err != nil {
		return err, nil
	}
	if len(e.all) == 0 {
		return nil, nil
	}
	if err := journal.PinKey(ctx, cfg.Store, cfg.Sealer, time.Now()); err != nil {
		return err, nil
	}
	writers := min(cfg.Options.Writers, len(e.all))
	cfg.Store = faultpoints.Store(cfg.Store)
	e.cfg = cfg
	e.n = &Node{shared: owner.NewShared(cfg.forRuns()), cfg: cfg, ids: &naming.RunIDSource{}}
	var err error
	if e.engine, err = cfg.Store.Join(ctx, cfg.Options.Address, cfg.Options.Lease, writers); err != nil {
		return fmt.Errorf("join the store: %w", err), nil
	}
	if why = e.tick(ctx); why == nil {
		why = e.run(ctx, writers)
	}
	// Leave the store, although this membership owns no run. Otherwise it would look like a dead
	// engine.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.Options.Lease)
	defer cancel()
	if err := cfg.Store.Leave(last, e.engine); err != nil && !owner.NotOwner(err) {
		left = fmt.Errorf("leave the store: %w", err)
	}
	return why, left
}

// tick renews the lease and sets the clock to the store's time.
func (e *enqueuer) tick(ctx context.Context) error {
	sent := time.Now()
	tick, err := e.cfg.Store.Tick(ctx, e.engine, e.cfg.Options.Lease, 1)
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	e.n.shared.Clock.Ticked(sent, tick.Now, e.cfg.Options.Lease)
	return nil
}

// run submits all runs with the given number of writers. It returns an error if some submissions
// were not tried.
func (e *enqueuer) run(ctx context.Context, writers int) error {
	// When one writer fails, the context `stop` ends. The other writers start no new batch, but each
	// of them still waits for the answer to its last batch.
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var open []store.Writer
	var failed error
	for n := range writers {
		w, err := e.cfg.Store.OpenWriter(ctx, e.engine, n)
		if err != nil {
			failed = fmt.Errorf("open writer %d: %w", n, err)
			continue
		}
		open = append(open, w)
	}
	switch {
	case len(open) == 0:
		return failed
	case failed != nil:
		e.cfg.Logger.Warn("submitting over fewer connections", "connections", len(open), "error", failed)
	}
	var work, renew sync.WaitGroup
	for _, w := range open {
		work.Go(func() {
			defer func() {
				if err := w.Close(); err != nil {
					e.cfg.Logger.Debug("close a writer", "error", err)
				}
			}()
			if err := e.work(ctx, stop, w); err != nil {
				cancel(err)
			}
		})
	}
	done := make(chan struct{})
	renew.Go(func() { e.renew(ctx, cancel, done) })
	work.Wait()
	close(done)
	renew.Wait()
	return context.Cause(stop)
}

// renew renews the lease of the membership until the channel `done` is closed. If it notices that
// the membership is over, it calls the function `cancel`, which ends the work of all writers.
func (e *enqueuer) renew(ctx context.Context, cancel context.CancelCauseFunc, done <-chan struct{}) {
	for {
		timer := time.NewTimer(e.cfg.Options.Lease / 3)
		select {
		case <-timer.C:
			if err := e.tick(ctx); owner.OverFor(err) {
				cancel(err)
			}
		case <-done:
			timer.Stop()
			return
		}
	}
}

// enqueueBatch is the largest number of runs in one commit.
const enqueueBatch = 256

// work submits up to enqueueBatch submissions at a time, until none is left or the context `stop`
// ends. It returns an error if the store does not answer or this membership is over. After an
// error, the method `run` ends the work of all writers.
func (e *enqueuer) work(ctx, stop context.Context, w store.Writer) error {
	for stop.Err() == nil {
		to := int(e.next.Add(enqueueBatch))
		from := to - enqueueBatch
		if to = min(to, len(e.all)); from >= to {
			return nil
		}
		if err := e.share(ctx, stop, w, from, to); err != nil {
			return err
		}
	}
	return nil
}

// An entry is a submission that is being sent.
type entry struct {
	n  int // index of the submission
	st *owner.Start
	t  store.Transition
}

// submitted returns the id and name that the run of this entry gets.
func (x *entry) submitted() store.Submitted {
	return store.Submitted{Run: x.t.Run, Name: x.t.Names.Public(x.t.Run)}
}

// share submits the submissions e.all[from:to] in batches. A submission that is refused gets its
// result at once and is in no batch. share returns the same errors as the method `work`.
func (e *enqueuer) share(ctx, stop context.Context, w store.Writer, from, to int) error {
	var batch []entry
	bytes := 0
	for n := from; n < to; n++ {
		if stop.Err() != nil { // the caller gives a result to the submissions that were not sent
			return nil
		}
		x, err := e.entry(ctx, n)
		if err != nil {
			return err
		}
		if x == nil {
			continue
		}
		full := len(batch) == min(enqueueBatch, e.cfg.Options.MaxBatchRows) || bytes+len(x.t.Data) > e.cfg.Options.MaxBatchBytes
		if len(batch) > 0 && full {
			if err := e.land(ctx, w, batch); err != nil {
				return err
			}
			batch, bytes = batch[:0], 0
		}
		batch, bytes = append(batch, *x), bytes+len(x.t.Data)
	}
	return e.land(ctx, w, batch)
}

// entry makes the entry for a submission. It returns nil if the submission has its result
// without being sent, for example because it was refused. It returns an error if the store does
// not answer.
func (e *enqueuer) entry(ctx context.Context, n int) (*entry, error) {
	s, o := e.all[n], &e.out[n]
	var down *unanswered
	// A name in the form of a run id can only name an existing run. If the run exists, there is
	// nothing to submit. If it does not exist, the submission is refused.
	if _, given := naming.ParseRunName(s.Name); given {
		o.Submitted, o.Err = e.n.again(ctx, s)
		if errors.As(o.Err, &down) {
			return nil, down
		}
		return nil, nil
	}
	st, err := e.n.prepare(ctx, s)
	if err != nil {
		o.Err = fmt.Errorf("submit %q: %w", s.Workflow, err)
		if errors.As(err, &down) {
			return nil, down
		}
		return nil, nil
	}
	x := &entry{n: n, st: st}
	if x.t, o.Err = e.transition(s, *st, false); o.Err != nil {
		return nil, nil
	}
	return x, nil
}

// land sends a batch until every submission in it has its result. If the store does not
// answer, land sends the rows again, as often as Node.Submit does. They are exactly the same
// rows, so no row is stored twice. It returns an error if the store did not answer, or if
// this membership is over.
func (e *enqueuer) land(ctx context.Context, w store.Writer, batch []entry) error {
	slices.SortFunc(batch, func(a, b entry) int { return cmp.Compare(a.t.Run, b.t.Run) })
	unsure := false // true = an earlier try may have committed the rows
	pause := wait.Least
	for try := 1; len(batch) > 0; try++ {
		rows := make([]store.Transition, len(batch))
		for i, x := range batch {
			rows[i] = x.t
		}
		outcomes, err := w.Commit(ctx, rows)
		if err == nil && len(outcomes) != len(rows) {
			err = fmt.Errorf("the store answered %d outcomes for %d submissions", len(outcomes), len(rows))
		}
		if err == nil {
			if batch, err = e.settle(ctx, batch, outcomes, unsure); err == nil && len(batch) == 0 {
				return nil
			}
		}
		if err == nil { // some ids were in use: these submissions are sent again with other ids
			if try >= submitIDs {
				e.fail(batch, fmt.Errorf("no free run id in %d tries", submitIDs), false)
				return nil
			}
			unsure = false
			continue
		}
		unsure = unsure || !store.NothingLanded(err)
		if owner.OverFor(err) || ctx.Err() != nil || try >= commit.SubmitTries {
			e.fail(batch, err, unsure)
			return err
		}
		if wait.For(ctx, pause) != nil {
			e.fail(batch, err, unsure)
			return err
		}
		pause *= 2
	}
	return nil
}

// fail writes the error err into the result of each submission of a batch that has no result yet.
// If the parameter `unsure` is true, the store may have stored the runs in spite of the error. Then
// each of these results also gets the id and name of its run.
func (e *enqueuer) fail(batch []entry, err error, unsure bool) {
	for _, x := range batch {
		o := &e.out[x.n]
		if o.Run != 0 || o.Err != nil { // the submission has its result already
			continue
		}
		o.Err = fmt.Errorf("submit %q: %w", e.all[x.n].Workflow, err)
		if unsure {
			o.Submitted = x.submitted()
		}
	}
}

// settle turns the store's answers into results. If the id of an entry was in use, settle gives the
// entry another id and returns the entry, and the method `land` sends it again. settle returns an
// error if it cannot read from the store whether an earlier try committed a row that is refused now.
func (e *enqueuer) settle(ctx context.Context, batch []entry, outcomes []store.Outcome, unsure bool) (again []entry, err error) {
	for i, x := range batch {
		o, res := outcomes[i], &e.out[x.n]
		mine := false
		if unsure && o.Err != nil { // an earlier try may have committed the row that is refused now
			if mine, err = e.stands(ctx, x.t); err != nil {
				return batch, err
			}
		}
		switch {
		case mine, o.Err == nil && o.Submitted.Run == x.t.Run:
			res.Submitted, res.Err = x.submitted(), nil
		case errors.Is(o.Err, naming.ErrFree), o.Err == nil && x.t.Replaces == nil && replaces(x.st.Flow, e.all[x.n].Name, x.t.Names, o.Submitted):
			// Submit the run again: as a replacement if another run holds the unique key, or as an
			// ordinary run if the unique key is free now.
			failpoint.Hit("key.held")
			t, err := e.transition(e.all[x.n], *x.st, o.Err == nil)
			if err != nil {
				res.Err = err
				continue
			}
			again = append(again, entry{n: x.n, st: x.st, t: t})
		case o.Err == nil && (o.Landed || o.Submitted.Exists):
			if res.Err = heldKey(ctx, e.cfg.Store, x.st.Flow, e.all[x.n].Name, x.t.Names, o.Submitted); res.Err != nil {
				res.Err = fmt.Errorf("submit %q: %w", e.all[x.n].Workflow, res.Err)
				continue
			}
			res.Submitted = o.Submitted
		case o.Err == nil, errors.Is(o.Err, store.ErrExists): // another run has the id
			t, err := e.transition(e.all[x.n], *x.st, x.t.Replaces != nil)
			if err != nil {
				res.Err = err
				continue
			}
			again = append(again, entry{n: x.n, st: x.st, t: t})
		case errors.Is(o.Err, naming.ErrFull):
			res.Err = fmt.Errorf("submit %q: %w", e.all[x.n].Workflow, fullError(ctx, e.cfg.Store, x.st, false, o.Err))
		default:
			res.Err = fmt.Errorf("submit %q: %w", e.all[x.n].Workflow, o.Err)
		}
	}
	return again, nil
}

// stands reports whether the store has exactly the row of the transition t as the first row of its
// run.
func (e *enqueuer) stands(ctx context.Context, t store.Transition) (bool, error) {
	rows, err := e.cfg.Store.Rows(ctx, t.Run, 0, 1)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("read run %s: %w", naming.RunName(t.Run), err)
	}
	return err == nil && len(rows) == 1 && t.Wrote(rows[0]), nil
}

// transition returns the first row of a run without an owner. This row starts no step of the run.
// An engine that looks for runs without an owner finds the run at once. If the parameter
// `replaced` is true, the run replaces the run that holds its unique key.
func (e *enqueuer) transition(s Submission, st owner.Start, replaced bool) (store.Transition, error) {
	now := e.n.shared.Clock.Now()
	run, err := e.n.assignID(s, &st, now)
	if err == nil && replaced {
		st.Replaces, err = replacement(s, &st)
	}
	if err != nil {
		return store.Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	t, err := unownedRow(e.cfg, &st, s.started(run, &st, st.Flow.Concurrency != nil && !st.Flow.Concurrency.Reject), now)
	if err != nil {
		return store.Transition{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return t, nil
}

// unownedRow returns the first row of a run without an owner, with the event that starts the run.
func unownedRow(cfg Config, st *owner.Start, event machine.Started, now time.Time) (store.Transition, error) {
	slots := map[string]machine.Slot{st.Flow.ChildAgent(): {Why: whyUnowned}}
	for agent := range st.Specs {
		slots[agent] = machine.Slot{Why: whyUnowned}
	}
	nobody, state := store.EngineID(0), machine.NewState()
	t := store.Transition{Run: event.RunID, Workflow: st.Workflow, Owner: &nobody, Names: &st.Names, Checks: st.Checks, Replaces: st.Replaces}
	err := guard.Do(func() (err error) {
		rec := machine.Decide(st.Flow, state, machine.Input{At: now, Event: event, Slots: slots, Ceilings: cfg.Options.Ceilings,
			Allowance: dsl.NewAllowance(machine.MaxDecisionCost), Past: st.Past})
		if rec.Empty() {
			return errors.New("the decision accepts no run")
		}
		owner.AddRecord(&t, rec, state, st.Flow)
		owner.SetRoom(&t, st.Names.Workflow, now, event)
		t.At = rec.At()
		t.Data, _, err = journal.EncodeRow(cfg.Sealer, &journal.Scratch{}, journal.Link{}, t.Run, 0, t.At, []machine.Record{rec})
		return err
	})
	if err != nil {
		return store.Transition{}, err
	}
	if len(t.Data) > cfg.Options.MaxRow {
		return store.Transition{}, fmt.Errorf("its first row has %d bytes, more than the %d allowed", len(t.Data), cfg.Options.MaxRow)
	}
	t.NextCheck = st.Line.Rank(t.At) // engines claim the run with the earliest NextCheck first
	if t.State.Final() {
		t.NextCheck = store.Never // the workflow has no steps, so the run has ended already
	}
	return t, nil
}
