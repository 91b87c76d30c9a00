package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/limits"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A common holds the values that all shards of one membership share.
type common struct {
	n        *Shared
	engine   store.EngineID
	done     <-chan struct{} // closed when this membership has ended
	unable   func(ctx context.Context, run status.RunID)
	capacity invoke.Capacity // slots that this membership uses; nil = there is no limit
	limits   *limits.Limits  // the limits that engines share; nil = there are none
	commits  committer

	Timers      *Timers
	Queue       *SlotQueue
	Hands       *HandKeeper
	Quarantined runSet     // runs that this membership owns and has quarantined
	Undecidable backoffSet // runs of this engine that have messages, but none that it can decide

	// handing is true if the engine is stopping and other engines are alive. Then the shards
	// release the runs that have no call of an agent in flight, so that other engines can claim
	// them.
	handing atomic.Bool
	loads   sync.WaitGroup // goroutines that read or write the store for the shards
	// Holds one value for each inbox that is being read. Its capacity limits how many inboxes are
	// read at the same time.
	reads    chan struct{}
	clearing runSet // ended runs whose inbox is being emptied
}

// A shard is one goroutine that works on a part of the runs. No other goroutine reads or
// writes the states of these runs. Other goroutines post tasks to the shard.
type shard struct {
	taskQueue
	s *common

	size   atomic.Int64 // number of runs in memory
	memory atomic.Int64 // estimated memory of the runs, in bytes
	turn   turn         // the task that the shard is doing now

	ended chan struct{} // closed when the goroutine has ended
	// left is true if the shard's goroutine did not end in time. Only the goroutine that ends
	// the membership uses this field.
	left bool

	// Only the shard's goroutine uses the fields below.
	runs map[status.RunID]*ownedRun
	// resting holds the runs at rest that this engine owns and that are not in memory. The
	// value is the number of the run's next row.
	resting map[status.RunID]int32
	decide  *decider
	gate    *gate
	out     outbox
}

func newShard(s *common) *shard {
	sh := &shard{taskQueue: taskQueue{hint: make(chan struct{}, 1)}, s: s, ended: make(chan struct{}), runs: map[status.RunID]*ownedRun{}, resting: map[status.RunID]int32{}}
	sh.gate = &gate{n: s.n, capacity: s.capacity, limits: s.limits, queue: s.Queue}
	sh.decide = &decider{n: s.n, engine: s.engine, capacity: s.capacity, starts: sh.gate, ready: sh.gate.ready, most: s.n.cfg.Options.MaxBatchBytes}
	sh.out = outbox{to: s.commits, back: &sh.taskQueue, turn: &sh.turn}
	return sh
}

// idle returns a channel. The shard closes it when the store has answered all commits of
// the shard and no task waits.
func (sh *shard) idle() <-chan struct{} {
	c := make(chan struct{})
	sh.post(func(context.Context) { sh.out.idle = append(sh.out.idle, c) })
	return c
}

// close ends the shard's work on its runs. It gives back the slots that are reserved for pending
// commits. It does not give back the slots of calls in flight: each of these calls does this at its
// end. It answers the callers that wait for an event or for the end of a run, but not the callers
// that wait for a takeover. To the map `owned`, close adds each run that this engine owned and has
// not quarantined, with the number of the run's next row. If `owned` is nil, close adds nothing.
func (sh *shard) close(owned map[status.RunID]int32) {
	for _, id := range slices.Sorted(maps.Keys(sh.runs)) {
		r := sh.runs[id]
		var deciding []*delivery
		if r.commit != nil {
			r.commit.release(sh.s.capacity)
			deciding = r.commit.deliveries
		}
		for _, d := range slices.Concat(deciding, r.pending) {
			d.finish(call.ErrNotOwner) // if d is a call's answer, it now goes to the run's next owner
		}
		if r.phase != phaseQuarantined && r.owned && owned != nil {
			owned[id] = r.seq
		}
		for _, w := range r.waiters {
			close(w)
		}
	}
	if owned != nil {
		maps.Copy(owned, sh.resting)
	}
	sh.runs, sh.resting = nil, nil
}

