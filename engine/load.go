package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A Story is a run as its journal tells it.
type Story struct {
	Head    store.Head
	Flow    *dsl.Workflow
	State   *machine.State
	Records []machine.Record // nil where only the state was asked for
	Facts   int              // number of facts in the records

	specs    map[string]AgentSpec // of its agents; only where an engine loads it
	specsErr error                // why there are none
	notes    notes
	stored   int64 // bytes of the journal
	chain    chain
}

// notes are what an engine keeps of a run beside its state.
type notes struct {
	// sensitive are the sensitive strings of its variables and outputs, for
	// redaction; it only grows.
	sensitive []string
	refusals  map[int]int // by node: how often in a row its call was not sent
}

// LoadRun reads a run's journal and folds it: the workflow it is pinned to,
// its state, and its records in order (S22, S87). It needs no running engine
// and slows none. Returns ErrNotFound; a *KeyError inside the error if it
// holds sensitive values and the key is not known; a *RunError if what is
// stored cannot be read by this version.
func LoadRun(ctx context.Context, store store.Journal, sealer Sealer, defs *Definitions, run machine.RunID) (*dsl.Workflow, *machine.State, []machine.Record, error) {
	story, _, err := loadStory(ctx, store, sealer, defs, run)
	if err != nil {
		return nil, nil, nil, err
	}
	return story.Flow, story.State, story.Records, nil
}

// loadStory loads and folds a run, and returns the rows too.
func loadStory(ctx context.Context, st store.Journal, sealer Sealer, defs *Definitions, run machine.RunID) (Story, []store.Row, error) {
	head, rows, err := st.Load(ctx, run)
	if err != nil {
		return Story{}, nil, fmt.Errorf("load run %s: %w", store.RunName(run), err)
	}
	story, err := foldStory(ctx, sealer, defs, store.Loaded{Head: head, Rows: rows}, nil)
	return story, rows, err
}

// foldStory folds what was loaded of a run. With a scratch it makes no records,
// which costs a fraction.
func foldStory(ctx context.Context, sealer Sealer, defs *Definitions, l store.Loaded, scratch *machine.Scratch) (Story, error) {
	story := Story{Head: l.Head, State: machine.NewState()}
	var err error
	if story.Flow, err = defs.Workflow(ctx, l.Head.Workflow); err != nil {
		return Story{}, err
	}
	if story.chain.strict, err = defs.strict(ctx, l.Head.Run); err != nil {
		return Story{}, err
	}
	for _, row := range l.Rows {
		if err := story.verify(sealer, row); err != nil {
			return Story{}, err
		}
		story.stored += int64(len(row.Data))
		if err := story.fold(sealer, row, scratch); err != nil {
			return Story{}, err
		}
	}
	if l.Head.Fence >= story.chain.rows { // which a row of that number has made
		return Story{}, broken(l.Head, story.chain.rows, faultTail)
	}
	return story, nil
}

// verify checks that the row is the one that follows those before it. Returns a
// *RunError with a *HistoryError inside if it is not.
func (st *Story) verify(sealer Sealer, row store.Row) error {
	seq := st.chain.rows
	if err := st.chain.follow(sealer, st.Head.Run, row); err != nil {
		return broken(st.Head, seq, err)
	}
	return nil
}

// fold applies one row.
func (st *Story) fold(sealer Sealer, row store.Row, scratch *machine.Scratch) error {
	if scratch == nil {
		return st.foldRecords(sealer, row)
	}
	plain, err := openRow(sealer, st.Head.Run, row)
	if err == nil {
		err = guard(func() error {
			facts, err := scratch.Fold(st.State, st.Flow, plain, st.notes.note)
			st.Facts += facts
			return err
		})
	}
	return st.blame(row, err)
}

// foldRecords is fold that keeps the records.
func (st *Story) foldRecords(sealer Sealer, row store.Row) error {
	records, err := DecodeRow(sealer, st.Head.Run, row)
	if err == nil {
		err = guard(func() error {
			for _, rec := range records {
				st.Facts += st.State.ApplyCounted(st.Flow, rec)
				st.notes.note(rec.Event())
			}
			return nil
		})
	}
	st.Records = append(st.Records, records...)
	return st.blame(row, err)
}

// blame says of which row an error is.
func (st *Story) blame(row store.Row, err error) error {
	if err == nil {
		return nil
	}
	return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: fmt.Errorf("fold row %d: %w", row.Seq, err), Hint: hintFor(err)}
}

// hintFor returns the remedy that an error names.
func hintFor(err error) string {
	var key *KeyError
	var agent interface{ Hint() string } // an agent that is missing or another
	switch {
	case errors.As(err, &key):
		return key.Hint
	case errors.Is(err, machine.ErrFormat):
		return "it was written by a newer version: update this engine"
	case errors.As(err, &agent):
		return agent.Hint() + "; an engine that has this agent can go on with the run"
	}
	return ""
}

const doingLoad = "load a run"

