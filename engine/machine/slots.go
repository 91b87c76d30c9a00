package machine

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// canStart reports whether a call of the agent may start now. It uses the number of free
// slots in the input, which is newer than run.Holds. But if the engine refused to send an
// earlier call before some time, no call starts before that time, even if a slot is free.
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

// refusedNow reports whether the event of this decision says that the engine has not sent a
// call of the agent.
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

// hold makes a node wait for its agent. A wait does not count as an attempt (S65).
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

// news returns until when and why an agent takes no call now, according to the input. If the
// result news is false, the run must use its own entry in run.Holds. That is so in four
// cases. The input has no entry for the agent. No call of the run may start at all. The
// event says that a call of the agent was not sent. An earlier refusal still applies, and
// the input gives no future time.
func (d slots) news(agent string) (until model.Instant, why string, news bool) {
	slot, limited := d.in.Slots[agent]
	until = model.ToInstant(slot.Until)
	if !limited || d.halted() || d.refusedNow(agent) || until <= d.at && d.refused(agent) > d.at {
		return 0, "", false
	}
	return until, slot.Why, true
}

// refused returns the time before which no call of the agent may start, because the engine
// refused to send an earlier call; 0 if no call was refused.
func (d slots) refused(agent string) model.Instant {
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	if k < 0 || k >= len(d.run.Refused) {
		return 0
	}
	return d.run.Refused[k]
}

// refuseUntil records that a call of the agent was not sent, and until when no other call
// is tried. k is the agent's index in run.Holds. until = 0 means until a slot becomes free.
func (d slots) refuseUntil(k int, until model.Instant) {
	if k < len(d.run.Refused) && d.run.Refused[k] == until || k >= len(d.run.Refused) && until == 0 {
		return
	}
	refused := make([]model.Instant, max(k+1, len(d.run.Refused)))
	copy(refused, d.run.Refused)
	refused[k] = until
	d.run.Refused = refused
}

// wait puts a node into the queue for an agent, and records until when the agent takes no
// call. A node that is in the queue already keeps its place. It returns the agent's index
// in run.Holds.
func (d slots) wait(i int, agent string, until model.Instant, why string) int {
	if until <= d.at {
		until = 0 // no time is needed: the engine sends an event when a slot becomes free
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

// noteHold records in run.Holds until when and why an agent takes no call. It returns the
// agent's index there.
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
		d.refuseUntil(k, 0) // the node no longer waits because an earlier call was not sent
	}
	return k
}

// halted reports whether no call of the run may start at all.
func (d slots) halted() bool {
	return d.run.Held() || d.run.Finished != 0 || d.run.Parked && d.run.Phase == model.PhaseForward
}
