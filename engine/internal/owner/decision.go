package owner

import (
	"fmt"
	"slices"

	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// A decision is the work on one row of a run's journal.
type decision struct {
	sh      *shard
	r       *ownedRun
	f       *pendingCommit
	todo    []*delivery // events in the order in which they are decided
	records []machine.Record
	bytes   int              // of the events that were decided
	rebound bool             // the bound in the run's row has passed
	before  machine.RunState // the run's status before the first of them
}

// A next says how a decision goes on.
type next uint8

const (
	nextEvent next = iota // with the event after this one
	sameEvent             // with the event that has this one's place now
	noMore                // the other events are decided in another row
)

// one decides event number i of the list. Returns errOffloaded if the pool decides it.
func (x *decision) one(i int) (next, error) {
	sh, r, d := x.sh, x.r, x.todo[i]
	if x.bytes > sh.s.n.cfg.Options.MaxBatchBytes {
		x.f.deliveries = sh.postpone(r, x.todo, i)
		return noMore, nil
	}
	if d.message != 0 && r.state.Status().Final() {
		r.inbox.wanted = true // its inbox is emptied when the shard forgets the run
		delete(r.inbox.held, d.message)
		return nextEvent, nil
	}
	if d.start != nil {
		r.wf, r.specs = d.start.Flow, d.start.Specs
	}
	r.time(d)
	now := sh.s.n.Clock.Read()
	at := decidedAt(r.state, d, now.Store)
	if unsent := sh.recall(r, at); len(unsent) > 0 { // these events are decided first
		x.todo = slices.Insert(x.todo, i, unsent...)
		x.f.deliveries = x.todo
		return sameEvent, nil
	}
	rec, costly := sh.decideOne(r, x.f, d, at, now)
	if costly != nil {
		x.f.deliveries = sh.postpone(r, x.todo, i)
		if i == 0 {
			sh.offload(r, costly)
			return noMore, errOffloaded
		}
		return noMore, nil
	}
	sh.begin(r, x.f, d)
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
	return nextEvent, nil
}

// nothing handles an event that changes nothing.
func (x *decision) nothing(d *delivery, rec machine.Record) {
	switch {
	case rec.Late() && d.message != 0 && !d.kept && evident(x.r.state, d):
		x.f.late = append(x.f.late, d)
	case rec.Late() && d.message == 0:
		x.sh.keepLate(x.r, d)
	default:
		x.consume(d)
	}
	_, passed := d.Event.(machine.TimePassed)
	x.rebound = x.rebound || passed && !x.r.bound.After(d.Arrived)
}

// consume has the row remove the message that brought an event.
func (x *decision) consume(d *delivery) {
	if d.message != 0 {
		x.f.Transition.Consumed = append(x.f.Transition.Consumed, d.message)
	}
}

// keep adds a record to the row and to the run's state.
func (x *decision) keep(d *delivery, rec machine.Record) {
	r, f, told := x.r, x.f, x.sh.s.n.Told
	x.bytes += journal.EventSize(d.Event)
	if !told.Empty() {
		if f.facts == nil {
			f.facts = x.sh.spares.blankFacts()
		}
		var n int
		f.facts, n = story.AppendFacts(f.facts, told, r.wf, r.state, rec)
		f.told += n
	}
	AddRecord(&f.Transition, rec, r.state)
	r.state.Apply(rec)
	r.note(rec.Event())
	x.records = append(x.records, rec)
	if failpoint.Enabled {
		f.events = append(f.events, rec.Event())
	}
}

// row makes the row of what was decided. Where nothing was decided and nothing has to
// be stored it makes none, and answers those who wait.
func (x *decision) row() error {
	sh, r, f, n := x.sh, x.r, x.f, x.sh.s.n
	chk := sh.check(r, x.before)
	if f.adopting { // a run that was taken over may wait long: scans should not visit it in vain
		chk.floor = 0
	}
	switch {
	case len(x.records) > 0:
		f.Transition.At = x.records[len(x.records)-1].At()
		chk.at = f.Transition.At
		f.Transition.NextCheck = chk.next(r.bound, f.started != nil || f.adopting || chk.final)
	case x.rebound && !x.before.Final():
		// The bound in the run's row has passed but nothing is due. A row
		// without a record raises it, so that no scan visits the run in vain.
		f.Transition.At = n.Clock.Now()
		chk.at = f.Transition.At
		f.Transition.NextCheck = chk.raised()
	case len(f.Transition.Consumed) > 0:
		// The messages change nothing, and have to leave the inbox all the same.
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
	data, after, err := journal.EncodeRow(n.cfg.Sealer, &sh.rows, r.link, r.id, r.seq, f.Transition.At, x.records)
	if err != nil {
		return err
	}
	if len(data) > n.cfg.Options.MaxRow {
		return fmt.Errorf("journal row %d has %d bytes, more than the %d allowed", r.seq, len(data), n.cfg.Options.MaxRow)
	}
	f.Transition.Data, f.link = data, after
	return nil
}
