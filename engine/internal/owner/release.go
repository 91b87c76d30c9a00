package owner

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/commit"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
)

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
	data, _, err := journal.EncodeRow(n.cfg.Sealer, &sh.rows, r.link, r.id, r.seq, at, nil)
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
	sh.commitRow(ctx, t, func(l commit.Landing) {
		if l.Err != nil {
			// Another engine wrote that row, or this membership is over. The journal says which.
			sh.load(ctx, r)
			return
		}
		sh.drop(r, call.ErrNotOwner, nil)
	})
}
