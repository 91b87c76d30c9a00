package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const doingLoad = "load a run"

// load reads a run's journal on a goroutine of its own and posts the result to the shard.
// It asks again until the store answers or this membership ends.
func (sh *shard) load(ctx context.Context, r *ownedRun) {
	n, name := sh.s.n, r.name()
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if sh.s.Hands.Hold(ctx, r.id) != nil { // this membership ends
			sh.s.Hands.LetGo(r.id)
			return
		}
		pause := 20 * time.Millisecond
		for {
			story, err := n.loadState(ctx, r.id)
			if err == nil || journal.Permanent(err) {
				n.Outage.Worked(doingLoad, time.Time{})
				sh.post(func(ctx context.Context) {
					if sh.runs[r.id] != r || r.inHand {
						sh.s.Hands.LetGo(r.id)
					} else {
						r.inHand = true // until the next decision
					}
					sh.loaded(ctx, r, story, err)
				})
				return
			}
			if ctx.Err() != nil {
				sh.s.Hands.LetGo(r.id)
				return
			}
			n.Outage.Failed(doingLoad, err, "run", name)
			if wait.For(ctx, pause) != nil {
				return
			}
			pause = min(2*pause, n.cfg.Options.RetryStore)
		}
	}()
}

// A Story is a run as an engine has read it.
type Story struct {
	journal.Run
	rows     []store.Row
	notes    notes
	specs    map[string]invoke.AgentSpec // of its agents
	specsErr error                       // why specs is nil
}

// loadState reads a run without its records.
func (n *Shared) loadState(ctx context.Context, run status.RunID) (Story, error) {
	head, rows, err := store.LoadRun(ctx, n.cfg.Store, run)
	if err != nil {
		return Story{}, fmt.Errorf("load run %s: %w", naming.RunName(run), err)
	}
	story := Story{rows: rows}
	story.Run, err = journal.Fold(ctx, n.cfg.Sealer, n.Defs, store.Loaded{Head: head, Rows: rows}, &journal.Scratch{}, story.notes.note)
	if err == nil { // on this goroutine: its expressions may be costly, and the shard has other runs
		story.specs, story.specsErr = n.Specs.Specs(story.Flow, story.State.Vars())
	}
	return story, err
}

// loaded continues a run whose journal was read.
func (sh *shard) loaded(ctx context.Context, r *ownedRun, story Story, err error) {
	if sh.runs[r.id] != r {
		return
	}
	if err != nil {
		sh.notLoaded(r, err)
		return
	}
	rows, f := story.rows, r.commit
	mine := f != nil && int(f.Transition.Seq) < len(rows) && f.Transition.Wrote(rows[f.Transition.Seq])
	if f != nil && f.started != nil {
		if !mine {
			sh.drop(r, store.ErrExists, nil) // another run has this id
			return
		}
		// The run was accepted, although another engine may own it by now.
		f.started.Submitted = store.Submitted{Run: r.id, Name: f.started.Public}
	}
	sh.fill(r, story)
	if r.specs == nil {
		if r.specs = story.specs; story.specsErr != nil {
			err = &journal.RunError{Run: int64(r.id), Name: r.name(), Err: story.specsErr}
			sh.drop(r, err, err)
			return
		}
	}
	if f != nil && mine && len(rows) == int(f.Transition.Seq)+1 {
		if r.owned { // the row in flight had landed, and its answer was lost
			r.facts -= f.told
			sh.act(ctx, r, f)
			sh.step(ctx, r)
			return
		}
	} else if f != nil {
		sh.forget(r, mine)
	}
	sh.goOn(ctx, r, story.Head)
}

// notLoaded forgets a run that could not be read.
func (sh *shard) notLoaded(r *ownedRun, err error) {
	switch {
	case errors.Is(err, store.ErrNotFound) && r.commit != nil && r.commit.started != nil:
		sh.drop(r, store.ErrExists, nil) // its first row has never landed
	case errors.Is(err, store.ErrNotFound):
		sh.drop(r, err, nil)
	default:
		if r.inbox.wanted { // else every tick would have it read again
			sh.s.n.Backoffs.Add(r.id, sh.s.n.Clock.Now(), sh.s.n.cfg.Options.MaxScan)
		}
		sh.drop(r, err, err)
	}
}

// fill sets the fields of a run from its story.
func (sh *shard) fill(r *ownedRun, story Story) {
	head := story.Head
	r.wf, r.state, r.facts = story.Flow, story.State, story.Facts
	r.seq, r.fence, r.bound = int32(len(story.rows)), head.Fence, head.NextCheck
	r.stored = story.Stored
	r.weigh(&sh.held, sh.runs[r.id] == r)
	r.phase, r.owner, r.owned = phaseReady, head.Owner, head.Owner == sh.s.engine
	r.notes, r.link = story.notes, story.Next()
}

