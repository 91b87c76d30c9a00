package machine

import (
	"cmp"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
)

// canStart reports whether a call of node i to the agent may start now. It uses the free slots in
// Input.Slots, because they are newer than the data in run.Holds. The engine may also have
// refused to send an earlier call, and have given a time before which no call may start. Until
// then canStart returns false, even if a slot is free.
func (d slots) canStart(i int, agent string) bool {
	if d.halted() || d.refusedNow(agent) || d.still && agent != "" {
		return false
	}
	slot, limited := d.in.Slots[agent]
	switch {
	case d.refused(agent) > d.at:
		return false
	case limited:
		return d.taken(agent) < slot.Free && !d.yields(i, agent, slot)
	}
	if _, hint := d.in.Event.(SlotsFreed); hint {
		return true
	}
	for _, h := range d.run.Holds {
		if h.Agent == agent {
			return h.Until <= d.at
		}
	}
	return true
}

// refusedNow reports whether the event of this decision is an AttemptDeferred of this agent. Such
// an event means that the engine has just refused to send a call.
func (d slots) refusedNow(agent string) bool { return slices.Contains(d.deferred, agent) }

// taken returns how many of the agent's slots this decision has taken.
func (d slots) taken(agent string) int {
	for k := range d.used {
		if d.used[k].agent == agent {
			return d.used[k].calls
		}
	}
	return 0
}

// take counts one more slot of the agent as taken by this decision.
func (d slots) take(agent string) {
	for k := range d.used {
		if d.used[k].agent == agent {
			d.used[k].calls++
			return
		}
	}
	d.used = append(d.used, use{agent, 1})
}

// hold makes node i wait for its agent. Waiting does not count as an attempt (S65).
func (d slots) hold(i int, agent string) {
	if until, why, news := d.news(agent); news {
		d.wait(i, agent, until, why)
		return
	}
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	if k < 0 {
		d.wait(i, agent, 0, "")
		return
	}
	d.wait(i, agent, d.run.Holds[k].Until, d.run.Holds[k].Why)
}

// news returns until when and why an agent takes no call now, according to Input.Slots. The
// third result is false if the decision must use the agent's entry in run.Holds instead. That
// happens in four cases: (1) Input.Slots has no entry for the agent; (2) no call of the run
// may start at all; (3) the event says that the engine did not send a call of this agent; (4)
// an earlier refusal still applies, and Input.Slots gives no future time.
func (d slots) news(agent string) (until model.Instant, why string, news bool) {
	slot, limited := d.in.Slots[agent]
	until = model.ToInstant(slot.Until)
	if !limited || d.halted() || d.refusedNow(agent) || until <= d.at && d.refused(agent) > d.at {
		return 0, "", false
	}
	return until, slot.Why, true
}

// refused returns the time before which no call of the agent may start, because the engine
// refused to send an earlier call. It returns 0 if there is no such time.
func (d slots) refused(agent string) model.Instant {
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	if k < 0 || k >= len(d.run.Refused) {
		return 0
	}
	return d.run.Refused[k]
}

// refuseUntil records that the engine refused to send a call of an agent, and that no call of this
// agent may start before a certain time. That time is the parameter `until`; if it is 0,
// refuseUntil removes the recorded time. k is the agent's index in run.Holds.
func (d slots) refuseUntil(k int, until model.Instant) {
	if k < len(d.run.Refused) && d.run.Refused[k] == until || k >= len(d.run.Refused) && until == 0 {
		return
	}
	refused := make([]model.Instant, max(k+1, len(d.run.Refused)))
	copy(refused, d.run.Refused)
	refused[k] = until
	d.run.Refused = refused
}

// wait puts node i into the queue for an agent, and records until when and why the agent takes no
// call. If the node is in the queue already, it keeps its position. The node becomes held. But a
// for_each step with instances that have begun and not ended stays waiting. The method `wait`
// returns the agent's index in run.Holds.
func (d slots) wait(i int, agent string, until model.Instant, why string) int {
	if until <= d.at {
		until = 0 // the time has passed: the node waits for the event SlotsFreed
	}
	k := d.noteHold(agent, until, why)
	n := d.edit(i)
	if n.Queue == 0 || int(n.Hold) != k+1 {
		n.Queue, n.Hold = d.rank(n), int32(k+1)
	}
	t := n.Track()
	t.Act = model.Queued
	switch {
	case n.Undo != model.UndoNone:
	case n.Expanded && n.Active > 0: // a for_each step: some of its instances have begun
		n.State = status.StepWaiting
	default:
		n.State = status.StepHeld
	}
	return k
}

