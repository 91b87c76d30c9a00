package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/sdk"
)

// action returns the action that a call of this kind invokes.
func (d *decider) action(n *model.Node, kind model.CallKind) *dsl.Action {
	step := d.step(n)
	if (kind == model.CallUndo || kind == model.CallUndoLookup) && step.Undo != nil {
		return step.Undo.Do
	}
	return step.Do
}

func (d *decider) agentOf(n *model.Node, kind model.CallKind) string { return d.action(n, kind).Agent }

// halted reports whether no call may be dispatched.
func (d *decider) halted() bool {
	return d.run.Held() || d.run.Finished != 0 || d.run.Parked && d.run.Phase == model.PhaseForward
}

// canStart reports whether a call of the agent may start now. The shell's word about
// slots is newer than the run's memory of them. But a call that was refused until a time
// waits for that time, even if a slot is free.
func (d *decider) canStart(agent string) bool {
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
func (d *decider) refusedNow(agent string) bool { return slices.Contains(d.deferred, agent) }

// taken returns how many of the agent's slots this decision has taken.
func (d *decider) taken(agent string) int {
	for k := range d.used {
		if d.used[k].agent == agent {
			return d.used[k].calls
		}
	}
	return 0
}

// take takes a slot of the agent.
func (d *decider) take(agent string) {
	for k := range d.used {
		if d.used[k].agent == agent {
			d.used[k].calls++
			return
		}
	}
	d.used = append(d.used, use{agent, 1})
}

// hold makes a node wait for its agent. Waiting uses up no attempt (S65).
func (d *decider) hold(i int, agent string) {
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
func (d *decider) news(agent string) (until model.Instant, why string, news bool) {
	slot, limited := d.in.Slots[agent]
	until = model.ToInstant(slot.Until)
	if !limited || d.halted() || d.refusedNow(agent) || until <= d.at && d.refused(agent) > d.at {
		return 0, "", false
	}
	return until, slot.Why, true
}

// refused returns the time before which no call of the agent starts, because a call was
// refused before it was sent; 0 = no call was refused.
func (d *decider) refused(agent string) model.Instant {
	k := slices.IndexFunc(d.run.Holds, func(h model.Hold) bool { return h.Agent == agent })
	if k < 0 || k >= len(d.run.Refused) {
		return 0
	}
	return d.run.Refused[k]
}

// refuseUntil notes that a call of the agent at this place in run.holds was
// not sent and is not tried again before until; 0 = as soon as a slot frees.
func (d *decider) refuseUntil(k int, until model.Instant) {
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
func (d *decider) wait(i int, agent string, until model.Instant, why string) int {
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
		n.State = StepHeld
	}
	return k
}

// noteHold returns the agent's index in run.holds, and adds the agent if it is missing.
func (d *decider) noteHold(agent string, until model.Instant, why string) int {
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

// drain starts what waits for agents, in the order in which it began to wait
// and, within one decision, in the graph's order.
func (d *decider) drain() {
	if d.halted() {
		return
	}
	for h := range d.s.queues {
		agent := d.run.Holds[h].Agent
		for e := range d.s.queues[h].inOrder {
			n := d.get(e.node)
			if n.Place(h) != e.key {
				continue
			}
			if !d.canStart(agent) {
				if until, why, news := d.news(agent); news {
					d.wait(e.node, agent, until, why)
				}
				break
			}
			n = d.edit(e.node)
			n.Queue, n.Hold = 0, 0
			n.Track().Act = model.Idle
			if n.Expanded {
				d.fanOut(e.node)
			} else {
				d.call(e.node)
			}
		}
	}
}

// call starts the planned call of a node, or holds the node.
func (d *decider) call(i int) {
	n := d.get(i)
	if n.Undo == model.UndoNone && (d.run.Phase == model.PhaseUndo || n.Ended()) || n.Undo != model.UndoNone && n.Undo != model.UndoActive {
		return // overtaken by what happened in the same decision
	}
	kind := n.Track().Kind
	if kind == model.CallNone {
		kind = model.CallDo
		d.edit(i).Fwd.Kind = kind
	}
	if kind == model.CallDo && n.Fwd.Rest > d.at { // an older attempt has asked for it meanwhile
		d.pause(i, n.Fwd.Rest)
		return
	}
	if m, over := d.exceeded(); over && kind == model.CallDo && !d.halted() {
		d.run.Begun = true
		d.missed(i, m)
		return
	}
	if kind == model.CallDo && !d.halted() && d.mustClear(n) {
		d.clear(i)
		return
	}
	agent := d.agentOf(n, kind)
	if !d.canStart(agent) {
		d.hold(i, agent)
		return
	}
	if kind == model.CallDo && !d.prepare(i) || kind == model.CallUndo && !d.prepareUndo(i) {
		return
	}
	d.start(i, kind)
}

// start opens an attempt and commands the call.
func (d *decider) start(i int, kind model.CallKind) {
	n := d.edit(i)
	act := d.action(n, kind)
	t := n.Track()
	by := d.completeBy(i, kind)
	if by <= d.at {
		// A limit that passes this very moment expires at the next look at the
		// clock; nothing is sent that could not be answered in time.
		d.pause(i, d.at.Add(time.Microsecond))
		return
	}
	n.Calls++
	n.Stated = model.StatedNothing // what is called now relies on it
	n.Queue, n.Hold = 0, 0
	t.Act = model.Running
	if t.Began == 0 {
		t.Began = d.at
	}
	if n.Undo == model.UndoNone {
		n.State = StepRunning
	}
	d.run.Begun = true
	number := int32(t.Lookups) + 1
	if kind == model.CallDo || kind == model.CallUndo || kind == model.CallLearn {
		t.Attempt++
		number = t.Attempt
		if kind != model.CallLearn { // it undoes nothing
			t.Total++
		}
	}
	if (kind == model.CallDo || kind == model.CallLearn) && !act.ReadOnly {
		n.Doubt++
	}
	n.Attempts = append(n.Attempts, model.Attempt{
		Call: n.Calls, Kind: kind, Number: number, Started: d.at, CompleteBy: by, Gen: n.Gen,
	})
	d.hear(n, &n.Attempts[len(n.Attempts)-1])
	d.take(act.Agent)
	d.commands = append(d.commands, d.invocation(i, kind, act, int(number), by))
}

// completeBy is the earliest of the attempt's own timeout and of the limits
// around it (S10, S11). Calls that resolve an outcome are not bounded by the
// forward limits.
func (d *decider) completeBy(i int, kind model.CallKind) model.Instant {
	n := d.get(i)
	by := d.at.Add(d.timeout(n, kind))
	switch {
	case n.Undo != model.UndoNone:
		by = model.Earliest(by, n.Und.Deadline)
		if !d.run.UndoExpired {
			by = model.Earliest(by, d.run.UndoDeadline)
		}
		if n.Clearing {
			by = model.Earliest(by, d.forwardBound(i))
		}
	case kind == model.CallDo:
		by = model.Earliest(by, d.forwardBound(i))
	}
	return by
}

const defaultTimeout = 30 * time.Second

func (d *decider) timeout(n *model.Node, kind model.CallKind) time.Duration {
	var settings *dsl.Settings
	if kind == model.CallUndo || kind == model.CallUndoLookup {
		settings = d.undoSettings(n)
	} else if s, err := d.settings(n); err == nil {
		settings = s
	}
	if settings == nil || settings.Timeout <= 0 {
		return defaultTimeout
	}
	return settings.Timeout
}

// invocation is the command for an attempt.
func (d *decider) invocation(i int, kind model.CallKind, act *dsl.Action, number int, by model.Instant) Invoke {
	n := d.get(i)
	inv := Invoke{
		Attempt: AttemptID{Node: i, Call: int(n.Calls)}, Step: n.Of(), Key: n.Key,
		Agent: act.Agent, Action: act.Name, Number: number, CompleteBy: by.Time(),
		Purpose: kind.Purpose(), Input: n.Input.V, IdempotencyKey: d.forwardKey(n),
	}
	if kind == model.CallUndo || kind == model.CallUndoLookup {
		inv.Input = n.UndoInput.V
		inv.ForwardKey, inv.IdempotencyKey = inv.IdempotencyKey, d.undoKey(n)
	}
	switch {
	case (kind == model.CallDo || kind == model.CallLearn) && n.Marked():
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.Point), Blob: slices.Clone(n.Blob)}
	case kind == model.CallUndo && (n.UndoPoint != 0 || len(n.UndoBlob) > 0):
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.UndoPoint), Blob: slices.Clone(n.UndoBlob)}
	}
	return inv
}

