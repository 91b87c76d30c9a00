package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// What an inbox asks of the store, for people.
const (
	doingMail    = "read messages"
	doingLate    = "keep a late answer"
	doingDiscard = "discard messages to a run that has ended"
)

// InboxLimit is how many messages of a run are read at once.
const InboxLimit = 256

// An inbox is what an engine that works on a run knows of its inbox. Messages
// are read after the run was, so that none is decided twice: if the row of
// another engine has consumed one, our row is stale, and both are read again.
type inbox struct {
	wanted  bool // there may be messages that were not read
	reading bool
	first   bool                     // nothing is decided before they were read
	epoch   int                      // what was read under another number is void
	held    map[store.MessageID]bool // read: being decided, or not decidable here
	stuck   int                      // how many of them are not decidable here
	gone    map[store.MessageID]bool // consumed since reading began
	read    time.Time                // store time when they were read last
	quiet   time.Time                // store time before which no scan looks again, because only what is stuck was there
	pause   time.Duration            // how long the next such rest is
}

// hold notes that a message was read.
func (b *inbox) hold(id store.MessageID) {
	if b.held == nil {
		b.held = map[store.MessageID]bool{}
	}
	b.held[id] = true
}

// reset forgets what was read.
func (b *inbox) reset() {
	*b = inbox{wanted: b.wanted || len(b.held) > b.stuck, epoch: b.epoch + 1, read: b.read, quiet: b.quiet, pause: b.pause}
}

// A Message is one of the inbox as it was read.
type Message struct {
	store.Message
	event machine.Event
	Err   error // why it cannot be decided here
}

// inboxChanged looks into the inbox of a run of this engine or of nobody.
func (sh *shard) inboxChanged(ctx context.Context, id status.RunID) {
	r := sh.runs[id]
	if r == nil {
		r = &ownedRun{id: id, phase: phaseLoading}
		sh.runs[id] = r
		r.inbox.wanted = true
		sh.load(ctx, r)
		return
	}
	r.inbox.wanted = true
	sh.readInbox(ctx, r)
}

// readInbox reads a run's messages on a goroutine of its own, if there may be any.
func (sh *shard) readInbox(ctx context.Context, r *ownedRun) {
	b, n := &r.inbox, sh.s.n
	if !b.wanted || b.reading || r.phase != phaseReady || ctx.Err() != nil {
		return
	}
	if !b.first && n.Clock.Now().Before(b.quiet) {
		return
	}
	b.wanted, b.reading, b.gone, b.read = false, true, nil, n.Clock.Now()
	limit, epoch, first := InboxLimit+len(b.held), b.epoch, b.first
	var specs map[string]invoke.AgentSpec
	if !r.owned {
		specs = r.specs
	}
	id, name := r.id, r.name()
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		letters, err := sh.s.Messages(ctx, id, limit)
		for pause := 20 * time.Millisecond; err != nil && first && wait.For(ctx, pause) == nil; pause = min(2*pause, n.cfg.Options.RetryStore) {
			n.cfg.Logger.Warn("read messages, trying again", "run", name, "error", err)
			letters, err = sh.s.Messages(ctx, id, limit) // nothing is decided before
		}
		if err == nil && specs != nil {
			if unable := n.Equipped(ctx, id, name, specs); unable != nil {
				err = unable
			}
		}
		sh.give(task{run: r.id, fn: func(ctx context.Context) { sh.inboxRead(ctx, r, epoch, letters, len(letters) == limit, err) }})
	}()
}

// inboxFirst reports whether a run's messages are being read before anything is
// decided. An engine that had the run before may have put an answer there that
// came in time: without it the attempt would expire.
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

// Messages reads and decodes up to limit messages of a run.
func (s *Scheduler) Messages(ctx context.Context, run status.RunID, limit int) ([]Message, error) {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	messages, err := s.n.cfg.Store.Messages(ctx, run, 0, limit)
	if err != nil {
		return nil, fmt.Errorf("read the inbox of run %s: %w", naming.RunName(run), err)
	}
	letters := make([]Message, len(messages))
	for i, m := range messages {
		letters[i] = s.n.open(m)
	}
	return letters, nil
}

