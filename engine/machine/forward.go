package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
)

// accept makes the run out of its first event: the initial state of the run
// and of all its steps (S14).
func (d *decider) accept(ev Started) {
	r := &d.run
	r.id, r.name, r.key = ev.RunID, ev.Name, ev.Key
	r.vars = held{v: ev.Vars}
	r.trigger, r.startedBy, r.workflow = ev.Trigger, ev.StartedBy, d.wf.Name
	r.steps = int32(len(d.wf.Steps))
	r.started = d.at
	r.state = RunQueued
	if d.wf.Deadline != nil {
		limit, err := d.wf.Deadline(d.scope(nil))
		if err != nil {
			d.turn(dsl.Failure{Code: CodeExpression, Message: "deadline: " + err.Error()})
			return
		}
		if at, ok := limit.From(d.at.time()); ok {
			r.deadline = toInstant(at)
		}
	}
	if d.deadlineRuns() && r.deadline <= d.at {
		d.passRun()
		return
	}
	for i := range d.wf.Steps {
		if len(d.wf.Steps[i].After) == 0 {
			d.ready.push(i)
		}
	}
}

// forwardOpen reports whether steps may begin.
func (d *decider) forwardOpen() bool {
	return d.run.phase == phaseForward && !d.run.parked && d.run.finished == 0
}

// begin makes a step ready: its dependencies have ended (S8).
func (d *decider) begin(i int) {
	n := d.get(i)
	if !d.forwardOpen() || n.state != StepPending || n.fwd.ready != 0 {
		return
	}
	n = d.edit(i)
	n.fwd.ready = d.at
	step := d.step(n)
	if !d.wanted(i, step.When) {
		return
	}
	n = d.edit(i)
	settings, err := d.settings(n)
	if err != nil {
		d.missed(i, expressionMiss("settings", err))
		return
	}
	if at, ok := settings.Deadline.From(d.at.time()); ok {
		if n.fwd.deadline = toInstant(at); n.fwd.deadline <= d.at {
			d.missed(i, miss{missDeadline, CodeDeadlineExceeded, "the step's deadline has passed"})
			return
		}
	}
	if step.ForEach != nil {
		d.expand(i)
		return
	}
	d.launch.push(i)
}

// wanted evaluates a node's condition, if it has one. A node whose work is not
// wanted ends here.
func (d *decider) wanted(i int, when func(*dsl.Scope) (bool, error)) bool {
	if when == nil {
		return true
	}
	yes, err := when(d.scope(d.get(i)))
	switch {
	case err != nil:
		d.missed(i, expressionMiss("when", err))
	case !yes:
		d.endForward(i, StepSkipped)
	}
	return err == nil && yes
}

// expand makes the instances of a for_each step.
func (d *decider) expand(i int) {
	n := d.edit(i)
	each, err := d.step(n).ForEach(d.scope(n))
	if err == nil && len(each.Keys) != len(each.Values) {
		err = errEach
	}
	if err != nil {
		d.missed(i, expressionMiss("for_each", err))
		return
	}
	if m, ok := d.roomFor(each); !ok {
		d.missed(i, m)
		return
	}
	n.expanded, n.first, n.count = true, d.count(), len(each.Keys)
	n.state = StepWaiting
	for k, key := range each.Keys {
		number := n.first + k
		item := d.edit(number)
		item.item, item.step, item.key, item.each = true, int32(i), key, keepEach(key, each.Values[k])
		item.state = StepPending
		d.added++
		d.names = append(d.names, NodeName{Node: number, Step: i, Name: nodeName(d.wf, number, item)})
	}
	if n.count == 0 {
		d.endForward(i, StepSucceeded)
		return
	}
	d.fan.push(i)
}

// fanOut begins instances as far as max_parallel and the agent allow.
func (d *decider) fanOut(i int) {
	a := d.get(i)
	if !d.forwardOpen() || !a.expanded || a.ended() || a.next >= a.count {
		return
	}
	step := d.step(a)
	limit := 0
	if settings, err := d.settings(a); err == nil {
		limit = settings.MaxParallel
	}
	a = d.edit(i)
	for a.next < a.count && (limit == 0 || a.active < limit) && !a.ended() && d.forwardOpen() {
		if !d.canStart(step.Do.Agent) {
			d.hold(i, step.Do.Agent)
			break
		}
		k := a.first + a.next
		a.next++
		if n := d.get(k); n.state != StepPending || n.fwd.ready != 0 {
			continue // begun before an operator set the turn back
		}
		a.active++
		d.edit(k).fwd.ready = d.at
		if d.wanted(k, step.WhenEach) {
			d.call(k)
		}
	}
	switch {
	case a.ended():
	case a.queue != 0 && a.active == 0:
		a.state = StepHeld
	default:
		a.state = StepWaiting
	}
}

