package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
)

// A person who stated the outcome of a step (SettleRequested) may have been wrong. The statement
// can be corrected as long as, after the statement, no call of the step or of a dependent step has
// started, and no dependent step has ended. If a dependent step is only ready, or waits for its
// agent, a correction makes that step pending again. A statement about an undo cannot be corrected,
// because the run acts on it at once.

// correct replaces what a person stated earlier about the outcome of node i. If that is not
// possible any more, correct refuses the verb.
func (d verbs) correct(i int, ev SettleRequested) {
	n := d.get(i)
	switch {
	case ev.As == SettleUndone:
		d.refuse("settle", ev.By, "a person can say that %s has been undone only while its outcome is unknown", d.name(i))
		return
	case ev.As == SettleNotDone && !n.Done, ev.As == SettleSucceeded && n.Done && sameOutcome(n, ev):
		d.refuse("settle", ev.By, "the outcome of %s is known and not in doubt: a person has already settled it in this way", d.name(i))
		return
	case ev.As != SettleNotDone && ev.As != SettleSucceeded:
		d.refuse("settle", ev.By, "say what happened")
		return
	case n.Done && ev.As == SettleNotDone && n.Of() == d.wf.Pivot && d.run.Passed:
		d.refuse("settle", ev.By, "the pivot has succeeded: only its output can be corrected")
		return
	}
	if n.Stated == model.StatedEnd {
		if j := d.relying(n.Of()); j >= 0 {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has begun because of that: the outcome cannot be corrected any more", d.name(i), n.Manual, d.name(j))
			return
		}
		if n.Item && d.get(n.Of()).Ended() && d.get(n.Of()).Well() && ev.As != SettleSucceeded {
			d.refuse("settle", ev.By, "%s was settled by %s, and %s has ended because of that: the outcome cannot be corrected any more", d.name(i), n.Manual, d.name(n.Of()))
			return
		}
	}
	var out dsl.Value
	if ev.As == SettleSucceeded {
		var ok bool
		if out, ok = d.stated(i, ev); !ok {
			return
		}
	}
	d.forget()
	switch {
	case n.Undo != model.UndoNone:
		d.correctUndone(i, ev, out)
	case n.Done && ev.As == SettleSucceeded:
		d.correctOutput(i, ev, out)
	default:
		d.takeBack(i)
		d.settleForward(i, ev)
	}
}

// sameOutcome reports whether the node already has the output that the person states.
func sameOutcome(n *model.Node, ev SettleRequested) bool {
	return n.Known && string(n.Output.V.JSON()) == string(ev.Output.JSON())
}

// relying returns the index of a step that depends on the given step and has begun; -1 if there
// is none. If there is one, the outcome of the given step cannot be corrected any more.
func (d verbs) relying(step int) int {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.Calls > 0 || b.Expanded || b.Loop != (model.Loop{}) || b.Fwd.Attempt > 0 || b.Ended() && b.State != status.StepCancelled {
			return j
		}
	}
	return -1
}

// forget drops cached values, because they were computed from a result that changes now.
func (d verbs) forget() {
	d.s.cache = &cache{}
	d.seen = seen{}
}

// correctOutput replaces the output of a settled node by the parameter `out`.
func (d verbs) correctOutput(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.Known, n.Output = true, d.s.keep(out)
	n.Manual = ev.By
	if n.Stated == model.StatedEnd {
		d.unready(n.Of())
	}
}

// unready makes dependents of a step pending again, if they are ready but were not called. The
// correction may change the inputs of these dependents.
func (d verbs) unready(step int) {
	for _, j := range d.wf.Steps[step].Before {
		b := d.get(j)
		if b.Ended() || b.Fwd.Ready == 0 {
			continue
		}
		b = d.edit(j)
		b.State = status.StepPending
		b.Fwd.Act, b.Fwd.Kind = model.Idle, model.CallNone
		b.Fwd.Ready, b.Fwd.Deadline, b.Fwd.Until = 0, 0, 0
		b.Queue, b.Hold = 0, 0
		b.Prepared, b.Input, b.BizKey = false, model.StoredValue{}, ""
		d.ending().reopen(j)
	}
}

