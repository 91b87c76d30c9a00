package owner

import (
	"context"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// leave looks for a reason to leave the run to other engines: for longer than a lease, a step has
// waited for an agent that does not work in this engine. Then leave asks the store for other engines.
// If there is one, this engine releases the run and does not claim it back for a while. An engine
// whose agent works claims the run. leave does nothing while a call of the run is in flight.
func (sh *shard) leave(r *ownedRun) {
	n := sh.s.n
	if n.cfg.Options.Alone || r.leaving || !sh.leavable(r) {
		return
	}
	now := n.Clock.Now()
	switch {
	case !sh.gate.down(r):
		if len(r.refusals) == 0 { // otherwise the agent did not get the run's last call
			r.down = time.Time{}
		}
		return
	case r.down.IsZero():
		r.down = now
		return
	case now.Sub(r.down) < n.cfg.Options.Lease:
		return
	}
	r.leaving, r.down = true, now
	id, engine := r.id, sh.s.engine
	sh.s.loads.Go(func() {
		live, err := n.cfg.Store.Live(context.Background())
		if err != nil {
			n.cfg.Logger.Debug("look for other engines to leave a run to", "error", err)
		}
		others := slices.ContainsFunc(live, func(m store.Member) bool { return m.Engine != engine })
		sh.give(task{run: id, fn: func(ctx context.Context) {
			if sh.runs[id] != r {
				return
			}
			r.leaving = false
			if others && sh.leavable(r) {
				n.Backoffs.Add(id, n.Clock.Now(), n.cfg.Options.Lease)
				n.cfg.Logger.Info("a run is left to other engines, because its agent does not work here", "run", r.name())
				sh.free(ctx, r)
				return
			}
			sh.unload(r)
		}})
	})
}

// leavable reports whether the run has nothing in progress in this engine and can continue in
// another engine.
func (sh *shard) leavable(r *ownedRun) bool {
	return r.owned && r.phase == phaseReady && r.commit == nil && r.away == nil && len(r.pending) == 0 && !r.state.InFlight() && Moves(r.state.Status())
}

// down reports whether a step of the run waits for an agent that does not work in this engine.
func (g *gate) down(r *ownedRun) bool {
	for _, h := range r.state.Held() {
		if spec, ok := r.specs[h.Agent]; ok && g.capacity.Slot(spec).Down {
			return true
		}
	}
	return false
}
