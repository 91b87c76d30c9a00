package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

// handBack gives up, one by one, the runs that another engine could go on with
// now. An engine that stops waits for calls in flight, which may take long; runs
// without a call have no reason to wait with it. What is not given up here becomes
// free when the engine leaves.
//
// Where no other engine is alive, a run without an owner would gain nothing, and
// no engine would notice that its time has passed.
func (t *membership) handBack(ctx context.Context) {
	live, err := t.n.cfg.Store.Live(ctx)
	if err != nil {
		t.n.cfg.Logger.Debug("look for other engines to hand runs back to", "error", err)
		return
	}
	s := t.scheduler
	if !slices.ContainsFunc(live, func(m store.Member) bool { return m.Engine != t.engine }) {
		return
	}
	s.handing.Store(true)
	for _, sh := range s.shards {
		sh.post(func(ctx context.Context) {
			for _, id := range slices.Sorted(maps.Keys(sh.runs)) {
				sh.release(ctx, sh.runs[id])
			}
		})
	}
}

// release gives up a run while the engine stops, if other calls keep the engine
// and none is in flight for this run. The row that gives it up holds no record: it
// only says that the run has no owner and is due at once. Runs that wait
// for a person, or for a person's resume, gain nothing and stay.
func (sh *shard) release(ctx context.Context, r *ownedRun) {
	n := sh.s.n
	if !sh.s.handing.Load() || !r.owned || r.phase != phaseReady || r.commit != nil || len(r.pending) > 0 ||
		r.state.InFlight() || !moves(r.state.Status()) || n.calls.InFlight() == 0 || ctx.Err() != nil {
		return
	}
	at := n.clock.Now()
	if last := r.state.Last(); at.Before(last) {
		at = last
	}
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.scratch, r.link, r.id, r.seq, at, nil)
	if err != nil {
		n.cfg.Logger.Error("hand a run back", "run", r.name(), "error", err)
		return
	}
	nobody, check := store.EngineID(0), at // any engine may go on with it at once
	if due, ok := r.state.NextDue(); ok && due.Before(at) {
		check = due // a bound is never later than what is due
	}
	t := store.Transition{Run: r.id, Seq: r.seq, At: at, Owner: &nobody, NextCheck: check.Truncate(time.Microsecond), Data: data}
	r.phase = phaseLoading // nothing is decided until the row is answered
	sh.s.timers.set(r.id, time.Time{}, false)
	// If this incarnation ends meanwhile, it gives up everything at once.
	sh.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil {
			// The row is another's, or this incarnation is over: the journal tells.
			sh.load(ctx, r)
			return
		}
		sh.drop(r, ErrNotOwner, nil)
	})
}
