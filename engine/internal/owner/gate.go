package owner

import (
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/limits"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A starter decides which calls of a run may start, and reserves slots for them. The engine asks
// the starter before it commits a decision, so that each committed call has a slot.
type starter interface {
	// own returns the slot of the call that the event d answers, if the run may reuse the
	// slot for its next call. Otherwise it returns nil. The caller must release the slot.
	own(d *delivery) *call.Reservation
	// slots returns, for each agent of the run, how many calls may start now, or why no call may
	// start. The parameter `full` contains the agents whose slots seemed free, but could not be
	// reserved. The returned map is valid until the next call of slots. The map is nil if there is
	// no limit and all calls may start now.
	slots(r *ownedRun, d *delivery, own *call.Reservation, full map[string]bool, now clock.Moment) map[string]machine.Slot
	// reserve reserves one slot for every call of an agent among the commands, and adds the
	// slots to f. If the parameter `own` holds a slot of an agent, reserve uses this slot for
	// one call of that agent. If the slots of an agent are not enough, reserve keeps no slot,
	// and returns the agent's name and false.
	reserve(r *ownedRun, f *pendingCommit, own *call.Reservation, commands []machine.Command) (agent string, ok bool)
}

// A gate decides which calls of the runs that this engine owns may start now. It reserves
// slots of agents for them.
type gate struct {
	n        *Shared
	capacity invoke.Capacity // where slots of agents are reserved; nil = there is no limit
	limits   *limits.Limits  // the limits that engines share; nil = there are none
	queue    *SlotQueue
	slotsOf  map[string]machine.Slot // last result of the method `slots`, which reuses the map
}

func (g *gate) own(d *delivery) *call.Reservation {
	if !g.reusable(d) {
		return nil
	}
	if d.Slot.Of(g.capacity) && d.Slot.Take() {
		return d.Slot.Own()
	}
	return nil
}

// barred returns the reason why no call of the run may start now; nil if calls may start.
func (g *gate) barred(r *ownedRun, d *delivery, now clock.Moment) *machine.Slot {
	n := g.n
	switch {
	case d.noCalls || r.unheard:
		return &machine.Slot{Why: "the engine takes the run over"}
	case n.Idle != "":
		return &machine.Slot{Why: n.Idle}
	case n.Draining.Load():
		return &machine.Slot{Why: "engine is stopping"}
	case !now.Leased:
		return &machine.Slot{Why: call.WhyNoLease, Until: now.Store.Add(n.cfg.Options.MaxScan)}
	}
	return nil
}

// slots implements starter. Usually the runs that wait in the queue of an agent get the free slots
// of the agent first. There is one exception: when the run decides the answer to its call, it may
// use the slot of that call, or another free slot, before the runs in the queue. So the run need
// not wait in the queue between its steps. The runs in the queue do not wait for ever, because the
// run gives the slot back at the latest when it ends. If a step in the queue has a higher priority
// than the next step of the run, the step in the queue gets the slot (Slot.Yield).
func (g *gate) slots(r *ownedRun, d *delivery, own *call.Reservation, full map[string]bool, now clock.Moment) map[string]machine.Slot {
	if g.slotsOf == nil {
		g.slotsOf = map[string]machine.Slot{}
	}
	slots := g.slotsOf
	clear(slots)
	if slot := g.barred(r, d, now); slot != nil {
		for agent := range r.specs {
			slots[agent] = *slot
		}
		slots[r.wf.ChildAgent()] = *slot
		return slots
	}
	if g.capacity == nil {
		return nil
	}
	called := d.decided != nil // the queue has notified the run that a slot is free
	for agent, spec := range r.specs {
		slot := g.capacity.Slot(spec)
		if !called && !d.answers() {
			slot.Free = max(0, slot.Free-g.queue.ahead(spec.Key))
		}
		if full[agent] {
			slot.Free = 0
		}
		if own != nil && own.Key() == spec.Key && slot.Until.IsZero() && !(full[agent] && spec.MaxConcurrency > 0) {
			slot.Free++
		}
		if !slot.Until.IsZero() { // slot.Until is a time of this process's clock, but a run needs a store time
			slot.Until = now.Store.Add(max(0, slot.Until.Sub(now.Local)))
		}
		if called || d.answers() {
			slot.Yield = g.queue.highest(spec.Key)
		}
		if slot.Why == "" && (slot.Free == 0 || slot.Yield > 0) {
			slot.Why = "full"
		}
		slots[agent] = slot
	}
	return slots
}

func (g *gate) reserve(r *ownedRun, f *pendingCommit, own *call.Reservation, commands []machine.Command) (string, bool) {
	if g.capacity == nil {
		return "", true
	}
	taken := pendingCommit{}
	var used *invoke.AgentSpec // agent whose call uses the slot in the parameter `own`; nil = none
	for _, c := range commands {
		inv, ok := c.(machine.Invoke)
		if !ok || inv.Agent == r.wf.ChildAgent() {
			continue
		}
		spec := r.specs[inv.Agent]
		has := used == nil && own != nil && own.Key() == spec.Key
		if !g.reserveCall(f, spec, inv, has) {
			taken.release(g.capacity)
			return inv.Agent, false
		}
		if has {
			used = &spec
			continue
		}
		taken.reserved = append(taken.reserved, spec)
	}
	f.reserved = append(f.reserved, taken.reserved...)
	if used != nil && own.Take() {
		f.reserved = append(f.reserved, *used)
	}
	return "", true
}

// reserveCall reserves a slot for the call in the command inv. If the parameter `has` is true, the
// call has a slot already. reserveCall also asks the shared limits whether the call may start now,
// and notes in f the last time at which the call may be sent. If the result is false, nothing is
// reserved, and the call must not start.
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

// reusable reports whether the limits that engines share allow the next call of the run to use the
// slot of the call that has just been answered.
func (g *gate) reusable(d *delivery) bool {
	return g.limits == nil || !d.Slot.Of(g.capacity) || g.limits.Reusable(d.Slot.Agent())
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

// ready returns the decision that the pool has made about the event d, and removes the decision
// from the run. It returns nil in these cases:
//   - The pool has made no decision about d.
//   - The run was read again since the pool made the decision.
//   - The decision starts calls, and calls of the run may not start any more.
func (g *gate) ready(r *ownedRun, d *delivery, now clock.Moment) *costlyDecision {
	c := r.decided
	r.decided = nil
	if c == nil || c.d != d || c.state != r.state {
		return nil
	}
	calls := slices.ContainsFunc(c.rec.Commands(), func(c machine.Command) bool { _, ok := c.(machine.Invoke); return ok })
	if calls && g.barred(r, d, now) != nil {
		return nil
	}
	return c
}

// wait puts the run into the queue of each agent for whose slot a held step waits.
func (g *gate) wait(r *ownedRun) {
	held := r.state.Held()
	if len(held) == 0 {
		return
	}
	now := g.n.Clock.Now()
	for _, h := range held {
		if h.Until.After(now) {
			continue // the step waits for a time, and the run has a timer for this time
		}
		if spec, ok := r.specs[h.Agent]; ok {
			g.queue.wait(r.id, spec, urgency{h.Rank, h.Priority(r.wf, r.state)})
			if g.limits != nil {
				g.limits.Want(spec)
			}
		}
	}
}

// A noCalls is the starter for a run whose agents are missing here. It starts no call. For each
// agent of the run, it holds the reason why no call starts. People see this text.
type noCalls map[string]machine.Slot

// newNoCalls returns a noCalls for a run. The parameter `specs` holds all agents of the run. The
// parameter `missing` holds, for each agent that cannot be called here, the reason.
func newNoCalls(specs map[string]invoke.AgentSpec, missing map[string]string) noCalls {
	names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	slots := noCalls{}
	for agent := range specs {
		why, lacks := missing[agent]
		if !lacks {
			why = "no engine that also has agent " + names + " has taken the run"
		}
		slots[agent] = machine.Slot{Why: naming.CleanText(why)}
	}
	return slots
}

func (noCalls) own(*delivery) *call.Reservation { return nil }

func (c noCalls) slots(r *ownedRun, _ *delivery, _ *call.Reservation, _ map[string]bool, _ clock.Moment) map[string]machine.Slot {
	if r.wf.StartsChildren() {
		c[r.wf.ChildAgent()] = machine.Slot{Why: "no engine has taken the run"}
	}
	return c
}

func (noCalls) reserve(*ownedRun, *pendingCommit, *call.Reservation, []machine.Command) (string, bool) {
	return "", true
}