// endForward ends the forward part of a node in the given state.
func (d *decider) endForward(i int, state StepState) {
	n := d.edit(i)
	n.state = state
	n.fwd.act, n.fwd.ended = idle, d.at
	n.queue, n.hold = 0, 0
	if state != StepSkipped && (!n.expanded || n.count > 0) { // else there was nothing to start
		d.run.begun = true
	}
	switch {
	case n.undo != undoNone:
		d.undo.push(i)
	case n.item:
		a := d.edit(n.of())
		a.active--
		a.over++
		d.aggregate(n.of())
	case n.well():
		d.run.done++
		if i == d.wf.Pivot && state == StepSucceeded {
			d.pivotPassed()
		}
		for _, j := range d.wf.Steps[i].Before {
			b := d.edit(j)
			if b.deps++; int(b.deps) == len(d.wf.Steps[j].After) {
				d.ready.push(j)
			}
		}
	}
}

// aggregate looks at a for_each step after one of its instances has ended.
func (d *decider) aggregate(i int) {
	a := d.get(i)
	if a.ended() || d.frozen == i+1 || a.bad > d.tolerated(i) {
		return
	}
	if a.over == a.count {
		if d.anyHopeless(i, i) {
			return // an operator has to find out first
		}
		d.edit(i).fwd.blame(miss{})
		d.endForward(i, StepSucceeded)
		return
	}
	if d.fan.last() != i {
		d.fan.push(i)
	}
}

// tolerated returns how many instances may fail.
func (d *decider) tolerated(i int) int {
	a := d.get(i)
	settings, err := d.settings(a)
	if err != nil || settings.MaxFailures == nil {
		return 0
	}
	return settings.MaxFailures(a.count)
}

// missed decides what follows a failure in the forward part. The outcome is
// looked up first where it is unknown and the action can be asked.
func (d *decider) missed(i int, m miss) {
	n := d.edit(i)
	n.fwd.blame(m)
	if m.kind == missUnknown && d.step(n).Do.Lookup && !n.open() && !n.done && n.doubt > 0 {
		n.fwd.lookups = 0
		d.lookUp(i)
		return
	}
	d.follow(i, m)
}

// lookUp asks for the outcome once nobody can be at work any more.
func (d *decider) lookUp(i int) {
	n := d.edit(i)
	n.fwd.kind = callLookup
	if until := max(n.quiet, n.fwd.rest); until > d.at {
		d.pause(i, until)
		return
	}
	d.launch.push(i)
}

// lookupMissed handles a lookup that brought no answer.
func (d *decider) lookupMissed(i int) {
	n := d.edit(i)
	if n.fwd.lookups++; n.fwd.lookups < maxLookups {
		d.pause(i, max(d.at.add(d.lookupPause(n)), n.fwd.rest))
		return
	}
	d.follow(i, n.fwd.blamed())
}

// follow is the order after a failed attempt: repeat, cool down, catch, give
// up. While another attempt is open that may still bring a result, nothing is
// given up.
func (d *decider) follow(i int, m miss) {
	n := d.edit(i)
	if n.undo != undoNone {
		d.endForward(i, StepFailed)
		return
	}
	if d.run.turning {
		d.resolvePivot(i)
		return
	}
	again, late := d.repeatable(i, m), false
	if again {
		var planned bool
		if planned, late = d.repeat(i); planned {
			return
		}
	}
	if n.open() {
		n.fwd.act, n.state = running, StepRunning
		return
	}
	if again && d.coolDown(i) {
		return
	}
	if late {
		m = noTime(m)
		d.edit(i).fwd.blame(m)
	}
	if d.catches(i, m) {
		return
	}
	d.giveUp(i, m, again || m.kind == missDeadline)
}

