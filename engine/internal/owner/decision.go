package owner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// A decision is the work on one row of a run's journal. It may decide several events.
type decision struct {
	c       *decider
	r       *ownedRun
	f       *pendingCommit
	todo    []*delivery // events in the order in which they are decided
	records []machine.Record
	bytes   int             // size of the events decided so far, in bytes
	rebound bool            // the run's next_check has passed, but nothing was due
	before  status.RunState // the run's status before the first event
	costly  *costlyDecision // decision on the first event, if the pool must make it; otherwise nil
}

// all decides the events in order, as many as fit into one row.
func (x *decision) all() error {
	for i, next := 0, nextEvent; i < len(x.todo) && next != noMore; {
		var err error
		if next, err = x.one(i); err != nil {
			return err
		}
		if next == nextEvent {
			i++
		}
	}
	return nil
}

// A next is the result of deciding one event. It says which event follows.
type next uint8

const (
	nextEvent next = iota // continue with the event after this one
	sameEvent             // continue at the same index, where another event was inserted
	noMore                // the remaining events go into another row
)

// one makes the decision on the event x.todo[i]. It returns which event must follow.
func (x *decision) one(i int) (next, error) {
	c, r, d := x.c, x.r, x.todo[i]
	// A row that announces a state does not also move the run. So after this row, the run still has
	// the definition with which it has reached the state.
	if _, moves := d.Event.(machine.Migrated); x.bytes > c.most || moves && len(x.f.Transition.Announce) > 0 {
		x.postpone(i)
		return noMore, nil
	}
	if d.message != 0 && r.state.Status().Final() && !reopens(r.state, d.Event) {
		r.inbox.wanted = true // then the method `clear` handles the message when the run is removed from memory
		delete(r.inbox.received, d.message)
		return nextEvent, nil
	}
	if d.start != nil {
		r.wf, r.specs = d.start.Flow, d.start.Specs
	}
	r.time(d)
	now := c.n.Clock.Read()
	at := decidedAt(r.state, d, now.Store)
	if unsent := c.recall(r, at); len(unsent) > 0 { // the events in unsent are decided before d
		x.todo = slices.Insert(x.todo, i, unsent...)
		x.f.deliveries = x.todo
		return sameEvent, nil
	}
	var made *costlyDecision
	if c.ready != nil {
		made = c.ready(r, d, now)
	}
	rec, costly := c.one(r, x.f, d, made, at, now)
	if costly != nil {
		x.postpone(i)
		if i == 0 {
			x.costly = costly
		}
		return noMore, nil
	}
	x.own(d)
	if d.decided != nil {
		d.decided()
		d.decided = nil
	}
	if _, taken := d.Event.(machine.TakenOver); rec.Empty() && !taken {
		x.nothing(d, rec)
		return nextEvent, nil
	}
	x.consume(d)
	x.keep(d, rec)
	if x.f.moved {
		x.postpone(i + 1)
		return noMore, nil
	}
	return nextEvent, nil
}

// postpone moves the events x.todo[i:] back to the waiting events of the run. A later row
// will hold the decisions on them.
func (x *decision) postpone(i int) {
	x.r.pending = append(slices.Clone(x.todo[i:]), x.r.pending...)
	x.f.deliveries = x.todo[:i]
}

// own is called for each event that is decided. If the event d is a start or a takeover, own
// sets this engine as the owner in the transition. Otherwise it does nothing.
func (x *decision) own(d *delivery) {
	engine := x.c.engine
	if d.start != nil {
		x.f.started = d.start
		x.f.Transition.Workflow, x.f.Transition.Owner = d.start.Workflow, &engine
		x.f.Transition.Checks, x.f.Transition.Replaces = d.start.Checks, d.start.Replaces
		if e, ok := d.Event.(machine.Started); ok {
			SetRoom(&x.f.Transition, d.start.Names.Workflow, d.Arrived, e)
		}
	}
	if _, ok := d.Event.(machine.TakenOver); ok {
		x.f.Transition.Owner, x.f.adopting = &engine, true
		x.f.Transition.Heard = x.r.messagesRead
	}
}

// nothing handles an event that did not change the run. If the event is a late answer that is not
// evidence yet, the engine keeps the answer as evidence. Otherwise the row removes the message that
// contained the event.
func (x *decision) nothing(d *delivery, rec machine.Record) {
	switch {
	case rec.Late() && d.message != 0 && !d.kept && evident(x.r.state, d):
		x.f.late = append(x.f.late, d)
	case rec.Late() && d.message == 0:
		x.c.n.keepLate(x.r, d)
	default:
		x.consume(d)
	}
	_, passed := d.Event.(machine.TimePassed)
	x.rebound = x.rebound || passed && !x.r.bound.After(d.Arrived)
}

// consume makes the row remove the message that contained the event d from the inbox. It
// does nothing if d did not come in a message.
func (x *decision) consume(d *delivery) {
	if d.message != 0 {
		x.f.Transition.Consumed = append(x.f.Transition.Consumed, d.message)
	}
}

// keep adds a record to the row, and applies it to the run's state.
func (x *decision) keep(d *delivery, rec machine.Record) {
	r, f, kinds := x.r, x.f, x.c.n.FactKinds
	if wf := rec.Moved(r.wf, d.next); wf != r.wf {
		r.wf, f.moved = wf, true
	}
	x.bytes += journal.EventSize(d.Event)
	if !kinds.Empty() {
		if f.facts == nil {
			f.facts = x.c.spares.blankFacts()
		}
		var n int
		f.facts, n = story.AppendFacts(f.facts, kinds, r.wf, r.state, rec)
		f.factCount += n
	}
	AddRecord(&f.Transition, rec, r.state, r.wf)
	change := r.state.Change(&rec)
	if kinds.Empty() { // no observer asked for facts, but a snapshot stores how many facts there are
		f.factCount += story.Count(r.wf, &change)
	}
	change.Apply()
	r.note(rec.Event())
	x.records = append(x.records, rec)
	if failpoint.Enabled {
		f.events = append(f.events, rec.Event())
	}
}