// alert starts to commit a row without records, with an alert that the run is quarantined. The
// alert contains the first line of the error in the parameter `cause`.
func (sh *shard) alert(ctx context.Context, r *ownedRun, cause error) {
	now := sh.s.n.Clock.Now()
	data, _, err := journal.NewRow{Run: r.id, Seq: r.seq, At: now, Before: r.link}.Encode(sh.s.n.cfg.Sealer, &sh.decide.rows)
	if err != nil {
		sh.s.n.cfg.Logger.Error("alert about a run that is quarantined", "run", r.name(), "error", err)
		return
	}
	message, _, _ := strings.Cut(cause.Error(), "\n")
	t := store.Transition{Run: r.id, Seq: r.seq, At: now, Data: data,
		Alerts: []store.Alert{{Kind: AlertQuarantined, Code: "internal", Message: message}}}
	sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil && !OverFor(l.Err) {
			sh.s.n.cfg.Logger.Error("alert about a run that is quarantined", "run", r.name(), "error", l.Err)
		}
	})
}

// parkLost starts to commit a row that parks a run and makes this engine the run's owner. At the
// end, parkLost calls the function in the parameter `done`: with nil if the row was committed, and
// otherwise with the error. If this engine already works on the run, parkLost commits nothing and
// passes nil.
func (sh *shard) parkLost(ctx context.Context, run LostRun, done func(error)) {
	n, head, event := sh.s.n, run.Head, run.Event
	if sh.runs[head.Run] != nil { // this engine works on the run, so the run is not lost
		done(nil)
		return
	}
	rec := machine.Lost(run.At, event, head.State)
	t := store.Transition{Run: head.Run, Seq: run.Seq, At: run.At, Owner: &sh.s.engine, NextCheck: store.Never}
	AddRecord(&t, rec, machine.NewState(), nil)
	data, _, err := journal.NewRow{Run: head.Run, Seq: run.Seq, At: run.At, Before: run.Before, Records: []machine.Record{rec}}.Encode(n.cfg.Sealer, &sh.decide.rows)
	if err != nil {
		done(err)
		return
	}
	t.Data = data
	failpoint.HitEvent("record.before", event)
	ok := sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err == nil {
			failpoint.HitEvent("record.after", event)
			n.cfg.Logger.Error("run is parked: engines ended with it in hand", "run", head.Name, "code", machine.CodeEngineLost, "deaths", event.Deaths, "message", event.Why)
			n.Quarantined.Gone(head.Run)
			n.Followers.Notify(head.Run)
		}
		done(l.Err)
	})
	if !ok { // this membership is over
		done(call.ErrNotOwner)
	}
}

// await returns a channel that receives the run's state when the run has ended or needs a person.
// If the shard stops working on the run first, it closes the channel. await returns nil if the run
// is not in memory. If this engine owns the run and has quarantined it, await returns the reason as
// error.
func (sh *shard) await(run status.RunID) (chan *machine.State, error) {
	r := sh.runs[run]
	switch {
	case r == nil:
		return nil, nil
	case r.phase == phaseQuarantined:
		return nil, r.err
	}
	w := make(chan *machine.State, 1)
	if r.phase == phaseReady && r.commit == nil && (r.state.Status().Final() || r.state.Status().NeedsHuman()) {
		w <- r.state.Clone()
		return w, nil
	}
	r.waiters = append(r.waiters, w)
	return w, nil
}

// drop removes a run from memory, for example because another engine owns it or because it cannot
// be read. The callers that wait for an event or a takeover of the run get err, which may be nil.
// For the callers that wait for the end of the run, drop closes the channel. If the parameter
// `cause` is not nil, drop records it as the reason why the run is quarantined.
func (sh *shard) drop(r *ownedRun, err, cause error) {
	sh.s.Hands.letGoOf(r)
	r.away, r.decided = nil, nil
	if r.commit != nil {
		r.commit.release(sh.s.capacity)
		for _, d := range r.commit.deliveries {
			d.finish(err)
		}
		r.commit = nil
	}
	for _, d := range r.pending {
		d.finish(err)
	}
	r.pending = nil
	for _, a := range r.adopts {
		a.Done(err)
	}
	r.adopts = nil
	for _, w := range r.waiters {
		close(w)
	}
	r.waiters = nil
	if cause != nil {
		sh.s.n.Quarantined.Note(r.id, cause)
	}
	sh.s.Timers.set(r.id, time.Time{}, false)
	delete(sh.runs, r.id)
	delete(sh.resting, r.id)
	r.weigh(&sh.memory, sh.runs[r.id] == r)
}

