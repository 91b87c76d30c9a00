package machine

import (
	"github.com/saga-engine/engine/engine/internal/model"
)

// The deadline of a run goes down to its child runs and groups, because the time until which a step
// waits is a deadline of the child. A child gets this time with its start. If the deadline of the
// parent changes later, the parent moves the complete-by of its open calls for child runs, and its
// engine sends the new time to each child (ParentWaits).

// verbExtend is the name of the verb ParentWaits in a refusal.
const verbExtend = "extend"

// boundChildren gives each open call for a child run the complete-by that follows from the present
// deadlines of the run and the step. It adds a command for each call whose complete-by changes. A call
// whose time was over before keeps its complete-by: its child has already been asked to turn back.
func (d caller) boundChildren() {
	for i := range d.count() {
		if n := d.get(i); d.step(n).Child == nil || n.Undo != model.UndoNone || !n.Open() {
			continue
		}
		n := d.edit(i)
		for k := range n.Attempts {
			a := &n.Attempts[k]
			if !waitsForChild(a) {
				continue
			}
			by := model.Earliest(a.Started.Add(childTimeout), d.forward().forwardBound(i))
			if by != a.CompleteBy && by > d.at {
				a.CompleteBy = by
				d.commands = append(d.commands, bound(i, a))
			}
		}
	}
}

// waitsForChild reports whether the attempt `a` of a step with a child run is open, and its time is not
// over.
func waitsForChild(a *model.Attempt) bool {
	return a.Status == model.AttemptOpen && a.Kind == model.CallDo && !overstays(a)
}

// bound returns the command that tells the child run of the attempt `a` of node i until when the parent
// waits.
func bound(i int, a *model.Attempt) BoundChild {
	return BoundChild{Attempt: AttemptID{Node: i, Call: int(a.Call)}, Until: a.CompleteBy.Time()}
}

// bounds knows which deadline of a child run comes from its parent.
type bounds struct{ *decider }

// parentWaits sets the deadline of a child run after the parent has changed the time until which it
// waits. The deadline of the child's own workflow still counts, and so does an extension of it by a
// person.
func (d bounds) parentWaits(ev ParentWaits) {
	r := &d.run
	switch {
	case r.Parent.Run == 0:
		d.verbs().refuse(verbExtend, ev.By, "the run has no parent")
		return
	case r.Phase != model.PhaseForward || r.Turning:
		d.verbs().refuse(verbExtend, ev.By, "the run turns back, so its deadline has no effect any more")
		return
	}
	deadline := r.Deadline
	if d.byParent() {
		deadline, _ = d.own()
	}
	r.Deadline = model.Earliest(deadline, model.ToInstant(ev.Until))
	r.Overdue = r.Overdue && r.Deadline <= d.at
	d.caller().boundChildren()
}

// byParent reports whether the deadline of the run is the time until which its parent waits.
// That is so if this time comes before the deadline that the workflow sets.
func (d bounds) byParent() bool {
	r := &d.run
	if r.Parent.Run == 0 || r.Deadline == 0 {
		return false
	}
	own, ok := d.own()
	return !ok || r.Deadline < own
}

// own returns the deadline that the workflow of the run sets. The result `ok` is false if it
// sets none, or if the expression cannot be evaluated.
func (d bounds) own() (at model.Instant, ok bool) {
	if d.wf.Deadline == nil {
		return 0, false
	}
	limit, err := d.wf.Deadline(d.scope(nil))
	if err != nil {
		return 0, false
	}
	own, ok := limit.From(d.run.Started.Time())
	if !ok {
		return 0, false
	}
	return model.ToInstant(own), true
}