// open decodes a message.
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

// answered returns the attempt that an event answers, or of which it is a sign of
// life; ok is false for what comes from no agent.
func answered(e machine.Event) (id machine.AttemptID, ok bool) {
	switch e := e.(type) {
	case machine.AttemptOK:
		return e.Attempt, true
	case machine.AttemptFailed:
		return e.Attempt, true
	case machine.AttemptUnknown:
		return e.Attempt, true
	case machine.AttemptNotDone:
		return e.Attempt, true
	case machine.AttemptDeferred:
		return e.Attempt, true
	case machine.AttemptProgress:
		return e.Attempt, true
	}
	return machine.AttemptID{}, false
}

// delivery makes an event on its way out of a message.
func (l Message) delivery() *delivery {
	d := &delivery{Answer: call.Answer{Event: l.event, Arrived: l.At}, message: l.ID, data: l.Data}
	d.Attempt, _ = answered(l.event)
	return d
}

// inboxRead goes on with a run whose messages were read.
func (sh *shard) inboxRead(ctx context.Context, r *ownedRun, epoch int, letters []Message, more bool, err error) {
	b, n := &r.inbox, sh.s.n
	if sh.runs[r.id] != r || b.epoch != epoch {
		return
	}
	b.reading, b.first = false, false
	gone := b.gone
	b.gone = nil
	var unable *journal.RunError
	switch {
	case r.phase != phaseReady:
		return
	case errors.As(err, &unable):
		sh.drop(r, unable, nil)
		sh.s.decideUnable(ctx, r.id)
		return
	case err != nil:
		if ctx.Err() == nil {
			n.Outage.Failed(doingMail, err, "run", r.name())
		}
	default:
		n.Outage.Worked(doingMail, time.Time{})
	}
	if len(letters) > 0 {
		failpoint.Hit("inbox.read")
	}
	fresh, stuck := 0, 0
	for _, l := range letters {
		switch {
		case l.Err != nil:
			stuck++
			if !b.held[l.ID] {
				n.cfg.Logger.Error("a message cannot be read here and is left", "run", r.name(), "message", l.ID, "error", l.Err)
				n.Quarantined.Note(r.id, &journal.RunError{Run: int64(r.id), Name: r.name(), Err: l.Err, Hint: journal.HintFor(l.Err)})
			}
		case b.held[l.ID] || gone[l.ID]:
			continue
		default:
			fresh++
			d := l.delivery()
			d.quiet = r.unheard
			r.pending = append(r.pending, d)
		}
		b.hold(l.ID)
	}
	b.stuck = stuck
	switch {
	case fresh > 0:
		b.pause, b.quiet = 0, time.Time{}
		sh.s.Undecidable.Take(r.id)
		b.wanted = b.wanted || more
		slices.SortStableFunc(r.pending, earlier)
	case stuck > 0:
		b.pause = min(max(n.cfg.Options.MaxScan, 2*b.pause), 20*n.cfg.Options.MaxScan)
		b.quiet = n.Clock.Now().Add(b.pause)
		if r.owned { // else every tick would take the message for work
			sh.s.Undecidable.Rest(r.id, b.quiet, sh.s.Undecidable.Woken())
		}
	}
	switch {
	case r.owned:
		if r.unheard && err == nil {
			sh.heardMore(r, more)
		}
		sh.step(ctx, r)
		sh.readInbox(ctx, r)
	case r.commit != nil: // it is being taken over by now
	case err == nil && (fresh > 0 || r.wanted()):
		sh.takeOver(ctx, r, Adoption{Read: true, Messages: letters})
	default:
		if stuck > 0 {
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, call.ErrNotOwner, nil)
	}
}

// consumed notes that messages went with a row that has landed.
func (b *inbox) consumed(ids []store.MessageID) {
	for _, id := range ids {
		delete(b.held, id)
		if b.reading {
			if b.gone == nil {
				b.gone = map[store.MessageID]bool{}
			}
			b.gone[id] = true
		}
	}
}