// quarantine ends the work on a run, because a decision or a commit of the run has failed. The
// parameter `cause` is the error. All callers that wait for an event or a takeover of the run get
// an error with this cause. The list `todo` holds the events that were just decided. The journal
// keeps the run's last state. If this engine owns the run, an alert in the store informs people.
// Another engine, or a newer version, may continue the run.
func (sh *shard) quarantine(ctx context.Context, r *ownedRun, todo []*delivery, cause error) {
	n := sh.s.n
	err := &journal.RunError{Run: int64(r.id), Name: r.name(), Err: cause, Hint: journal.HintFor(cause)}
	if err.Hint == "" {
		err.Hint = "its state is kept; an engine of another version may be able to go on"
	}
	r.away, r.decided = nil, nil
	n.cfg.Logger.Error("run is quarantined", "run", r.name(), "error", cause)
	var p *guard.Panic
	if errors.As(cause, &p) {
		n.cfg.Logger.Debug("stack of the panic", "run", r.name(), "stack", p.Stack)
	}
	for _, d := range todo {
		d.finish(err)
	}
	if !r.owned { // this engine may not write: another engine owns the run, or the run does not exist yet
		var noted error
		if r.seq > 0 {
			noted = err
			n.Backoffs.Add(r.id, n.Clock.Now(), n.cfg.Options.MaxScan)
		}
		sh.drop(r, err, noted)
		return
	}
	sh.s.Hands.letGoOf(r)
	r.phase, r.err = phaseQuarantined, err
	for _, d := range r.pending {
		d.finish(err)
	}
	r.pending = nil
	for _, a := range r.adopts {
		a.Done(err)
	}
	r.adopts = nil
	for _, w := range r.waiters {
		close(w)
	}
	r.waiters = nil
	n.Quarantined.Note(r.id, err)
	sh.s.Quarantined.begin(r.id)
	sh.s.Timers.set(r.id, time.Time{}, false)
	sh.alert(ctx, r, cause)
}

// clearSuspect is called after each commit of decisions on a run. A suspect is a run that may have
// crashed an engine. If the transition ends a step, an undo or the run, or makes the run wait for a
// person, the run is no suspect any more. Then clearSuspect also makes the store reset the number
// of engines that died with the run in hand, if this number is not 0. The start of an attempt is
// not enough, because the answer to its call may still crash an engine.
func (sh *shard) clearSuspect(ctx context.Context, r *ownedRun, t *store.Transition) {
	if !r.suspect || !endsWork(t) {
		return
	}
	r.suspect = false
	if r.deaths == 0 {
		return
	}
	r.deaths = 0
	n, id := sh.s.n, r.id
	sh.s.loads.Add(1)
	go func() {
		defer sh.s.loads.Done()
		if err := n.cfg.Store.Absolve(ctx, id); err != nil && ctx.Err() == nil {
			// The store keeps the old number of deaths. So after fewer than store.MaxDeaths further
			// deaths of engines, an engine may park the run.
			n.cfg.Logger.Warn("the deaths that count against a run could not be removed: the run has continued since", "run", naming.RunName(id), "error", err)
		}
	}()
}

// A LostRun is a run that must be parked, because too many engines died while they had it
// in hand. Head, Seq and Before describe the run as it is in the store.
type LostRun struct {
	Head   store.Head
	Seq    int32        // number of the run's next row
	Before journal.Link // what is needed to compute the tag or checksum of that next row
	At     time.Time    // time of the row that parks the run
	Event  machine.EngineLost
}
