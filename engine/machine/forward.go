package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// forward moves the forward part of a run: steps begin, are repeated, and end.
type forward struct{ *decider }

// accept handles the first event. It sets the initial state of the run and of all its
// steps (S14).
func (d forward) accept(ev Started) {
	r := &d.run
	r.ID, r.Name, r.Key = ev.RunID, ev.Name, ev.Key
	r.Vars = model.Held{V: ev.Vars}
	r.Trigger, r.StartedBy, r.Workflow = ev.Trigger, ev.StartedBy, d.wf.Name
	r.Steps = int32(len(d.wf.Steps))
	r.Started = d.at
	r.State = status.RunQueued
	if d.wf.Deadline != nil {
		limit, err := d.wf.Deadline(d.scope(nil))
		if err != nil {
			d.undoing().turn(dsl.Failure{Code: CodeExpression, Message: "deadline: " + err.Error()})
			return
		}
		if at, ok := limit.From(d.at.Time()); ok {
			r.Deadline = model.ToInstant(at)
		}
	}
	if d.run.DeadlineRuns() && r.Deadline <= d.at {
		d.clocks().passRun()
		return
	}
	for i := range d.wf.Steps {
		if len(d.wf.Steps[i].After) == 0 {
			d.ready.push(i)
		}
	}
}

// begin makes a step ready: its dependencies have ended (S8).
func (d forward) begin(i int) {
	n := d.get(i)
	if !d.forwardOpen() || n.State != status.StepPending || n.Fwd.Ready != 0 {
		return
	}
	n = d.edit(i)
	n.Fwd.Ready = d.at
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
	if at, ok := settings.Deadline.From(d.at.Time()); ok {
		if n.Fwd.Deadline = model.ToInstant(at); n.Fwd.Deadline <= d.at {
			d.missed(i, model.Miss{Kind: model.MissDeadline, Code: CodeDeadlineExceeded, Message: "the step's deadline has passed"})
			return
		}
	}
	if step.ForEach != nil {
		d.expand(i)
		return
	}
	d.launch.push(i)
}

// wanted evaluates a node's condition, if it has one. If the condition is false the node
// ends as skipped.
func (d forward) wanted(i int, when func(*dsl.Scope) (bool, error)) bool {
	if when == nil {
		return true
	}
	yes, err := when(d.scope(d.get(i)))
	switch {
	case err != nil:
		d.missed(i, expressionMiss("when", err))
	case !yes:
		d.endForward(i, status.StepSkipped)
	}
	return err == nil && yes
}

// expand makes the instances of a for_each step.
func (d forward) expand(i int) {
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
	n.Expanded, n.First, n.Count = true, d.count(), len(each.Keys)
	n.State = status.StepWaiting
	for k, key := range each.Keys {
		number := n.First + k
		item := d.edit(number)
		item.Item, item.Step, item.Key, item.Each = true, int32(i), key, model.KeepEach(key, each.Values[k])
		item.State = status.StepPending
		d.added++
		d.names = append(d.names, NodeName{Node: number, Step: i, Name: model.NodeName(d.wf, number, item)})
	}
	if n.Count == 0 {
		d.endForward(i, status.StepSucceeded)
		return
	}
	d.fan.push(i)
}

// fanOut begins instances as far as max_parallel and the agent allow.
func (d forward) fanOut(i int) {
	a := d.get(i)
	if !d.forwardOpen() || !a.Expanded || a.Ended() || a.Next >= a.Count {
		return
	}
	step := d.step(a)
	limit := 0
	if settings, err := d.settings(a); err == nil {
		limit = settings.MaxParallel
	}
	a = d.edit(i)
	for a.Next < a.Count && (limit == 0 || a.Active < limit) && !a.Ended() && d.forwardOpen() {
		if !d.slots().canStart(step.Do.Agent) {
			d.slots().hold(i, step.Do.Agent)
			break
		}
		k := a.First + a.Next
		a.Next++
		if n := d.get(k); n.State != status.StepPending || n.Fwd.Ready != 0 {
			continue // begun before an operator set the turn back
		}
		a.Active++
		d.edit(k).Fwd.Ready = d.at
		if d.wanted(k, step.WhenEach) {
			d.caller().call(k)
		}
	}
	switch {
	case a.Ended():
	case a.Queue != 0 && a.Active == 0:
		a.State = status.StepHeld
	default:
		a.State = status.StepWaiting
	}
}