// noteHold records in run.Holds until when and why an agent takes no call. It returns the
// agent's index in run.Holds.
func (d slots) noteHold(agent string, until model.Instant, why string) int {
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	h := model.Hold{Agent: agent, Until: until, Why: why}
	switch {
	case k < 0:
		d.run.Holds = append(slices.Clip(d.run.Holds), h)
		k = len(d.run.Holds) - 1
	case d.run.Holds[k] != h:
		d.run.Holds = slices.Clone(d.run.Holds)
		d.run.Holds[k] = h
	}
	if d.refused(agent) != until {
		d.refuseUntil(k, 0) // the time of an earlier refusal does not apply any more
	}
	return k
}

// halted reports whether no call of the run may start at all.
func (d slots) halted() bool {
	return d.run.Held() || d.run.Finished != 0 || d.run.Parked && d.run.Phase == model.PhaseForward
}

// priority returns the priority of the calls of a node, including its undo. If the expression of
// the step cannot be evaluated, the result is the priority of the run. Such an error fails the step
// only when the step begins (forward.begin).
func (d slots) priority(n *model.Node) int {
	if d.wf.StepPriorities {
		if s, err := d.settings(n); err == nil && s.Priority >= 0 {
			return s.Priority
		}
	}
	return d.run.Line.Priority()
}

// rank returns the rank of a node that begins to wait now. The node with the smallest rank is the
// next. The rank is the present time if the node has the priority of the run. For each point of
// priority above the run's, the rank is earlier by line.PerPoint. For each point below, it is later
// by line.PerPoint. So the order depends on the priority and on how long a node has waited, as for
// runs (line.Line.Rank).
func (d slots) rank(n *model.Node) model.Instant {
	lift := d.priority(n) - d.run.Line.Priority()
	return max(1, d.at-model.Instant(lift)*model.Instant(line.PerPoint.Microseconds()))
}

// yields reports whether node i leaves the free slots of the agent to steps of other runs, because
// one of them has a higher priority. If the event is SlotsFreed, the first node takes its slot in
// any case, because the engine sends this event to the run whose turn it is.
func (d slots) yields(i int, agent string, slot Slot) bool {
	if slot.Yield == 0 {
		return false
	}
	if _, first := d.in.Event.(SlotsFreed); first && d.taken(agent) == 0 {
		return false
	}
	return d.priority(d.get(i)) < slot.Yield
}

// fanFirst sorts the nodes that are about to start, in the queues d.launch and d.fan, by priority.
// It reports whether the next node to start is in d.fan, which holds for_each steps. It does
// nothing if no step of the workflow has a priority.
func (d slots) fanFirst() bool {
	if !d.wf.StepPriorities {
		return false
	}
	d.order(&d.launch)
	d.order(&d.fan)
	return d.fan.len() > 0 && d.priority(d.get(d.fan.items[d.fan.first])) > d.priority(d.get(d.launch.items[d.launch.first]))
}

// order sorts the nodes of a queue by priority, the highest first. Nodes with the same priority
// keep their order.
func (d slots) order(q *queue) {
	if q.len() < 2 || len(q.items) == q.ordered {
		return
	}
	type urgent struct{ node, priority int }
	list := make([]urgent, 0, q.len())
	for _, i := range q.items[q.first:] {
		list = append(list, urgent{i, d.priority(d.get(i))})
	}
	slices.SortStableFunc(list, func(a, b urgent) int { return cmp.Compare(b.priority, a.priority) })
	for k, u := range list {
		q.items[q.first+k] = u.node
	}
	q.ordered = len(q.items)
}

// Priority returns the priority of the first step that waits for the agent: the argument `priority`
// of the step, or the priority of the run. The parameter `s` is the state from which `h` comes.
func (h HeldAgent) Priority(wf *dsl.Workflow, s *State) int {
	if !wf.StepPriorities {
		return s.run.Line.Priority()
	}
	d := (*Scratch)(nil).decider()
	d.open(wf, s, Input{})
	return d.slots().priority(s.nodes[h.first])
}