// forget gives up the row that was in flight while the run was read. If mine is true the
// row has landed, and this engine has acted on it already. Otherwise another engine's row
// has its number, and the events are decided again.
func (sh *shard) forget(r *ownedRun, mine bool) {
	f := r.commit
	f.release(sh.s.capacity)
	if mine {
		for _, d := range f.deliveries {
			d.finish(nil)
		}
	} else {
		// The other row may have consumed messages that were read before it.
		r.pending = append(unread(f.deliveries), unread(r.pending)...)
		for i := range r.adopts {
			r.adopts[i].Read, r.adopts[i].Messages = false, nil
		}
	}
	r.commit = nil
	r.inbox.reset()
}

// goOn continues a run that has no commit in flight.
func (sh *shard) goOn(ctx context.Context, r *ownedRun, head store.Head) {
	from := slices.IndexFunc(r.adopts, func(a Adoption) bool { return a.From == head.Owner })
	switch {
	case r.owned:
		for _, a := range r.adopts {
			a.Done(nil)
		}
		r.adopts = nil
		sh.settle(ctx, r)
		sh.readInbox(ctx, r)
		sh.step(ctx, r)
	case r.state.Status().Final():
		if r.inbox.wanted {
			sh.clear(ctx, r)
		}
		for _, d := range r.pending {
			if d.answers() {
				sh.s.n.keepLate(r, d)
			}
		}
		sh.drop(r, nil, nil)
	case from >= 0:
		sh.takeOver(ctx, r, r.adopts[from])
	case r.inbox.wanted && head.Owner == 0 && sh.s.n.Claims():
		sh.readInbox(ctx, r)
	default:
		n := sh.s.n
		switch {
		case !r.inbox.wanted:
		case head.Owner == 0:
			n.Backoffs.addForOthers(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		default:
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, call.ErrNotOwner, nil)
	}
}

// Fold makes a run's story from its loaded rows. It returns a *RunError if this engine
// cannot read the run. After any other error that is not known, and Fold may be called again.
func (n *Shared) Fold(ctx context.Context, l store.Loaded, scratch *journal.Scratch) (Story, error) {
	story := Story{rows: l.Rows}
	var err error
	story.Run, err = journal.Fold(ctx, n.cfg.Sealer, n.Defs, l, scratch, story.notes.note)
	var aside *journal.RunError
	if err != nil && !errors.As(err, &aside) && journal.Permanent(err) {
		err = &journal.RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err, Hint: journal.HintFor(err)}
	}
	return story, err
}

// takeOver makes this engine the owner of a run whose owner is dead or late. Steps that
// the former owner held for want of a slot are tried here.
//
// Waiting messages are decided first (language.md, Verbs before work): after a person has
// cancelled or paused a run, no further call may start. So the row that makes this engine
// the owner also holds the decisions on the messages, and no call starts before the last
// of them. If the messages of an adoption were not read, they are read first.
//
// An answer in the inbox counts if it reached an engine before its attempt's complete-by,
// although complete-by may have passed since. It is decided before the takeover. The calls
// that follow from it start after the takeover.
func (sh *shard) takeOver(ctx context.Context, r *ownedRun, a Adoption) {
	if !a.Read {
		r.inbox.wanted, r.inbox.first = true, true
		sh.readInbox(ctx, r)
		return
	}
	r.suspect, r.deaths = a.Suspect, a.Deaths
	for _, l := range a.Messages {
		if l.Err == nil && !r.inbox.held[l.ID] {
			r.inbox.hold(l.ID)
			r.pending = append(r.pending, l.delivery())
		}
	}
	r.heard, r.unheard = nil, len(a.Messages) >= InboxLimit
	if !r.unheard {
		heard := int32(len(a.Messages))
		r.heard = &heard
	}
	now := sh.s.n.Clock.Now()
	var inTime, mail, rest []*delivery
	room := sh.s.n.cfg.Options.MaxBatchBytes // the takeover must be in the same row
	for _, d := range r.pending {
		r.time(d)
		switch {
		case d.message == 0:
			rest = append(rest, d)
		case d.cameInTime(now) &&
			len(inTime) < maxEvents/2 && journal.EventSize(d.Event) <= room:
			d.quiet = true
			inTime, room = append(inTime, d), room-journal.EventSize(d.Event)
		default:
			mail = append(mail, d)
		}
	}
	slices.SortStableFunc(mail, earlier)
	for i, d := range mail {
		d.quiet = r.unheard || i < len(mail)-1
	}
	taken := &delivery{Answer: call.Answer{Event: machine.TakenOver{By: int32(sh.s.engine), From: int32(r.owner)}, Arrived: now}, quiet: len(mail) > 0}
	r.pending = append(append(inTime, taken), mail...)
	if !r.unheard {
		r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
	}
	r.pending = append(r.pending, rest...)
	sh.step(ctx, r)
}

// begun returns the event that starts steps which were held during a takeover.
func begun(now time.Time) *delivery {
	return &delivery{Answer: call.Answer{Event: machine.SlotsFreed{}, Arrived: now}}
}

// earlier compares deliveries by their arrival.
func earlier(a, b *delivery) int { return a.Arrived.Compare(b.Arrived) }

// heardMore continues a takeover that found more messages than one read returns. Once
// all messages are read, held steps may start.
func (sh *shard) heardMore(r *ownedRun, more bool) {
	if more {
		r.inbox.wanted, r.inbox.first = true, true
		return
	}
	r.unheard = false
	r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
}
