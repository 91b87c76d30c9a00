package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// Names of store operations, for log lines.
const (
	doingLoad     = "load a run"
	doingMessages = "read messages"
	doingDiscard  = "discard messages to a run that has ended"
)

// A loadedRun is the result of the method `load`. load posts it to the shard as a task.
type loadedRun struct {
	r     *ownedRun
	story Story
	err   error
}

// load starts a goroutine that reads a run's journal and posts a *loadedRun to the shard. If
// the store does not answer, the goroutine reads again. If this membership ends first, the
// goroutine posts nothing.
func (sh *shard) load(ctx context.Context, r *ownedRun) {
	n, name, moved := sh.s.n, r.name(), r.moved
	// If it is not known whether a row was committed, load must look for this row in the journal. A
	// snapshot may cover the row, so all rows must be read.
	whole := r.commit != nil
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if sh.s.Hands.PutInHand(ctx, r.id) != nil { // the membership is over
			sh.s.Hands.LetGo(r.id)
			return
		}
		pause := 20 * time.Millisecond
		for {
			story, err := n.loadState(ctx, r.id, whole)
			if err == nil && moved && story.specsErr == nil {
				story.unable = n.Equipped(ctx, r.id, name, story.specs)
			}
			if err == nil || journal.Permanent(err) {
				n.Outage.Worked(doingLoad, time.Time{})
				sh.give(task{back: &loadedRun{r, story, err}})
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

// reload reads a run again after it was moved to another definition, so that it gets the agents of
// the new definition. The row that moved the run has started no call. Therefore reload adds an
// event after which the steps can start.
func reload(ctx context.Context, sh *shard, r *ownedRun) {
	r.phase, r.specs, r.moved = phaseLoading, nil, true
	r.pending = append(r.pending, begun(sh.s.n.Clock.Now()))
	sh.s.Timers.set(r.id, time.Time{}, false)
	sh.s.n.Followers.Notify(r.id)
	sh.load(ctx, r)
}

// ReadRun reads a run from the store. If the run has a snapshot, ReadRun does not read all rows,
// but only the snapshot, the last row that the snapshot covers, and all later rows.
func (n *Shared) ReadRun(ctx context.Context, run status.RunID) (snapshots.Loaded, error) {
	return snapshots.LoadOne(ctx, n.cfg.Store, run)
}

// loadState reads a run from the store, and computes the state of the run from its records. If the
// parameter `whole` is true, it reads all rows, even if the run has a snapshot.
func (n *Shared) loadState(ctx context.Context, run status.RunID, whole bool) (Story, error) {
	var (
		l   snapshots.Loaded
		err error
	)
	if whole {
		l.Head, l.Rows, err = store.LoadRun(ctx, n.cfg.Store, run)
	} else {
		l, err = n.ReadRun(ctx, run)
	}
	if err != nil {
		return Story{}, fmt.Errorf("load run %s: %w", naming.RunName(run), err)
	}
	story := Story{rows: l.Rows}
	story.Run, err = journal.Reader{Store: n.cfg.Store, Sealer: n.cfg.Sealer, Defs: n.Defs}.FoldShort(ctx, l, &journal.Scratch{}, &story.notes)
	if err == nil { // compute the specs here and not in the shard, because costly expressions would delay the shard's other runs
		story.specs, story.specsErr = n.Specs.Specs(story.Flow, story.State.Vars())
	}
	return story, err
}

// aheadInMemory is a limit for the method `unload`. A run at rest that is due within this time
// stays in memory, because it would soon be read again.
const aheadInMemory = time.Minute

// unload removes a run from memory if the run is at rest and is not due soon. This engine
// still owns the run. It reads the run again when the run is due, or when a message or an
// event for the run arrives. So runs that only wait need almost no memory.
func (sh *shard) unload(r *ownedRun) {
	if sh.runs[r.id] != r || !r.atRest() {
		return
	}
	if due, ok := r.state.NextDue(); ok && sh.s.n.Clock.Until(due) < aheadInMemory {
		return
	}
	delete(sh.runs, r.id)
	sh.resting[r.id] = r.seq
	r.weigh(&sh.memory, false)
}

// notLoaded removes a run from memory after reading the run has failed with err. The callers
// that wait for the run get an error.
func (sh *shard) notLoaded(r *ownedRun, err error) {
	switch {
	case errors.Is(err, store.ErrNotFound) && r.commit != nil && r.commit.started != nil:
		// The store does not have the new run, because its first row was not committed. After
		// ErrExists the caller submits the run again with a new id.
		sh.drop(r, store.ErrExists, nil)
	case errors.Is(err, store.ErrNotFound):
		sh.drop(r, err, nil)
	default:
		if r.inbox.wanted { // without this backoff, every tick would make the engine read the run again
			sh.s.n.Backoffs.Add(r.id, sh.s.n.Clock.Now(), sh.s.n.cfg.Options.MaxScan)
		}
		sh.drop(r, err, err)
	}
}

// fill copies the values of a story into the fields of the run r.
func (sh *shard) fill(r *ownedRun, story Story) {
	head := story.Head
	delete(sh.resting, r.id)
	r.wf, r.state, r.facts = story.Flow, story.State, story.Facts
	r.seq, r.fence, r.bound = story.Rows(), head.Fence, head.NextCheck
	r.stored = story.Stored
	r.short = shortcut{next: story.Covered, stored: story.CoveredBytes, size: story.SnapshotBytes, busy: r.short.busy, refused: story.Refused}
	r.weigh(&sh.memory, sh.runs[r.id] == r)
	r.phase, r.owner, r.owned = phaseReady, head.Owner, head.Owner == sh.s.engine
	r.notes, r.link = story.notes, story.Next()
	if len(story.State.Run().Moves) > 0 { // a new definition may have sensitive defaults
		r.sensitive = append(r.sensitive, story.State.Vars().SensitiveStrings()...)
	}
}

// forget drops the pending commit of a run after the run was read again. If the parameter `mine` is
// true, the journal contains the row of this commit, so the events of the commit are decided. If
// `mine` is false, the row was not committed, usually because another engine's row has the same
// number. Then the events must be decided again.
func (sh *shard) forget(r *ownedRun, mine bool) {
	f := r.commit
	f.release(sh.s.capacity)
	if mine {
		for _, d := range f.deliveries {
			d.finish(nil)
		}
	} else {
		// Messages are dropped here and read again: a row of another engine may have answered
		// some of them.
		r.pending = append(unread(f.deliveries), unread(r.pending)...)
		for i := range r.adopts {
			r.adopts[i].Read, r.adopts[i].Messages = false, nil
		}
	}
	r.commit = nil
	r.inbox.reset()
}

// Fold computes a run's story from its loaded rows. It returns a *RunError if this engine
// cannot read the run. After any other error the caller may try again.
func (n *Shared) Fold(ctx context.Context, l snapshots.Loaded, scratch *journal.Scratch) (Story, error) {
	story := Story{rows: l.Rows}
	var err error
	story.Run, err = journal.Reader{Store: n.cfg.Store, Sealer: n.cfg.Sealer, Defs: n.Defs}.FoldShort(ctx, l, scratch, &story.notes)
	var aside *journal.RunError
	if err != nil && !errors.As(err, &aside) && journal.Permanent(err) {
		err = &journal.RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err, Hint: journal.HintFor(err)}
	}
	return story, err
}

// Messages reads and decodes messages of a run. The parameter `limit` is the largest number of
// messages in the result. If too many inboxes are being read, Messages waits first.
func (s *common) Messages(ctx context.Context, run status.RunID, limit int) ([]Message, error) {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	rows, err := s.n.cfg.Store.Messages(ctx, run, 0, limit)
	if err != nil {
		return nil, fmt.Errorf("read the inbox of run %s: %w", naming.RunName(run), err)
	}
	messages := make([]Message, len(rows))
	for i, m := range rows {
		messages[i] = s.n.open(m)
		if messages[i].next, err = nextFlow(ctx, s.n, messages[i].event); err != nil {
			return nil, fmt.Errorf("read the definition for run %s: %w", naming.RunName(run), err)
		}
	}
	return messages, nil
}

// open decodes a message. If this engine cannot decode the message, the field Err of the
// result says why.
func (n *Shared) open(m store.Message) Message {
	l := Message{Message: m}
	l.event, l.Err = journal.DecodeMessage(n.cfg.Sealer, m.Run, m.Data)
	if l.Err != nil {
		return l
	}
	fits := false
	switch m.Kind {
	case store.MessageVerb:
		if _, _, fits = machine.Asked(l.event); fits {
			l.event = machine.WithAsk(l.event, int64(m.ID))
		}
	case store.MessageReply:
		_, fits = answered(l.event)
	}
	if !fits {
		l.Err = fmt.Errorf("message %d of kind %d holds %T: written by a newer version", m.ID, m.Kind, l.event)
	}
	return l
}

// A loadedMessages holds messages that the method `readInbox` has read. readInbox posts it to the
// shard as a task.
type loadedMessages struct {
	r        *ownedRun
	epoch    int // value of inbox.epoch when reading began
	messages []Message
	more     bool // the inbox may have further messages
	err      error
}

// readInbox starts a goroutine that reads a run's messages. It does nothing if no message can be
// waiting, if a goroutine is reading already, or if the run is not in phaseReady. It also does
// nothing if the time inbox.nextRead has not come, unless events of the run wait for the messages
// (inbox.first).
func (sh *shard) readInbox(ctx context.Context, r *ownedRun) {
	b, n := &r.inbox, sh.s.n
	if !b.wanted || b.reading || r.phase != phaseReady || ctx.Err() != nil {
		return
	}
	if !b.first && n.Clock.Now().Before(b.nextRead) {
		return
	}
	b.wanted, b.reading, b.gone, b.read = false, true, nil, n.Clock.Now()
	limit, epoch, first := InboxLimit+len(b.received), b.epoch, b.first
	var specs map[string]invoke.AgentSpec
	if !r.owned {
		specs = r.specs
	}
	id, name := r.id, r.name()
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		messages, err := sh.s.Messages(ctx, id, limit)
		for pause := 20 * time.Millisecond; err != nil && first && wait.For(ctx, pause) == nil; pause = min(2*pause, n.cfg.Options.RetryStore) {
			n.cfg.Logger.Warn("read messages, trying again", "run", name, "error", err)
			messages, err = sh.s.Messages(ctx, id, limit) // tried again and again, because the run's events wait until the messages are read
		}
		if err == nil && specs != nil {
			if unable := n.Equipped(ctx, id, name, specs); unable != nil {
				err = unable
			}
		}
		sh.give(task{run: r.id, back: &loadedMessages{r, epoch, messages, len(messages) == limit, err}})
	}()
}

// inboxFirst reports whether the shard must read a run's messages before it decides events of the
// run. If so, inboxFirst starts to read them. This is necessary if a call has passed its
// complete-by, because the former owner may have put an answer that came in time into the inbox. If
// the shard did not read this answer first, it would decide that the call had no answer.
func (sh *shard) inboxFirst(ctx context.Context, r *ownedRun) bool {
	b := &r.inbox
	if b.first || r.fence == 0 || !r.owned {
		return b.first
	}
	now := sh.s.n.Clock.Now()
	if due, ok := r.state.NextDue(); !ok || due.After(now) {
		return false
	}
	for _, a := range r.state.ExpiredAttempts(r.wf, now) {
		if b.read.Before(a.CompleteBy) {
			b.wanted, b.first = true, true
			sh.readInbox(ctx, r)
			b.first = b.reading
			return b.first
		}
	}
	return false
}

// clear starts a goroutine that empties the inbox of a run that has ended. If a message asks for
// the undo of the run, the goroutine makes the shard call `reopen` instead. The goroutine keeps
// answers as evidence. It drops verbs, because the person who has sent a verb sees that the run has
// ended. Answers that this engine cannot decode stay in the inbox.
func (sh *shard) clear(ctx context.Context, r *ownedRun) {
	n, s := sh.s.n, sh.s
	if !s.clearing.begin(r.id) {
		return
	}
	id, wf, state := r.id, r.wf, r.state // the run has ended, so its state does not change any more
	s.loads.Add(1)
	go func() {
		defer s.loads.Done()
		defer s.clearing.end(id)
		for {
			messages, err := s.Messages(ctx, id, InboxLimit)
			if err != nil || len(messages) == 0 {
				if err != nil && ctx.Err() == nil {
					n.Outage.Failed(doingMessages, err, "run", naming.RunName(id))
				}
				return
			}
			if slices.ContainsFunc(messages, func(l Message) bool { return l.Err == nil && reopens(state, l.event) }) {
				sh.post(func(ctx context.Context) { reopen(ctx, sh, id) })
				return
			}
			var ids []store.MessageID
			for _, l := range messages {
				if l.Err != nil && l.Kind != store.MessageVerb {
					continue // the message stays, because a newer version may be able to decode it
				}
				d := l.delivery()
				if evident(state, d) {
					if !n.KeepSurely(ctx, lateReply(id, wf, state, d)) {
						return
					}
					n.cfg.Observer.LateReply(id, d.Attempt)
				}
				ids = append(ids, l.ID)
			}
			if err := n.cfg.Store.Discard(ctx, id, ids); err != nil {
				n.Outage.Failed(doingDiscard, err, "run", naming.RunName(id))
				return
			}
			n.Outage.Worked(doingDiscard, time.Time{})
			if len(ids) < len(messages) {
				n.Backoffs.Add(id, n.Clock.Now(), n.cfg.Options.MaxScan)
			}
			if len(ids) < InboxLimit {
				return
			}
		}
	}()
}

// decideUnable starts a goroutine that decides the messages of a run without an owner. It is
// called if the run's agents are missing here.
func (s *common) decideUnable(ctx context.Context, run status.RunID) {
	s.loads.Add(1)
	go func() {
		defer s.loads.Done()
		s.unable(ctx, run)
	}()
}

// reopen reads a run that has ended, because a message asks for its undo. After that, the shard
// decides the messages of the run. If this engine is not the owner of the run, it first takes the
// run over (reopened).
func reopen(ctx context.Context, sh *shard, id status.RunID) {
	r := sh.runs[id]
	if r == nil {
		r = &ownedRun{id: id, phase: phaseLoading, reopening: true}
		sh.runs[id] = r
		sh.load(ctx, r)
	}
}
