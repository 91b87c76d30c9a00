package machine

import (
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// accept handles Started, the first event of a run. It sets the initial state of the run and makes
// the first steps ready (S14). It makes no step ready if the run waits for a place or its unique
// key, or must turn back or park at once.
func (d forward) accept(ev Started) {
	r := &d.run
	r.ID, r.Name, r.Key = ev.RunID, ev.Name, ev.Key
	r.Vars = model.StoredValue{V: ev.Vars}
	r.Trigger, r.StartedBy, r.Workflow = ev.Trigger, ev.StartedBy, d.wf.Name
	r.Steps = int32(len(d.wf.Steps))
	r.Line, r.Awaits = ev.Line, ev.Waits && r.Steps > 0
	r.Started = d.at
	r.StartBy = model.ToInstant(ev.StartBy)
	r.State = status.RunQueued
	r.Parent = model.Parent{Run: ev.Parent, Name: ev.ParentName, Step: ev.ParentStep}
	if ev.From.Run != 0 {
		heir(d).inherit(ev.From)
	}
	if ev.ReplyTo != "" {
		r.Reply = &model.ReplyTo{Sink: ev.ReplyTo, Correlation: ev.Correlation}
	}
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
	d.arrived = numbered(ev.Signals)
	if ev.Parent != 0 {
		bounds(d).set(r.Deadline, model.ToInstant(ev.Until))
	}
	if ev.Void {
		r.Cancel = true
		d.undoing().turn(dsl.Failure{Code: CodeCancelled, Message: "the parent turned back before it started this run"})
		return
	}
	if d.run.DeadlineRuns() && r.Deadline <= d.at || d.run.MustStart() && r.StartBy <= d.at {
		d.clocks().passRun()
		return
	}
	if r.Awaits {
		return
	}
	d.first()
}

// first makes those steps ready whose dependencies have ended. These are the steps without
// dependencies. In a run that has taken over results, these are also the steps that depend only on
// steps that were taken over.
func (d forward) first() {
	taken := len(d.run.Ancestors) > 0
	for i := range d.wf.Steps {
		if n := len(d.wf.Steps[i].After); n == 0 || taken && int(d.get(i).Deps) == n {
			d.ready.push(i)
		}
	}
}

// admitted starts the first steps of a run that waited for a place or for its unique key.
func (d forward) admitted() {
	if d.run.Awaits && d.run.Phase == model.PhaseForward && d.run.Finished == 0 {
		d.run.Awaits = false
		d.first()
	}
}

// begin makes step i ready and plans its call. It is called when all dependencies of the step
// have ended (S8).
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

// expand evaluates for_each of step i and creates the instances.
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
	if m, ok := d.fits(each); !ok {
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
		d.names = append(d.names, model.InstanceName{Node: number, Step: i, Name: model.NodeName(d.wf, number, item)})
	}
	if n.Count == 0 {
		d.endForward(i, status.StepSucceeded)
		return
	}
	d.fan.push(i)
}

// fanOut begins instances of the for_each step i, as many as max_parallel and the agent's
// slots allow.
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
		if !d.slots().canStart(i, step.Do.Agent) {
			d.slots().hold(i, step.Do.Agent)
			break
		}
		k := a.First + a.Next
		a.Next++
		if n := d.get(k); n.State != status.StepPending || n.Fwd.Ready != 0 {
			// The instance has begun already: a retry has set Next back to an earlier instance.
			continue
		}
		a.Active++
		d.edit(k).Fwd.Ready = d.at
		if again := d.get(k).Prepared && d.get(k).Loop.Iteration > 0; again || d.wanted(k, step.WhenEach) {
			d.caller().call(k)
		}
	}
	if held := a.Queue != 0 && a.Active == 0; !a.Ended() && !held { // slots.wait has set held
		a.State = status.StepWaiting
	}
}

// wakeUp continues the nodes whose pause or timer has ended.
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
			d.waits().timerEnded(i)
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

// drain starts nodes that wait for agents, if the agents can take calls now. Nodes start in the
// order of their ranks (slots.rank). Nodes with the same rank start in the order of the graph.
func (d slots) drain() {
	if d.halted() {
		return
	}
	for h := range d.s.queues {
		agent := d.run.Holds[h].Agent
		for e := range d.s.queues[h].inOrder {
			n := d.get(e.node)
			if n.QueuedFor(h) != e.key {
				continue
			}
			if !d.canStart(e.node, agent) {
				if until, why, news := d.news(agent); news {
					d.wait(e.node, agent, until, why)
				}
				break
			}
			n = d.edit(e.node)
			n.Queue, n.Hold = 0, 0
			n.Track().Act = model.Idle
			if n.Expanded {
				d.forward().fanOut(e.node)
			} else {
				d.caller().call(e.node)
			}
		}
	}
}

// An heir (this type) makes a new run take over results of an ended run (engine restart). The first
// record of the new run holds these results, so that an engine can read the new run without the
// ended run.
type heir struct{ *decider }

// can reports whether the run of the decision can take over results of the run in Input.Past.
func (d heir) can(from moving.From) bool {
	past := d.in.Past
	return past != nil && past.Run.ID == from.Run && len(past.Succession(d.wf, from).Refusals) == 0
}

// inherit sets the nodes of the steps that the run takes over, as if this run had made their calls.
// From now on this run undoes the effects of these steps if it turns back.
func (d heir) inherit(from moving.From) {
	past := d.in.Past
	plan := past.Succession(d.wf, from)
	d.run.Ancestors, d.run.Passed = past.Ancestors(from, plan), plan.Passed
	for _, h := range plan.Steps {
		if !h.Taken {
			continue
		}
		was := past.Nodes[h.Node]
		d.take(h.Step, was)
		if was.Expanded {
			d.instances(h.Step, was)
		}
		d.run.Done++
		for _, j := range d.wf.Steps[h.Step].Before {
			d.edit(j).Deps++
		}
	}
}

// take copies a node of the ended run, the parameter `was`, into node i of this run. If the node
// has a checkpoint, the record must be sealed, because checkpoints may be sensitive.
func (d heir) take(i int, was *model.Node) {
	moving.Take(d.edit(i), was)
	d.run.CountKept(was.Kept)
	d.secret = d.secret || len(was.Blob) > 0
}

// instances adds the instances of the for_each step i. The parameter `was` is the node of the step
// in the ended run.
func (d heir) instances(i int, was *model.Node) {
	first := d.count()
	d.edit(i).First = first
	for k := range was.Count {
		from := d.in.Past.Nodes[was.First+k]
		d.take(first+k, from)
		n := d.edit(first + k)
		n.Item, n.Step, n.Key, n.Each = true, int32(i), from.Key, model.KeepEach(from.Key, from.Each.V)
		d.added++
		d.names = append(d.names, model.InstanceName{Node: first + k, Step: i, Name: model.NodeName(d.wf, first+k, n)})
	}
}