// row completes the row of the journal. If nothing has to be stored, it makes no row and
// answers the waiting callers at once.
func (x *decision) row() error {
	r, f, n := x.r, x.f, x.c.n
	chk := newCheck(r, x.before)
	if f.adopting { // with floor 0, next_check is the due time, even while a call is in flight
		chk.floor = 0
	}
	switch {
	case len(x.records) > 0:
		f.Transition.At = x.records[len(x.records)-1].At()
		chk.at = f.Transition.At
		f.Transition.NextCheck = chk.next(r.bound, f.started != nil || f.adopting || chk.final)
	case x.rebound && !x.before.Final():
		// The run's next_check has passed, but the run is not due. A row without a record sets a
		// later next_check, so that scans do not find the run again needlessly.
		f.Transition.At = n.Clock.Now()
		chk.at = f.Transition.At
		f.Transition.NextCheck = chk.raised()
	case len(f.Transition.Consumed) > 0:
		// The messages did not change the run. A row without a record removes them from the inbox
		// (Transition.Consumed).
		f.Transition.At = n.Clock.Now()
	default:
		for _, d := range f.deliveries {
			d.finish(nil)
		}
		return nil
	}
	if last := r.state.Last(); f.Transition.At.Before(last) {
		f.Transition.At = last
	}
	return x.encode()
}

// release completes the row for a run whose agents are missing here. The row removes the owner, so
// that an engine that has the agents can claim the run. The function `nextCheck` computes the row's
// next_check from the time of the row.
func (x *decision) release(nextCheck func(at time.Time) time.Time) error {
	f, nobody := x.f, store.EngineID(0)
	f.Transition.Owner, f.Transition.At = &nobody, x.c.n.Clock.Now()
	if last := x.r.state.Last(); f.Transition.At.Before(last) {
		f.Transition.At = last
	}
	f.Transition.NextCheck = nextCheck(f.Transition.At).Truncate(time.Microsecond)
	return x.encode()
}

// encode encodes the records into the data of the row. The caller must have set the time of the
// row. encode returns a *rowSizeError if the row is larger than Options.MaxRow.
func (x *decision) encode() error {
	c, r, f := x.c, x.r, x.f
	r.reportRefused(&f.Transition)
	data, after, err := journal.NewRow{Run: r.id, Seq: r.seq, At: f.Transition.At, Before: r.link, Records: x.records}.Encode(c.n.cfg.Sealer, &c.rows)
	if err != nil {
		return err
	}
	if most := c.n.cfg.Options.MaxRow; len(data) > most {
		return &rowSizeError{r.seq, len(data), most}
	}
	f.Transition.Data, f.link = data, after
	return nil
}

// A rowSizeError says that a row of the journal, or a snapshot, is larger than Options.MaxRow.
type rowSizeError struct {
	seq        int32
	size, most int // size of the row and the limit, in bytes
}

// Error returns a text with the size of the row and the limit.
func (e *rowSizeError) Error() string {
	return fmt.Sprintf("journal row %d has %d bytes, more than the %d allowed", e.seq, e.size, e.most)
}

// decide turns the events in the list `todo` into one transition and applies its records to the
// run's state. So until the transition is committed, the state in memory is newer than the journal.
// Until then, no call of the transition starts, and the code that delivered the events waits. If
// the commit fails, the shard decides no further event from this state: it reads the run again,
// removes it from memory, or quarantines it. If nothing has to be written, decide returns a
// pendingCommit whose Transition has no Data. If the pool must decide the first event, decide
// returns only a costlyDecision.
func (c *decider) decide(r *ownedRun, todo []*delivery) (*pendingCommit, *costlyDecision, error) {
	x := c.begin(r, todo)
	ok := false
	defer func() { // this also runs after a panic
		if !ok {
			x.f.release(c.capacity)
		}
	}()
	if err := x.all(); err != nil || x.costly != nil {
		return nil, x.costly, err
	}
	if err := x.row(); err != nil {
		return nil, nil, err
	}
	ok = true
	return x.f, nil, nil
}

// begin returns a new decision on the events in the list `todo`, for the run's next row. It decides
// no event yet.
func (c *decider) begin(r *ownedRun, todo []*delivery) *decision {
	x := &decision{c: c, r: r, f: c.spares.blankCommit(), todo: todo, before: r.state.Status()}
	x.f.deliveries = todo
	x.f.Transition = store.Transition{Run: r.id, Seq: r.seq}
	return x
}

// nextFlow returns the workflow to which an event moves a run (engine migrate). It returns nil for
// every other event. It also returns nil if this engine can never read the definition: then the
// decision refuses the event. After an error the caller may try again.
func nextFlow(ctx context.Context, n *Shared, e machine.Event) (*dsl.Workflow, error) {
	ev, ok := e.(machine.Migrated)
	if !ok {
		return nil, nil
	}
	wf, err := n.Defs.Workflow(ctx, store.WorkflowID(ev.Workflow))
	if err != nil && journal.Permanent(err) {
		n.cfg.Logger.Error("the new definition of a run cannot be read", "workflow", ev.Workflow, "digest", ev.Digest, "error", err)
		return nil, nil
	}
	return wf, err
}
