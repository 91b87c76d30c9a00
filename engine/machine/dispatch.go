package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// action returns what a call of this kind invokes.
func (d *decider) action(n *node, kind callKind) *dsl.Action {
	step := d.step(n)
	if (kind == callUndo || kind == callUndoLookup) && step.Undo != nil {
		return step.Undo.Do
	}
	return step.Do
}

func (d *decider) agentOf(n *node, kind callKind) string { return d.action(n, kind).Agent }

// halted reports whether nothing may be dispatched.
func (d *decider) halted() bool {
	return d.run.held() || d.run.finished != 0 || d.run.parked && d.run.phase == phaseForward
}

// canStart reports whether a call of the agent may start now. What the shell
// says about slots is newer than what the run remembers, except that a free
// slot is no answer to a call that was refused: that waits for its time.
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
	for _, h := range d.run.holds {
		if h.agent == agent {
			return h.until <= d.at
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

// hold makes a node wait for its agent; it burns no attempt (S65).
func (d *decider) hold(i int, agent string) {
	if until, why, news := d.news(agent); news {
		d.wait(i, agent, until, why)
		return
	}
	k := slices.IndexFunc(d.run.holds, func(h hold) bool { return h.agent == agent })
	if k < 0 {
		d.wait(i, agent, 0, "")
		return
	}
	d.wait(i, agent, d.run.holds[k].until, d.run.holds[k].why)
}

// news returns what the shell says about an agent of which nothing can start,
// if that is newer than what the run remembers. After a refused call only
// another time is news.
func (d *decider) news(agent string) (until instant, why string, news bool) {
	slot, limited := d.in.Slots[agent]
	until = toInstant(slot.Until)
	if !limited || d.halted() || d.refusedNow(agent) || until <= d.at && d.refused(agent) > d.at {
		return 0, "", false
	}
	return until, slot.Why, true
}

// refused returns before when no call of the agent starts because one was not
// sent; 0 = none was.
func (d *decider) refused(agent string) instant {
	k := slices.IndexFunc(d.run.holds, func(h hold) bool { return h.agent == agent })
	if k < 0 || k >= len(d.run.refused) {
		return 0
	}
	return d.run.refused[k]
}

// refuseUntil notes that a call of the agent at this place in run.holds was
// not sent and is not tried again before until; 0 = as soon as a slot frees.
func (d *decider) refuseUntil(k int, until instant) {
	if k < len(d.run.refused) && d.run.refused[k] == until || k >= len(d.run.refused) && until == 0 {
		return
	}
	refused := make([]instant, max(k+1, len(d.run.refused)))
	copy(refused, d.run.refused)
	refused[k] = until
	d.run.refused = refused
}

// wait puts a node into the queue for an agent and notes until when nothing
// can start there. Who waits keeps its place. It returns the agent's place in
// run.holds.
func (d *decider) wait(i int, agent string, until instant, why string) int {
	if until <= d.at {
		until = 0 // an engine that frees a slot says so
	}
	k := d.noteHold(agent, until, why)
	n := d.edit(i)
	if n.queue == 0 || int(n.hold) != k+1 {
		n.queue, n.hold = d.at, int32(k+1)
	}
	t := n.track()
	t.act = queued
	if n.undo == undoNone {
		n.state = StepHeld
	}
	return k
}

// noteHold returns the agent's place in run.holds.
func (d *decider) noteHold(agent string, until instant, why string) int {
	k := slices.IndexFunc(d.run.holds, func(h hold) bool { return h.agent == agent })
	h := hold{agent: agent, until: until, why: why}
	switch {
	case k < 0:
		d.run.holds = append(slices.Clip(d.run.holds), h)
		k = len(d.run.holds) - 1
	case d.run.holds[k] != h:
		d.run.holds = slices.Clone(d.run.holds)
		d.run.holds[k] = h
	}
	if d.refused(agent) != until {
		d.refuseUntil(k, 0) // it waits for something else now
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
		agent := d.run.holds[h].agent
		for e := range d.s.queues[h].inOrder {
			n := d.get(e.node)
			if n.place(h) != e.key {
				continue
			}
			if !d.canStart(agent) {
				if until, why, news := d.news(agent); news {
					d.wait(e.node, agent, until, why)
				}
				break
			}
			n = d.edit(e.node)
			n.queue, n.hold = 0, 0
			n.track().act = idle
			if n.expanded {
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
	if n.undo == undoNone && (d.run.phase == phaseUndo || n.ended()) || n.undo != undoNone && n.undo != undoActive {
		return // overtaken by what happened in the same decision
	}
	kind := n.track().kind
	if kind == callNone {
		kind = callDo
		d.edit(i).fwd.kind = kind
	}
	if kind == callDo && n.fwd.rest > d.at { // an older attempt has asked for it meanwhile
		d.pause(i, n.fwd.rest)
		return
	}
	if m, over := d.exceeded(); over && kind == callDo && !d.halted() {
		d.run.begun = true
		d.missed(i, m)
		return
	}
	if kind == callDo && !d.halted() && d.mustClear(n) {
		d.clear(i)
		return
	}
	agent := d.agentOf(n, kind)
	if !d.canStart(agent) {
		d.hold(i, agent)
		return
	}
	if kind == callDo && !d.prepare(i) || kind == callUndo && !d.prepareUndo(i) {
		return
	}
	d.start(i, kind)
}

// start opens an attempt and commands the call.
func (d *decider) start(i int, kind callKind) {
	n := d.edit(i)
	act := d.action(n, kind)
	t := n.track()
	by := d.completeBy(i, kind)
	if by <= d.at {
		// A limit that passes this very moment expires at the next look at the
		// clock; nothing is sent that could not be answered in time.
		d.pause(i, d.at.add(time.Microsecond))
		return
	}
	n.calls++
	n.stated = statedNothing // what is called now relies on it
	n.queue, n.hold = 0, 0
	t.act = running
	if t.began == 0 {
		t.began = d.at
	}
	if n.undo == undoNone {
		n.state = StepRunning
	}
	d.run.begun = true
	number := int32(t.lookups) + 1
	if kind == callDo || kind == callUndo || kind == callLearn {
		t.attempt++
		number = t.attempt
		if kind != callLearn { // it undoes nothing
			t.total++
		}
	}
	if (kind == callDo || kind == callLearn) && !act.ReadOnly {
		n.doubt++
	}
	n.attempts = append(n.attempts, attempt{
		call: n.calls, kind: kind, number: number, started: d.at, completeBy: by, gen: n.gen,
	})
	d.hear(n, &n.attempts[len(n.attempts)-1])
	d.take(act.Agent)
	d.commands = append(d.commands, d.invocation(i, kind, act, int(number), by))
}

// completeBy is the earliest of the attempt's own timeout and of the limits
// around it (S10, S11). Calls that resolve an outcome are not bounded by the
// forward limits.
func (d *decider) completeBy(i int, kind callKind) instant {
	n := d.get(i)
	by := d.at.add(d.timeout(n, kind))
	switch {
	case n.undo != undoNone:
		by = earliest(by, n.und.deadline)
		if !d.run.undoExpired {
			by = earliest(by, d.run.undoDeadline)
		}
		if n.clearing {
			by = earliest(by, d.forwardBound(i))
		}
	case kind == callDo:
		by = earliest(by, d.forwardBound(i))
	}
	return by
}

const defaultTimeout = 30 * time.Second

func (d *decider) timeout(n *node, kind callKind) time.Duration {
	var settings *dsl.Settings
	if kind == callUndo || kind == callUndoLookup {
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
func (d *decider) invocation(i int, kind callKind, act *dsl.Action, number int, by instant) Invoke {
	n := d.get(i)
	inv := Invoke{
		Attempt: AttemptID{Node: i, Call: int(n.calls)}, Step: n.of(), Key: n.key,
		Agent: act.Agent, Action: act.Name, Number: number, CompleteBy: by.time(),
		Purpose: kind.purpose(), Input: n.input.v, IdempotencyKey: d.forwardKey(n),
	}
	if kind == callUndo || kind == callUndoLookup {
		inv.Input = n.undoInput.v
		inv.ForwardKey, inv.IdempotencyKey = inv.IdempotencyKey, d.undoKey(n)
	}
	switch {
	case (kind == callDo || kind == callLearn) && n.marked():
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.point), Blob: slices.Clone(n.blob)}
	case kind == callUndo && (n.undoPoint != 0 || len(n.undoBlob) > 0):
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.undoPoint), Blob: slices.Clone(n.undoBlob)}
	}
	return inv
}

func (k callKind) purpose() sdk.Purpose {
	switch k {
	case callDo, callLearn:
		return sdk.PurposeDo
	case callUndo:
		return sdk.PurposeUndo
	case callLookup, callUndoLookup:
		return sdk.PurposeLookup
	}
	return sdk.PurposeInvalid
}

// prepare evaluates what the first attempt needs; the input is stored once and
// serves all later attempts and the undo. An expression that cannot be
// evaluated fails the step, not the machine.
func (d *decider) prepare(i int) bool {
	n := d.get(i)
	if n.prepared {
		return true
	}
	step, scope := d.step(n), d.scope(n)
	for _, c := range step.Pre {
		if m, ok := checkCondition(c, scope, "precondition"); !ok {
			d.edit(i).fwd.attempt++ // it counts, so that even `on = ["precondition_failed"]` ends
			d.run.begun = true
			d.missed(i, m)
			return false
		}
	}
	input, err := step.Input(scope)
	if err != nil {
		d.run.begun = true
		d.missed(i, expressionMiss("input", err))
		return false
	}
	key := ""
	if step.IdempotencyKey != nil {
		if key, err = step.IdempotencyKey(scope); err == nil && key == "" {
			err = errEmptyKey
		}
		if err != nil {
			d.run.begun = true
			d.missed(i, expressionMiss("idempotency_key", err))
			return false
		}
	}
	if m, ok := d.grow("input", len(input.JSON())); !ok {
		d.run.begun = true
		d.missed(i, m)
		return false
	}
	n = d.edit(i)
	n.prepared, n.input, n.bizKey = true, d.s.keep(input), key
	return true
}