// unread takes out of deliveries what has to be read or asked for again:
// messages and takeovers.
func unread(deliveries []*delivery) []*delivery {
	return slices.DeleteFunc(slices.Clone(deliveries), func(d *delivery) bool {
		_, taken := d.Event.(machine.TakenOver)
		return taken || d.message != 0
	})
}

// keepMessages keeps what came too late to count of what was decided.
func (sh *shard) keepMessages(ctx context.Context, r *ownedRun, f *pendingCommit) {
	for _, d := range f.late {
		sh.keepMessage(ctx, r, d)
	}
	f.late = nil
}

// keepMessage keeps an answer that came too late to count as evidence and then
// has its message consumed: it is in one of the two places at any time.
func (sh *shard) keepMessage(ctx context.Context, r *ownedRun, d *delivery) {
	late := lateReply(r.id, r.wf, r.state, d)
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if !sh.s.n.KeepSurely(ctx, late) {
			return // this membership ends, and the message is still there
		}
		sh.s.n.cfg.Observer.LateReply(r.id, d.Attempt)
		sh.post(func(ctx context.Context) {
			if sh.runs[r.id] != r || !r.inbox.held[d.message] {
				return
			}
			again := *d
			again.kept = true
			r.pending = append(r.pending, &again)
			sh.step(ctx, r)
		})
	}()
}

// lateReply makes the row that keeps a late answer that came as a message.
func lateReply(run status.RunID, wf *dsl.Workflow, state *machine.State, d *delivery) store.LateReply {
	step := ""
	if wf != nil && d.Attempt.Node >= 0 && d.Attempt.Node < state.NodeCount() {
		step = story.Node(state, wf, d.Attempt.Node).Name
	}
	outcome, code, _ := call.OutcomeOf(d.Event)
	return store.LateReply{
		Run: run, Node: int32(d.Attempt.Node), Call: int32(d.Attempt.Call), Step: naming.CleanText(step),
		At: d.Arrived, Outcome: outcome, Code: naming.CleanText(code), Data: d.data,
	}
}

// KeepSurely keeps a late answer, and tries until it is kept or ctx ends.
func (n *Shared) KeepSurely(ctx context.Context, l store.LateReply) bool {
	pause := 20 * time.Millisecond
	for {
		err := n.cfg.Store.KeepLate(ctx, l)
		if err == nil || errors.Is(err, store.ErrNotFound) {
			n.Outage.Worked(doingLate, time.Time{})
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.Outage.Failed(doingLate, err, "run", naming.RunName(l.Run))
		if wait.For(ctx, pause) != nil {
			return false
		}
		pause = min(2*pause, n.cfg.Options.RetryStore)
	}
}

// clear empties the inbox of a run that has ended. Answers are kept as evidence. A
// person who asked for something finds that the run has ended.
func (sh *shard) clear(ctx context.Context, r *ownedRun) {
	n, s := sh.s.n, sh.s
	if !s.clearing.begin(r.id) {
		return
	}
	id, wf, state := r.id, r.wf, r.state // it has ended: the state does not change any more
	s.loads.Add(1)
	go func() {
		defer s.loads.Done()
		defer s.clearing.end(id)
		for {
			letters, err := s.Messages(ctx, id, InboxLimit)
			if err != nil || len(letters) == 0 {
				if err != nil && ctx.Err() == nil {
					n.Outage.Failed(doingMail, err, "run", naming.RunName(id))
				}
				return
			}
			var ids []store.MessageID
			for _, l := range letters {
				if l.Err != nil && l.Kind != store.MessageVerb {
					continue // a newer version may read it
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
			if len(ids) < len(letters) {
				n.Backoffs.Add(id, n.Clock.Now(), n.cfg.Options.MaxScan)
			}
			if len(ids) < InboxLimit {
				return
			}
		}
	}()
}

// decideUnable has the messages of a run without an owner decided, although its agents
// are missing here.
func (s *Scheduler) decideUnable(ctx context.Context, run status.RunID) {
	s.loads.Add(1)
	go func() {
		defer s.loads.Done()
		s.unable(ctx, run)
	}()
}
