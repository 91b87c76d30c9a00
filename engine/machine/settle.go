package machine

import (
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// settleRequested handles the verb settle: a person states the outcome of a step or of an
// undo whose outcome is unknown.
func (d verbs) settleRequested(ev SettleRequested) {
	all := d.pick(ev.Step, func(_ int, n *model.Node) bool { return !n.Expanded })
	var open, settled []int
	for _, i := range all {
		n := d.get(i)
		if n.Present() == status.EffectMaybe && (n.Undo == model.UndoNone && n.Ended() || n.Undo == model.UndoFailed) || n.Undo == model.UndoFailed {
			open = append(open, i)
		} else if n.Correctable() {
			settled = append(settled, i)
		}
	}
	if len(open) == 0 {
		open = settled
	}
	switch {
	case ev.Step == "" || len(all) == 0:
		d.refuse("settle", ev.By, "no step %q", ev.Step)
	case len(open) == 0:
		d.refuse("settle", ev.By, "the outcome of %s is not in doubt, or its answer is still awaited", ev.Step)
	case len(open) > 1:
		var names []string
		for _, i := range open {
			names = append(names, d.name(i))
		}
		d.refuse("settle", ev.By, "name one of %s", strings.Join(names, ", "))
	case d.get(open[0]).Open():
		d.refuse("settle", ev.By, "an attempt of %s is still in flight", ev.Step)
	case len(settled) > 0 && settled[0] == open[0]:
		d.correct(open[0], ev)
	case d.get(open[0]).Undo == model.UndoNone:
		d.settleForward(open[0], ev)
	default:
		d.settleUndo(open[0], ev)
	}
}

// settleForward settles a step whose outcome is unknown while the run goes forward. If the person
// states that nothing was done, the step is not called again. If the catch block of the step
// accepts the failure, or max_failures tolerates it, the run continues. If the step is the pivot,
// and the run only waited for its outcome, the run turns back. In all other cases the run stays
// parked until a person sends another verb, such as retry or compensate.
func (d verbs) settleForward(i int, ev SettleRequested) {
	n := d.edit(i)
	switch ev.As {
	case SettleSucceeded:
		out, ok := d.stated(i, ev)
		if !ok {
			return
		}
		n.Done, n.Known, n.Output = true, true, d.s.keep(out)
		n.Manual, n.Stated = ev.By, d.following(i)
		if !d.blocks(i) {
			return // catch or max_failures handled the failure before: only the effect changes now
		}
		d.forgive(i)
		loops(d).succeed(i)
		d.goOn()
	case SettleNotDone, SettleUndone:
		n.Manual, n.Stated = ev.By, d.following(i)
		if n.Und.Total > 0 {
			// Later calls use a new key, so no correction is possible.
			n.Stated = model.StatedNothing
		}
		n.Wipe(n.Und.Total > 0)
		if !d.blocks(i) {
			return
		}
		m := n.Fwd.Blamed()
		m.Kind = model.MissFailed
		n.Fwd.Blame(m)
		switch {
		case i == d.wf.Pivot && d.run.Turning:
			d.run.Turning = false
			d.undoing().turn(d.run.Failure)
		case d.catchAfter(i, m):
			d.goOn()
		case n.Item:
			d.forward().aggregate(n.Of())
			d.goOn()
		}
	default:
		d.refuse("settle", ev.By, "say what happened")
	}
}

// following returns what the verb settle decides about node i. The result is StatedNothing for a
// step with a repeat block: its loop uses the decision at once, so no person can correct it later.
// For another step it is StatedEnd if the method `blocks` returns true: the person decides the
// effect, and also how the node ends. If `blocks` returns false, it is StatedEffect: the person
// decides only the effect.
func (d verbs) following(i int) model.Statement {
	if d.step(d.get(i)).Repeat != nil {
		return model.StatedNothing
	}
	if d.blocks(i) {
		return model.StatedEnd
	}
	return model.StatedEffect
}

// blocks reports whether the verb settle also decides how node i ends: the run is parked, the node
// has failed, and its step has not ended well. Usually the run is parked because of this node. But
// blocks also returns true for a failed instance that max_failures tolerates, if its for_each step
// is still open and the run is parked for another reason.
func (d verbs) blocks(i int) bool {
	n := d.get(i)
	return d.run.Parked && n.State == status.StepFailed && !d.get(n.Of()).Well()
}

// forgive removes the recorded failure of a node, because this failure does not count any more. If
// the node is an instance, its for_each step counts this instance as active again.
func (d verbs) forgive(i int) {
	n := d.edit(i)
	n.Fwd.Blame(model.Miss{})
	if !n.Item {
		return
	}
	a := d.edit(n.Of())
	a.Bad--
	a.Over--
	a.Active++
	if a.State == status.StepFailed && a.Bad <= d.forward().tolerated(n.Of()) {
		a.State, a.Fwd.Ended = status.StepWaiting, 0
		a.Fwd.Blame(model.Miss{})
	}
}

// catchAfter is called after a person has stated that nothing was done. If the step's catch
// accepts the failure m, catchAfter ends the node as caught and returns true. Otherwise the
// node stays failed, and catchAfter returns false.
func (d verbs) catchAfter(i int, m model.Miss) bool {
	n := d.get(i)
	if d.step(n).Catch == nil {
		return false
	}
	d.forgive(i)
	if d.forward().catches(i, m) {
		return true
	}
	n = d.edit(i)
	n.Fwd.Blame(m)
	if n.Item {
		a := d.edit(n.Of())
		a.Bad++
		a.Over++
		a.Active--
		if a.Bad > d.forward().tolerated(n.Of()) {
			a.State = status.StepFailed
		}
	}
	return false
}

// goOn unparks the run if no other failure still needs a person.
func (d verbs) goOn() {
	for i := range d.count() {
		n := d.get(i)
		if n.Item {
			if n.State == status.StepFailed && d.hopeless(i) {
				return
			}
			continue
		}
		if n.State == status.StepFailed {
			return
		}
	}
	d.ending().unpark()
}

// settleUndo handles the verb settle for a node whose undo has failed. The person states the
// outcome of the undo. If the undo failed because the outcome of the step is unknown, the
// person states that outcome instead.
func (d verbs) settleUndo(i int, ev SettleRequested) {
	n := d.edit(i)
	unknown := n.Present() == status.EffectMaybe && !n.Known
	switch {
	case n.Correctable() && (ev.As == SettleSucceeded || ev.As == SettleNotDone && n.UndoDoubt == 0):
		d.correct(i, ev)
	case ev.As == SettleUndone:
		d.reviveUndo()
		n.Manual = ev.By
		d.awake(i)
		d.undoing().endUndo(i, model.UndoDone)
	case ev.As == SettleNotDone && unknown:
		d.reviveUndo()
		n.Manual = ev.By
		n.Doubt, n.Point, n.Blob = 0, 0, nil
		if n.Loop.Past { // earlier iterations had effects, and their undo is possible now
			d.freshUndo(i)
			return
		}
		d.awake(i)
		d.undoing().endUndo(i, model.UndoNothing)
	case ev.As == SettleNotDone && n.UndoDoubt > 0:
		d.reviveUndo()
		// The new undo uses the earlier decision of a person about the step. So that decision
		// cannot be corrected any more.
		n.Manual, n.Stated = ev.By, model.StatedNothing
		n.UndoDoubt = 0
		d.freshUndo(i)
	case ev.As == SettleSucceeded && unknown:
		out, ok := d.stated(i, ev)
		if !ok {
			return
		}
		n.Manual, n.Stated = ev.By, d.following(i)
		n.Done, n.Known, n.Output = true, true, d.s.keep(out)
		if n.UndoDoubt > 0 && !d.step(n).Undo.Do.Idempotent {
			return // the outcome of the undo is still unknown: the person must settle it separately
		}
		d.reviveUndo()
		d.freshUndo(i)
	default:
		d.refuse("settle", ev.By, "that is known already; retry or skip the undo")
	}
}

// stated returns the output that a person states for a step, and true. In two cases, it refuses the
// verb and returns false. First, the output does not fit the action's schema. Second, the step's
// undo cannot be evaluated with this output. Such an undo would fail later, when the output cannot
// be corrected any more.
func (d verbs) stated(i int, ev SettleRequested) (dsl.Value, bool) {
	n := d.get(i)
	out, err := d.step(n).Do.StatedOutput(ev.Output.JSON())
	if err != nil {
		d.refuse("settle", ev.By, "%s%s", outputRefused, strings.TrimPrefix(err.Error(), "reply: "))
		return dsl.Value{}, false
	}
	if err := d.undoWith(n, out); err != nil {
		d.refuse("settle", ev.By, "%sthe undo of %s cannot be evaluated with it: compensate: %v", outputRefused, d.name(i), err)
		return dsl.Value{}, false
	}
	return out, true
}

// outputRefused is the beginning of Refused.Reason if the verb settle was refused only because
// of its output.
const outputRefused = "output: "

// WantsOutput reports whether the verb settle was refused only because of its output. If so, the
// person can send the verb again with another output.
func (r Refused) WantsOutput() bool {
	return r.Verb == "settle" && strings.HasPrefix(r.Reason, outputRefused)
}

// undoWith evaluates the input of a node's undo with the given output. It returns the error of this
// evaluation. It returns nil if the node has no undo that uses the output, or if the undo will
// never be called because of the pivot. The input may read the failure that made the run turn back.
// If the run has not turned back, undoWith uses the node's own failure, because this failure would
// most likely be the reason for turning back.
func (d verbs) undoWith(n *model.Node, out dsl.Value) error {
	step := d.step(n)
	if step.Undo == nil || step.NoUndo || !step.Undo.UsesSelf || d.run.Passed || n.Of() == d.wf.Pivot {
		return nil
	}
	copied := *n
	copied.Done, copied.Known, copied.Output = true, true, model.StoredValue{V: out}
	sc := d.undoScope(&copied)
	if *sc.Failure == (dsl.Failure{}) {
		sc.Failure = &dsl.Failure{Step: step.Name, Code: n.Fwd.Code(), Message: n.Fwd.Message()}
	}
	_, err := step.Undo.Input(sc)
	return err
}
