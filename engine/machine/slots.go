package machine

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// canStart reports whether a call of the agent may start now. The shell's word about
// slots is newer than the run's memory of them. But a call that was refused until a time
// waits for that time, even if a slot is free.
func (d slots) canStart(agent string) bool {
	if d.halted() || d.refusedNow(agent) {
		return false
	}
	slot, limited := d.in.Slots[agent]
	switch {
	case d.refused(agent) > d.at:
		return false
	case limited:
		return d.taken(agent) < slot.Free
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

// refusedNow reports whether the agent has refused a call in this decision.
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

// take takes a slot of the agent.
func (d slots) take(agent string) {
	for k := range d.used {
		if d.used[k].agent == agent {
			d.used[k].calls++
			return
		}
	}
	d.used = append(d.used, use{agent, 1})
}

// hold makes a node wait for its agent. Waiting uses up no attempt (S65).
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

// news returns the shell's word about an agent that takes no call now, if that differs
// from the run's memory. After a refused call only another time counts as different.
func (d slots) news(agent string) (until model.Instant, why string, news bool) {
	slot, limited := d.in.Slots[agent]
	until = model.ToInstant(slot.Until)
	if !limited || d.halted() || d.refusedNow(agent) || until <= d.at && d.refused(agent) > d.at {
		return 0, "", false
	}
	return until, slot.Why, true
}

// refused returns the time before which no call of the agent starts, because a call was
// refused before it was sent; 0 = no call was refused.
func (d slots) refused(agent string) model.Instant {
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	if k < 0 || k >= len(d.run.Refused) {
		return 0
	}
	return d.run.Refused[k]
}

// refuseUntil notes that a call of the agent at this place in run.holds was
// not sent and is not tried again before until; 0 = as soon as a slot frees.
func (d slots) refuseUntil(k int, until model.Instant) {
	if k < len(d.run.Refused) && d.run.Refused[k] == until || k >= len(d.run.Refused) && until == 0 {
		return
	}
	refused := make([]model.Instant, max(k+1, len(d.run.Refused)))
	copy(refused, d.run.Refused)
	refused[k] = until
	d.run.Refused = refused
}

// wait puts a node into the queue for an agent, and notes until when the agent takes no
// call. A node that is in the queue already keeps its place. It returns the agent's index
// in run.holds.
func (d slots) wait(i int, agent string, until model.Instant, why string) int {
	if until <= d.at {
		until = 0 // no time is needed: the engine sends an event when a slot is free
	}
	k := d.noteHold(agent, until, why)
	n := d.edit(i)
	if n.Queue == 0 || int(n.Hold) != k+1 {
		n.Queue, n.Hold = d.at, int32(k+1)
	}
	t := n.Track()
	t.Act = model.Queued
	if n.Undo == model.UndoNone {
		n.State = status.StepHeld
	}
	return k
}

// noteHold returns the agent's index in run.holds, and adds the agent if it is missing.
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
		d.refuseUntil(k, 0) // the refusal no longer is the reason for the wait
	}
	return k
}

// halted reports whether no call may be dispatched.
func (d slots) halted() bool {
	return d.run.Held() || d.run.Finished != 0 || d.run.Parked && d.run.Phase == model.PhaseForward
}
