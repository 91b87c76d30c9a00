package owner

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/limits"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

// limit makes the Capacity of the membership. If the node has a Capacity, the Capacity of the
// membership also holds the engine to its part of the limits that all engines of the database share.
func (s *Scheduler) limit() {
	of := s.n.cfg.Capacity
	if of == nil {
		return
	}
	s.Limits = limits.New(of, limits.Config{
		Store: s.n.cfg.Store, Engine: s.engine, Clock: s.n.Clock, Outage: s.n.Outage,
		Waiting: func(key string) int { return s.Queue.ahead(key) },
		Free:    func(key string) { s.Queue.Free(key) },
		Later:   func(key string) { s.Queue.dismiss(key) },
	})
	s.limits, s.capacity = s.Limits, newLedger(s.Limits)
}

// reserveCall reserves a slot for the call in the command inv, unless the call has a slot already.
// It also asks whether the call may start now, and notes in f until when it may be sent. If the
// result is false, nothing is reserved, and the call must not start.
func (g *gate) reserveCall(f *pendingCommit, spec invoke.AgentSpec, inv machine.Invoke, has bool) bool {
	if !has && !g.capacity.Reserve(spec, 1) {
		return false
	}
	if g.limits == nil {
		return true
	}
	by, ok := g.limits.Start(spec, inv.CompleteBy)
	if !ok {
		if !has {
			g.capacity.Release(spec, 1)
		}
		return false
	}
	if !by.IsZero() && (f.startBy.IsZero() || by.Before(f.startBy)) {
		f.startBy = by
	}
	return true
}

// reusable returns the slot of the call that has just been answered, if the next call of the run
// may use it; otherwise nil.
func (g *gate) reusable(d *delivery) *call.Reservation {
	if !d.Slot.Of(g.capacity) || g.limits != nil && !g.limits.Reusable(d.Slot.Agent()) || !d.Slot.Take() {
		return nil
	}
	return d.Slot.Own()
}

// sendBy returns the last time at which a call of this agent may be sent; zero = its complete-by.
func (f *pendingCommit) sendBy(spec invoke.AgentSpec) time.Time {
	if spec.RateLimit.Calls == 0 {
		return time.Time{}
	}
	return f.startBy
}