// endForward ends the forward part of a node in the given state.
func (d forward) endForward(i int, state status.StepState) {
	n := d.edit(i)
	n.State = state
	n.Fwd.Act, n.Fwd.Ended = model.Idle, d.at
	n.Queue, n.Hold = 0, 0
	if state != status.StepSkipped && (!n.Expanded || n.Count > 0) { // else there was nothing to start
		d.run.Begun = true
	}
	switch {
	case n.Undo != model.UndoNone:
		d.undo.push(i)
	case n.Item:
		a := d.edit(n.Of())
		a.Active--
		a.Over++
		d.aggregate(n.Of())
	case n.Well():
		d.run.Done++
		if i == d.wf.Pivot && state == status.StepSucceeded {
			d.undoing().pivotPassed()
		}
		for _, j := range d.wf.Steps[i].Before {
			b := d.edit(j)
			if b.Deps++; int(b.Deps) == len(d.wf.Steps[j].After) {
				d.ready.push(j)
			}
		}
	}
}

// aggregate looks at a for_each step after one of its instances has ended.
func (d forward) aggregate(i int) {
	a := d.get(i)
	if a.Ended() || d.frozen == i+1 || a.Bad > d.tolerated(i) {
		return
	}
	if a.Over == a.Count {
		if d.anyHopeless(i, i) {
			return // an operator has to settle an unknown outcome first
		}
		d.edit(i).Fwd.Blame(model.Miss{})
		d.endForward(i, status.StepSucceeded)
		return
	}
	if d.fan.last() != i {
		d.fan.push(i)
	}
}

// tolerated returns how many instances may fail.
func (d forward) tolerated(i int) int {
	a := d.get(i)
	settings, err := d.settings(a)
	if err != nil || settings.MaxFailures == nil {
		return 0
	}
	return settings.MaxFailures(a.Count)
}

// missed decides what follows a failed or unknown forward attempt. If the outcome is
// unknown and the action has a lookup, the lookup comes first.
func (d forward) missed(i int, m model.Miss) {
	n := d.edit(i)
	n.Fwd.Blame(m)
	if m.Kind == model.MissUnknown && d.step(n).Do.Lookup && !n.Open() && !n.Done && n.Doubt > 0 {
		n.Fwd.Lookups = 0
		d.lookUp(i)
		return
	}
	d.follow(i, m)
}

// lookUp plans the lookup for the time when no earlier attempt can be at work any more.
func (d forward) lookUp(i int) {
	n := d.edit(i)
	n.Fwd.Kind = model.CallLookup
	if until := max(n.Quiet, n.Fwd.Rest); until > d.at {
		d.pause(i, until)
		return
	}
	d.launch.push(i)
}

// lookupMissed handles a lookup that did not find out the outcome.
func (d forward) lookupMissed(i int) {
	n := d.edit(i)
	if n.Fwd.Lookups++; n.Fwd.Lookups < maxLookups {
		d.pause(i, max(d.at.Add(d.lookupPause(n)), n.Fwd.Rest))
		return
	}
	d.follow(i, n.Fwd.Blamed())
}

// follow tries, after a failed attempt, in this order: repeat, cool down, catch, give up.
// It does not give up while another attempt is open, because that may still succeed.
func (d forward) follow(i int, m model.Miss) {
	n := d.edit(i)
	if n.Undo != model.UndoNone {
		d.endForward(i, status.StepFailed)
		return
	}
	if d.run.Turning {
		d.undoing().resolvePivot(i)
		return
	}
	again, late := d.repeatable(i, m), false
	if again {
		var planned bool
		if planned, late = d.repeat(i); planned {
			return
		}
	}
	if n.Open() {
		n.Fwd.Act, n.State = model.Running, status.StepRunning
		return
	}
	if again && d.coolDown(i) {
		return
	}
	if late {
		d.noTimeLeft(i, m)
		m = noTime(m)
	}
	if d.catches(i, m) {
		return
	}
	d.giveUp(i, m, again || m.Kind == model.MissDeadline)
}

// noTimeLeft notes that a failed node has no time for another attempt.
func (d forward) noTimeLeft(i int, last model.Miss) {
	n := d.edit(i)
	n.Data = d.s.keep(lastAttempt(last, n.Data.V))
	n.Fwd.Blame(noTime(last))
}

// catches swallows a failure if the step's catch takes its code.
func (d forward) catches(i int, m model.Miss) bool {
	n := d.get(i)
	c := d.step(n).Catch
	if c == nil {
		return false
	}
	codes, err := c.Errors(d.scope(n))
	if err != nil || !slices.Contains(codes, m.Code) && !slices.Contains(codes, "*") {
		return false
	}
	var out dsl.Value
	if c.Output != nil {
		if out, err = c.Output(d.scope(n)); err != nil {
			return false // the original failure counts
		}
		if _, ok := d.grow("catch.output", len(out.JSON())); !ok {
			return false
		}
	}
	d.edit(i).Caught = d.s.keep(out)
	d.endForward(i, status.StepCaught)
	return true
}