// takeBack removes what a person stated about node i. After that, the outcome of the node is
// unknown again, as before the statement.
func (d verbs) takeBack(i int) {
	n := d.edit(i)
	ended := n.Stated == model.StatedEnd
	n.Stated = model.StatedNothing
	n.Done, n.Known, n.Output = false, false, model.StoredValue{}
	n.Doubt = max(1, n.Doubt)
	if !ended || n.State == status.StepFailed && d.run.Parked {
		return
	}
	if n.Item {
		d.takeBackItem(i)
	} else {
		if n.Well() {
			d.run.Done--
			for _, j := range d.wf.Steps[i].Before {
				d.edit(j).Deps--
			}
			d.unready(i)
		}
		n.Fwd.Blame(doubtful(n))
	}
	n.State, n.Caught = status.StepFailed, model.StoredValue{}
	d.ending().park(d.failure(i, n.Fwd.Blamed()))
}

// takeBackItem takes back what a person said about the outcome of instance i. The instance counts
// as failed again. If max_failures does not tolerate one more failure, the for_each step fails,
// too.
func (d verbs) takeBackItem(i int) {
	n := d.edit(i)
	m := doubtful(n)
	n.Fwd.Blame(m)
	if n.State == status.StepFailed {
		return
	}
	a := d.edit(n.Of())
	if a.Bad++; a.Bad > d.forward().tolerated(n.Of()) {
		a.State, a.Fwd.Ended = status.StepFailed, d.at
		a.Queue, a.Hold = 0, 0
		a.Fwd.Act = model.Idle
		a.Fwd.Blame(m)
	}
}

// doubtful looks for the node's latest forward attempt with an unknown outcome, and returns the
// failure of that attempt. If there is none, it returns a failure with the code
// CodeOutcomeUnknown.
func doubtful(n *model.Node) model.Miss {
	if a := n.LastUnknown(); a != nil {
		return model.Miss{Kind: model.MissUnknown, Code: a.Code(), Message: a.Message()}
	}
	return model.Miss{Kind: model.MissUnknown, Code: CodeOutcomeUnknown, Message: ""}
}

// correctUndone corrects what a person stated about the effect of node i, while the run is being
// undone. The caller has checked that no undo was called after that statement.
func (d verbs) correctUndone(i int, ev SettleRequested, out dsl.Value) {
	n := d.edit(i)
	n.Manual = ev.By
	was := n.Undo
	if ev.As == SettleSucceeded {
		n.Done, n.Known, n.Output = true, true, d.s.keep(out)
	} else {
		n.Wipe(false)
	}
	n.UndoReady, n.UndoInput = false, model.StoredValue{}
	switch {
	case was == model.UndoPending || was == model.UndoFailed && n.UndoDoubt > 0:
		return
	case was == model.UndoFailed:
		d.reviveUndo()
	}
	n.Queue, n.Hold = 0, 0
	if ev.As == SettleSucceeded {
		d.freshUndo(i)
		return
	}
	d.awake(i)
	d.undoing().endUndo(i, model.UndoNothing)
}

// A mover moves the run to another definition (engine migrate).
type mover struct{ *decider }

// migrated moves the run to another definition. The nodes keep their numbers, their results and
// their idempotency keys. Steps that are new and steps that start again may become ready. But this
// decision starts no call, because the engine must first load the agents of the new definition.
func (d mover) migrated(ev Migrated) {
	nodes := make([]*model.Node, len(d.s.nodes))
	for i := range nodes {
		nodes[i] = d.get(i)
	}
	plan := moving.Compare(d.wf, d.in.Next, &d.run, nodes, moving.Moment{At: d.at.Time(), Allowance: d.in.Allowance, Signals: d.waits().early()})
	if len(plan.Refusals) > 0 {
		d.verbs().refuse("migrate", ev.By, "%s", moreOf(plan.Refusals))
		return
	}
	if plan.NewDeadline {
		_, until := bounds(d).ownAndUntil()
		bounds(d).set(plan.Deadline, until)
	}
	if vars := (model.StoredValue{V: plan.Vars}); !model.SameStored(vars, d.run.Vars) {
		d.run.Vars = vars
	}
	d.run.Moves = append(slices.Clip(d.run.Moves), model.Move{Workflow: ev.Workflow, StepOf: plan.StepOf})
	d.switchTo(plan)
	for _, s := range plan.Steps {
		d.moveNode(s)
	}
	d.relaunch()
	d.recount()
	if d.run.Parked && !d.anyFailed() {
		d.ending().unpark()
	}
	for i := range d.count() {
		if !d.get(i).Ended() {
			d.ending().reopen(i)
		}
	}
}

// moreOf returns the first three refusals as one text, and says how many more there are.
func moreOf(all []moving.Refusal) string {
	const most = 3
	var texts []string
	for _, r := range all[:min(len(all), most)] {
		texts = append(texts, r.String())
	}
	text := strings.Join(texts, ". ")
	if len(all) > most {
		text += fmt.Sprintf(" (and %d more reasons)", len(all)-most)
	}
	return text
}

