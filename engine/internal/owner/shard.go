package owner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A shard is one goroutine that owns the cached states of its share of the runs. No other
// goroutine reads or writes them; others post tasks.
type shard struct {
	taskQueue
	s *Scheduler

	size atomic.Int64 // runs in memory
	held atomic.Int64 // bytes that the runs take, estimated
	turn turn         // what it does now

	ended chan struct{} // closed when the goroutine has ended
	left  bool          // it did not end in time; only the goroutine that ends the membership uses it

	// Only the shard's goroutine uses the rest.
	runs   map[status.RunID]*ownedRun
	decide *decider
	gate   *gate
	out    outbox
}

func newShard(s *Scheduler) *shard {
	sh := &shard{taskQueue: taskQueue{hint: make(chan struct{}, 1)}, s: s, ended: make(chan struct{}), runs: map[status.RunID]*ownedRun{}}
	sh.gate = &gate{n: s.n, capacity: s.capacity, queue: s.Queue}
	sh.decide = &decider{n: s.n, engine: s.engine, capacity: s.capacity, starts: sh.gate, ready: sh.gate.ready, most: s.n.cfg.Options.MaxBatchBytes}
	sh.out = outbox{to: s.commits, back: &sh.taskQueue, turn: &sh.turn}
	return sh
}

// do carries out a task.
func (sh *shard) do(ctx context.Context, t *task) {
	switch {
	case t.d != nil:
		sh.accept(ctx, t.run, t.d)
	case t.it != nil:
		sh.answered(ctx, t.it)
	case t.call != nil:
		sh.heard(ctx, t.call)
	default:
		t.fn(ctx)
	}
}

// loop carries out tasks until last is closed, and then the tasks that are left. One of
// those may be a landed row, whose calls this process must start or report as not sent.
// After ctx has ended the shard decides nothing new.
func (sh *shard) loop(ctx context.Context, last <-chan struct{}) {
	defer close(sh.ended)
	var batch []task
	for ended := false; ; {
		batch = sh.take(batch, ended)
		for i := range batch {
			sh.turn.start(batch[i].about())
			sh.do(ctx, &batch[i])
			batch[i] = task{}
			if (i+1)%inARow == 0 {
				sh.out.flush(ctx)
			}
		}
		sh.turn.end()
		sh.out.flush(ctx)
		if len(batch) > 0 {
			sh.size.Store(int64(len(sh.runs)))
			if sh.empty() {
				sh.out.rest()
			}
			continue
		}
		if ended {
			return
		}
		select {
		case <-sh.hint:
		case <-last:
			ended = true
		}
	}
}

// quiet returns a channel that is closed when no commit is in flight and no event waits.
func (sh *shard) quiet() <-chan struct{} {
	c := make(chan struct{})
	sh.post(func(context.Context) { sh.out.idle = append(sh.out.idle, c) })
	return c
}

// close gives back what the shard's runs had reserved, and notes in owned, unless
// that is nil, those that were owned.
func (sh *shard) close(owned map[status.RunID]int32) {
	for _, id := range slices.Sorted(maps.Keys(sh.runs)) {
		r := sh.runs[id]
		var told []*delivery
		if r.commit != nil {
			r.commit.release(sh.s.capacity)
			told = r.commit.deliveries
		}
		for _, d := range slices.Concat(told, r.pending) {
			d.finish(call.ErrNotOwner) // the sender finds the run's next owner
		}
		if r.phase != phaseQuarantined && r.owned && owned != nil {
			owned[id] = r.seq
		}
		for _, w := range r.waiters {
			close(w)
		}
	}
	sh.runs = nil
}

// alert appends a row that holds no record, only the alert.
func (sh *shard) alert(ctx context.Context, r *ownedRun, cause error) {
	now := sh.s.n.Clock.Now()
	data, _, err := journal.EncodeRow(sh.s.n.cfg.Sealer, &sh.decide.rows, r.link, r.id, r.seq, now, nil)
	if err != nil {
		sh.s.n.cfg.Logger.Error("alert about a run that is quarantined", "run", r.name(), "error", err)
		return
	}
	message, _, _ := strings.Cut(cause.Error(), "\n")
	t := store.Transition{Run: r.id, Seq: r.seq, At: now, Data: data,
		Alerts: []store.Alert{{Kind: "set_aside", Code: "internal", Message: message}}}
	sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil && !OverFor(l.Err) {
			sh.s.n.cfg.Logger.Error("alert about a run that is quarantined", "run", r.name(), "error", l.Err)
		}
	})
}

// release gives up a run while the engine stops and waits for calls of other runs. The
// run itself has no call in flight. The row holds no record: it removes the owner and
// makes the run due at once. Runs that wait for a person, and paused runs, gain nothing
// by it and stay.
func (sh *shard) release(ctx context.Context, r *ownedRun) {
	n := sh.s.n
	if !sh.s.handing.Load() || !r.owned || r.phase != phaseReady || r.commit != nil || len(r.pending) > 0 ||
		r.state.InFlight() || !Moves(r.state.Status()) || n.Calls.InFlight() == 0 || ctx.Err() != nil {
		return
	}
	at := n.Clock.Now()
	if last := r.state.Last(); at.Before(last) {
		at = last
	}
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.decide.rows, r.link, r.id, r.seq, at, nil)
	if err != nil {
		n.cfg.Logger.Error("hand a run back", "run", r.name(), "error", err)
		return
	}
	nobody, check := store.EngineID(0), at // any engine may go on with it at once
	if due, ok := r.state.NextDue(); ok && due.Before(at) {
		check = due // a bound is never later than what is due
	}
	t := store.Transition{Run: r.id, Seq: r.seq, At: at, Owner: &nobody, NextCheck: check.Truncate(time.Microsecond), Data: data}
	r.phase = phaseLoading // nothing is decided until the store has answered
	sh.s.Timers.set(r.id, time.Time{}, false)
	// If this membership ends meanwhile, it gives up everything at once.
	sh.out.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil {
			// Another engine wrote that row, or this membership is over. The journal says which.
			sh.load(ctx, r)
			return
		}
		sh.drop(r, call.ErrNotOwner, nil)
	})
}

// A LostRun is a run with which too many engines died, as it stands in the store.
type LostRun struct {
	Head   store.Head
	Seq    int32        // number of its next row
	Before journal.Link // of its last row
	At     time.Time
	Event  machine.EngineLost
}

// parkLost commits the row that parks a run, and makes this engine its owner. done
// is told what became of it.
func (sh *shard) parkLost(ctx context.Context, run LostRun, done func(error)) {
	n, head, event := sh.s.n, run.Head, run.Event
	if sh.runs[head.Run] != nil { // it is being worked on here
		done(nil)
		return
	}
	rec := machine.Lost(run.At, event, head.State)
	t := store.Transition{Run: head.Run, Seq: run.Seq, At: run.At, Owner: &sh.s.engine, NextCheck: store.Never}
	AddRecord(&t, rec, machine.NewState())
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.decide.rows, run.Before, head.Run, run.Seq, run.At, []machine.Record{rec})
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
			n.Followers.Tell(head.Run)
		}
		done(l.Err)
	})
	if !ok { // this membership ends
		done(call.ErrNotOwner)
	}
}