// catches swallows a failure if the step's catch takes its code.
func (d *decider) catches(i int, m miss) bool {
	n := d.get(i)
	c := d.step(n).Catch
	if c == nil {
		return false
	}
	codes, err := c.Errors(d.scope(n))
	if err != nil || !slices.Contains(codes, m.code) && !slices.Contains(codes, "*") {
		return false
	}
	var out dsl.Value
	if c.Output != nil {
		if out, err = c.Output(d.scope(n)); err != nil {
			return false // the original failure stands
		}
		if _, ok := d.grow("catch.output", len(out.JSON())); !ok {
			return false
		}
	}
	d.edit(i).caught = d.s.keep(out)
	d.endForward(i, StepCaught)
	return true
}

// giveUp ends a node as failed for good. exhausted says that the failure could
// have been repeated, had attempts or time been left.
func (d *decider) giveUp(i int, m miss, exhausted bool) {
	n := d.edit(i)
	if !n.item {
		d.endForward(i, StepFailed)
		d.failed(i, i, m, exhausted)
		return
	}
	a := d.edit(n.of())
	a.bad++
	if a.fwd.miss == missNone {
		a.fwd.blame(m)
	}
	d.endForward(i, StepFailed)
	if a.bad > d.tolerated(n.of()) && !a.ended() {
		d.endForward(n.of(), StepFailed)
		d.failed(n.of(), i, a.fwd.blamed(), exhausted)
		return
	}
	if d.hopeless(i) {
		d.park(d.failure(i, m))
	}
}

// hopeless reports whether nobody can find out or undo what a node may have
// left behind: the last rung of the ladder.
func (d *decider) hopeless(i int) bool {
	n := d.get(i)
	step := d.step(n)
	if n.effect() != EffectMaybe || n.known || step.NoUndo || step.Undo == nil {
		return false
	}
	if step.Undo.Do.ByKey || !step.Undo.UsesSelf || step.Do.Idempotent {
		return false
	}
	return !step.Do.Lookup || n.fwd.lookups >= maxLookups
}

// failed decides about a step that has failed for good because of node i,
// which is the step itself or one of its instances.
func (d *decider) failed(step, i int, m miss, exhausted bool) {
	f := d.failure(step, m)
	switch {
	case d.run.parked || d.run.phase == phaseUndo:
		return // recorded; an operator decides
	case d.run.passed, d.pivotOpen(), d.anyHopeless(step, i):
		d.park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedPark:
		d.park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedCompensate:
		d.turn(f)
	case d.wf.CompensationMode == dsl.ModeManual:
		d.park(f)
	default:
		d.turn(f)
	}
}

// anyHopeless looks at the node that failed; when a for_each step's deadline
// has passed, at all its instances.
func (d *decider) anyHopeless(step, i int) bool {
	if i != step || !d.get(step).expanded {
		return d.hopeless(i)
	}
	a := d.get(step)
	for k := a.first; k < a.first+a.count; k++ {
		if d.get(k).state == StepFailed && d.hopeless(k) {
			return true
		}
	}
	return false
}

func (d *decider) exhausted(step int) dsl.Exhausted {
	n := d.get(step)
	settings, err := d.settings(n)
	if err != nil {
		return dsl.ExhaustedMode
	}
	return settings.Retry.OnExhausted
}

// failure is what expressions and people see of a failure that turns the run.
func (d *decider) failure(i int, m miss) dsl.Failure {
	return dsl.Failure{Step: d.step(d.get(i)).Name, Code: m.code, Message: m.message}
}

// pause lets the working track wait until a time.
func (d *decider) pause(i int, until instant) {
	n := d.edit(i)
	t := n.track()
	t.act, t.until = backoff, until
	n.queue, n.hold = 0, 0
	if n.undo == undoNone {
		n.state = StepBackoff
	}
}

// wakeUp lets go on what has paused long enough.
func (d *decider) wakeUp() {
	if d.run.held() || d.run.finished != 0 || d.run.parked && d.run.phase == phaseForward {
		return
	}
	for _, i := range ascending(d.s.wakes.upTo(d.at, nil)) {
		n := d.get(i)
		if w := n.wake(); w == 0 || w > d.at {
			continue
		}
		n = d.edit(i)
		n.track().act = idle
		if n.undo == undoPending {
			d.undo.push(i)
		} else {
			d.launch.push(i)
		}
	}
}

func expressionMiss(what string, err error) miss {
	return miss{missExpression, CodeExpression, what + ": " + err.Error()}
}