// switchTo lets the rest of the decision use the new definition. Values that were decoded for the
// old definition are dropped.
func (d mover) switchTo(plan moving.Plan) {
	d.wf, d.still = plan.Flow, true
	d.seen = seen{}
	d.s.cache = &cache{pending: true}
	d.run.Steps = int32(len(plan.StepOf))
	d.ready.reset() // these steps are planned again, by the new definition
}

// relaunch removes nodes from the list of planned calls if they are not ready any more.
func (d mover) relaunch() {
	planned := slices.Clone(d.launch.items[d.launch.first:])
	d.launch.reset()
	for _, i := range planned {
		if n := d.get(i); n.Fwd.Ready != 0 && !n.Ended() {
			d.launch.push(i)
		}
	}
}

// moveNode changes the node of a step as the plan of a migration says.
func (d mover) moveNode(s moving.Step) {
	i := s.Node
	switch {
	case s.Fate == moving.Added:
		n := d.edit(i)
		more := n.More
		*n = *model.NewNode(i)
		n.More = more
		d.names = append(d.names, model.InstanceName{Node: i, Step: i, Name: d.name(i)})
	case s.Fate == moving.Removed:
		n := d.anew(i)
		n.State, n.Fwd.Ended = status.StepSkipped, d.at
		d.names = append(d.names, model.InstanceName{Node: i, Step: i, Name: d.name(i)})
	case s.Anew:
		d.anew(i)
	case len(s.Changed) > 0 && d.get(i).Expanded:
		a := d.get(i)
		for k := a.First; k < a.First+a.Count; k++ {
			d.freshInput(k)
		}
	}
	if s.Was != "" {
		d.renamed(i)
	}
}

// renamed adds the new names of a step and of its instances to the record, so that the store
// replaces the old names.
func (d mover) renamed(i int) {
	d.names = append(d.names, model.InstanceName{Node: i, Step: i, Name: d.name(i)})
	if n := d.get(i); n.Expanded {
		for k := n.First; k < n.First+n.Count; k++ {
			d.names = append(d.names, model.InstanceName{Node: k, Step: i, Name: d.name(k)})
		}
	}
}

// anew makes a step that has no effect pending again, as if it had not begun. If the step was
// called before, it gets a new idempotency key, because the next call of the step may have another
// input.
func (d mover) anew(i int) *model.Node {
	n := d.edit(i)
	if n.Calls > 0 {
		n.Wipe(true)
	}
	n.State, n.Stated = status.StepPending, model.StatedNothing
	n.Fwd = model.Track{Total: n.Fwd.Total, Failures: n.Fwd.Failures, Began: n.Fwd.Began, Rest: n.Fwd.Rest}
	n.Queue, n.Hold = 0, 0
	n.Prepared, n.Input, n.BizKey, n.Data, n.TimedOut = false, model.StoredValue{}, "", model.StoredValue{}, false
	return n
}

// freshInput lets an instance that certainly has no effect evaluate its input again before its next
// attempt.
func (d mover) freshInput(i int) {
	n := d.get(i)
	if n.Open() || n.Well() || n.Effect() != status.EffectNone || !n.Prepared {
		return
	}
	n = d.edit(i)
	n.Prepared, n.Input, n.BizKey = false, model.StoredValue{}, ""
	if n.Calls > 0 {
		n.Gen++
	}
}

// recount computes again the fields Done and UndonePast of the run, and the field Deps of each
// step. After a move, the workflow's list of steps has an entry for each node of the run. Entries
// for instances (Step.Instance) count in Done and in UndonePast.
func (d mover) recount() {
	done, past := int32(0), int32(0)
	for i, step := range d.wf.Steps {
		if step.Instance {
			done, past = done+1, past+1
			continue
		}
		if d.get(i).Well() {
			done++
		}
		deps := int32(0)
		for _, j := range step.After {
			if d.get(j).Well() {
				deps++
			}
		}
		if d.get(i).Deps != deps {
			d.edit(i).Deps = deps
		}
	}
	d.run.Done, d.run.UndonePast = done, past
}

// anyFailed reports whether a step has failed, so that the run still needs a person.
func (d mover) anyFailed() bool {
	for i := range d.count() {
		if n := d.get(i); n.State == status.StepFailed && (!n.Item || d.hopeless(i)) {
			return true
		}
	}
	return false
}