// load reads a run's journal beside the shard's goroutine and posts the result.
// A store that does not answer is asked again until this incarnation ends.
func (sh *shard) load(ctx context.Context, r *ownedRun) {
	n, name := sh.s.n, r.name()
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if sh.s.hands.hold(ctx, r.id) != nil { // this incarnation ends
			sh.s.hands.letGo(r.id)
			return
		}
		pause := 20 * time.Millisecond
		for {
			story, rows, err := n.loadState(ctx, r.id)
			if err == nil || permanent(err) {
				n.outage.worked(doingLoad, time.Time{})
				sh.post(func(ctx context.Context) {
					if sh.runs[r.id] != r || r.inHand {
						sh.s.hands.letGo(r.id)
					} else {
						r.inHand = true // until what follows is decided
					}
					sh.loaded(ctx, r, story, rows, err)
				})
				return
			}
			if ctx.Err() != nil {
				sh.s.hands.letGo(r.id)
				return
			}
			n.outage.failed(doingLoad, err, "run", name)
			if sleep(ctx, pause) != nil {
				return
			}
			pause = min(2*pause, n.cfg.Options.RetryStore)
		}
	}()
}

// loadState is loadStory without records.
func (n *Node) loadState(ctx context.Context, run machine.RunID) (Story, []store.Row, error) {
	head, rows, err := n.cfg.Store.Load(ctx, run)
	if err != nil {
		return Story{}, nil, fmt.Errorf("load run %s: %w", store.RunName(run), err)
	}
	story, err := foldStory(ctx, n.cfg.Sealer, n.defs, store.Loaded{Head: head, Rows: rows}, &machine.Scratch{})
	if err == nil { // here, since its expressions may be costly and the shard has other runs
		story.specs, story.specsErr = n.specs.specs(story.Flow, story.State.Vars())
	}
	return story, rows, err
}

// permanent reports whether loading again would bring the same error.
func permanent(err error) bool {
	var run *RunError
	var bad *unreadable
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &run) || errors.As(err, &bad)
}

// loaded goes on with a run whose journal was read.
func (sh *shard) loaded(ctx context.Context, r *ownedRun, story Story, rows []store.Row, err error) {
	if sh.runs[r.id] != r {
		return
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && r.flight != nil && r.flight.started != nil:
		sh.drop(r, store.ErrExists, nil) // it has never landed
		return
	case errors.Is(err, store.ErrNotFound):
		sh.drop(r, err, nil)
		return
	case err != nil:
		if r.inbox.wanted { // else every tick would have it read again
			sh.s.n.left.leave(r.id, sh.s.n.clock.now(), sh.s.n.cfg.Options.MaxScan)
		}
		sh.drop(r, err, err)
		return
	}
	f := r.flight
	mine := f != nil && int(f.t.Seq) < len(rows) && f.t.Wrote(rows[f.t.Seq])
	if f != nil && f.started != nil && !mine {
		sh.drop(r, store.ErrExists, nil) // another run has this id
		return
	}
	if f != nil && f.started != nil { // whoever has taken the run by now, it was accepted
		f.started.submitted = store.Submitted{Run: r.id, Name: f.started.public}
	}
	head := story.Head
	r.wf, r.state, r.facts = story.Flow, story.State, story.Facts
	r.seq, r.fence, r.bound = int32(len(rows)), head.Fence, head.NextCheck
	r.stored = story.stored
	sh.weigh(r)
	r.phase, r.owner, r.owned = phaseReady, head.Owner, head.Owner == sh.s.engine
	r.notes, r.link = story.notes, story.chain.link
	if r.specs == nil {
		if r.specs = story.specs; story.specsErr != nil {
			err = &RunError{Run: int64(r.id), Name: r.name(), Err: story.specsErr}
			sh.drop(r, err, err)
			return
		}
	}
	if f != nil && mine && len(rows) > int(f.t.Seq)+1 {
		// This engine landed the very same row before, and went on from there:
		// the run was read before that. What the row asked for has been done.
		f.release(sh.s.capacity)
		if f.started != nil {
			f.started.submitted = store.Submitted{Run: r.id, Name: f.started.public}
		}
		for _, d := range f.deliveries {
			d.finish(nil)
		}
		r.flight, f, mine = nil, nil, false
		r.inbox.reset()
	}
	if f != nil && !mine { // another's row stands there: decide again
		f.release(sh.s.capacity)
		// What was read before that row may have gone with it.
		r.pending = append(unread(f.deliveries), unread(r.pending)...)
		for i := range r.adopts {
			r.adopts[i].read, r.adopts[i].mail = false, nil
		}
		r.flight, f = nil, nil
		r.inbox.reset()
	}
	switch {
	case r.owned && mine && len(rows) == int(f.t.Seq)+1:
		// The row in flight had landed before its answer got lost.
		r.facts -= f.told
		sh.act(ctx, r, f)
	case r.owned:
		for _, a := range r.adopts {
			a.done(nil)
		}
		r.adopts = nil
		sh.settle(ctx, r)
		sh.readMail(ctx, r)
	case r.state.Status().Final():
		if r.inbox.wanted {
			sh.clear(ctx, r)
		}
		for _, d := range r.pending {
			if d.answers() {
				sh.keepLate(r, d)
			}
		}
		sh.drop(r, nil, nil)
		return
	case slices.ContainsFunc(r.adopts, func(a adoption) bool { return a.from == head.Owner }):
		i := slices.IndexFunc(r.adopts, func(a adoption) bool { return a.from == head.Owner })
		sh.takeOver(ctx, r, r.adopts[i])
		return
	case r.inbox.wanted && head.Owner == 0 && sh.s.n.claims():
		sh.readMail(ctx, r)
		return
	default:
		n := sh.s.n
		switch {
		case !r.inbox.wanted:
		case head.Owner == 0:
			n.left.leaveToOthers(r.id, n.clock.now(), n.cfg.Options.MaxScan)
		default:
			n.left.leave(r.id, n.clock.now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, ErrNotOwner, nil)
		return
	}
	sh.step(ctx, r)
}