// prepare evaluates what the first attempt needs; the input is stored once and
// serves all later attempts and the undo. An expression that cannot be
// evaluated fails the step, not the machine.
func (d *decider) prepare(i int) bool {
	n := d.get(i)
	if n.Prepared {
		return true
	}
	step, scope := d.step(n), d.scope(n)
	for _, c := range step.Pre {
		if m, ok := checkCondition(c, scope, "precondition"); !ok {
			d.edit(i).Fwd.Attempt++ // it counts, so that even `on = ["precondition_failed"]` ends
			d.run.Begun = true
			d.missed(i, m)
			return false
		}
	}
	input, err := step.Input(scope)
	if err != nil {
		d.run.Begun = true
		d.missed(i, expressionMiss("input", err))
		return false
	}
	key := ""
	if step.IdempotencyKey != nil {
		if key, err = step.IdempotencyKey(scope); err == nil && key == "" {
			err = errEmptyKey
		}
		if err != nil {
			d.run.Begun = true
			d.missed(i, expressionMiss("idempotency_key", err))
			return false
		}
	}
	if m, ok := d.grow("input", len(input.JSON())); !ok {
		d.run.Begun = true
		d.missed(i, m)
		return false
	}
	n = d.edit(i)
	n.Prepared, n.Input, n.BizKey = true, d.s.keep(input), key
	return true
}