// giveUp ends a node as failed for good. exhausted says that the failure allowed another
// attempt, but that no attempts or no time were left.
func (d forward) giveUp(i int, m model.Miss, exhausted bool) {
	n := d.edit(i)
	if !n.Item {
		d.endForward(i, status.StepFailed)
		d.failed(i, i, m, exhausted)
		return
	}
	a := d.edit(n.Of())
	a.Bad++
	if a.Fwd.Miss == model.MissNone {
		a.Fwd.Blame(m)
	}
	d.endForward(i, status.StepFailed)
	if a.Bad > d.tolerated(n.Of()) && !a.Ended() {
		d.endForward(n.Of(), status.StepFailed)
		d.failed(n.Of(), i, a.Fwd.Blamed(), exhausted)
		return
	}
	if d.hopeless(i) {
		d.ending().park(d.failure(i, m))
	}
}

// hopeless reports whether neither a lookup nor an undo can deal with the effect that a
// node may have. Then only a person can.
func (d forward) hopeless(i int) bool { return hopeless(d.wf, d.get(i)) }

func hopeless(wf *dsl.Workflow, n *model.Node) bool {
	step := wf.Steps[n.Step]
	if n.Effect() != status.EffectMaybe || n.Known || step.NoUndo || step.Undo == nil {
		return false
	}
	if step.Undo.Do.ByKey || !step.Undo.UsesSelf || step.Do.Idempotent {
		return false
	}
	return !step.Do.Lookup || n.Fwd.Lookups >= maxLookups
}

// failed decides about a step that has failed for good because of node i,
// which is the step itself or one of its instances.
func (d forward) failed(step, i int, m model.Miss, exhausted bool) {
	f := d.failure(step, m)
	switch {
	case d.run.Parked || d.run.Phase == model.PhaseUndo:
		return // the failure is recorded, and an operator decides
	case d.run.Passed, d.pivotOpen(), d.anyHopeless(step, i):
		d.ending().park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedPark:
		d.ending().park(f)
	case exhausted && d.exhausted(step) == dsl.ExhaustedCompensate:
		d.undoing().turn(f)
	case d.wf.CompensationMode == dsl.ModeManual:
		d.ending().park(f)
	default:
		d.undoing().turn(f)
	}
}

// anyHopeless checks the node that failed. If the deadline of a for_each step has
// passed, it checks all instances.
func (d forward) anyHopeless(step, i int) bool {
	if i != step || !d.get(step).Expanded {
		return d.hopeless(i)
	}
	a := d.get(step)
	for k := a.First; k < a.First+a.Count; k++ {
		if d.get(k).State == status.StepFailed && d.hopeless(k) {
			return true
		}
	}
	return false
}

func (d forward) exhausted(step int) dsl.Exhausted {
	n := d.get(step)
	settings, err := d.settings(n)
	if err != nil {
		return dsl.ExhaustedMode
	}
	return settings.Retry.OnExhausted
}

// failure returns the failure that turns the run, as expressions and people see it.
func (d forward) failure(i int, m model.Miss) dsl.Failure {
	return dsl.Failure{Step: d.step(d.get(i)).Name, Code: m.Code, Message: m.Message}
}

// pause makes the forward part or the undo of a node, whichever is active, wait until a time.
func (d forward) pause(i int, until model.Instant) {
	n := d.edit(i)
	t := n.Track()
	t.Act, t.Until = model.Backoff, until
	n.Queue, n.Hold = 0, 0
	if n.Undo == model.UndoNone {
		n.State = status.StepBackoff
	}
}

// wakeUp continues nodes whose pause has ended.
func (d forward) wakeUp() {
	if d.run.Held() || d.run.Finished != 0 || d.run.Parked && d.run.Phase == model.PhaseForward {
		return
	}
	for _, i := range ascending(d.s.wakes.upTo(d.at, nil)) {
		n := d.get(i)
		if w := n.Wake(); w == 0 || w > d.at {
			continue
		}
		n = d.edit(i)
		if n.Waits() {
			d.waits().rang(i)
			continue
		}
		n.Track().Act = model.Idle
		if n.Undo == model.UndoPending {
			d.undo.push(i)
		} else {
			d.launch.push(i)
		}
	}
}

func expressionMiss(what string, err error) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeExpression, Message: what + ": " + err.Error()}
}
