package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// grace is a time that begins at the complete-by of an attempt. If the agent has not answered, it
// may still work on the attempt until the end of this time. No undo and no lookup of the step
// starts before.
const grace = 2 * time.Second

// close ends the attempt `a` with the given status. The parameters `code` and `message` describe
// the failure; both are "" if there is none.
func (d caller) close(a *model.Attempt, status model.AttemptStatus, code, message string) {
	a.Status, a.Ended, a.Said = status, d.at, model.NewFailureText(code, message)
}

// needless closes the open attempts of node i that have the given kind, because their answers are
// not needed any more: the outcome is known now, or a new owner makes an open lookup again. The
// agent may still work on such an attempt until its complete-by plus grace.
func (d caller) needless(i int, kind model.CallKind) {
	n := d.edit(i)
	for k := range n.Attempts {
		if a := &n.Attempts[k]; a.Status == model.AttemptOpen && a.Kind == kind {
			d.close(a, model.AttemptNeedless, "", "")
			d.noteMayWork(n, a)
		}
	}
}

// noteMayWork records that the agent may still work on the attempt `a` of node n until complete-by
// plus grace. A call for a child run needs no such time, because another call finds the same run.
func (d caller) noteMayWork(n *model.Node, a *model.Attempt) {
	if !d.isChild(n, a.Kind) {
		n.MayWorkUntil = max(n.MayWorkUntil, a.CompleteBy.Add(grace))
	}
}

// attach sends the open calls for the child run of node i again, after a takeover. A call for a
// child run finds the child by its key. So the call that is sent again belongs to the same attempt,
// and the answer counts once. attach returns false if the node has no such call.
func (d caller) attach(i int) bool {
	n, any := d.get(i), false
	turned := n.Undo != model.UndoNone || d.run.Turning && i == d.wf.Pivot || d.overstayed(n)
	for k := range n.Attempts {
		a := &n.Attempts[k]
		if a.Status != model.AttemptOpen || !d.isChild(n, a.Kind) {
			continue
		}
		any = true
		inv := d.invocation(i, a.Kind, d.action(n, a.Kind), int(a.Number), a.CompleteBy)
		inv.Attempt.Call = int(a.Call)
		inv.NoCompensate = d.run.NoUndo && turned && a.Kind == model.CallDo
		if d.step(n).Child.Group && holdsGroups(&d.run) {
			inv.Pause = d.pauseOfGroup(i, a)
		}
		d.commands = append(d.commands, inv)
		if !turned && waitsForChild(a) {
			d.commands = append(d.commands, bound(i, a))
		}
	}
	if any && turned {
		d.stop(i) // the former owner may have ended before it asked the child to stop
	}
	return any
}

// holdsGroups reports whether the run is paused, or parked while it goes forward, so that no step
// in a group of the run may start. The steps of a group belong to the run around the group, so they
// start only while the steps of that run may start. A run that is parked only because engines died
// (Run.Lost) does not hold its groups: no engine reads such a run, so no engine knows its groups
// (docs/decisions/0037).
func holdsGroups(r *model.Run) bool {
	return r.Paused || r.Parked && r.Phase == model.PhaseForward
}

// pauseOfGroup returns the command that makes the run of a group follow this run. If this run is
// paused or parked, the command pauses the group. If not, the command ends the pause of the group.
// The attempt `a` of node i waits for the run of the group.
func (d caller) pauseOfGroup(i int, a *model.Attempt) PauseChild {
	p := PauseChild{Attempt: AttemptID{Node: i, Call: int(a.Call)}, On: holdsGroups(&d.run)}
	if p.Parked = p.On && !d.run.Paused; !p.Parked {
		p.Reason = d.run.PauseWhy
	}
	return p
}

// outlast is called when a deadline or a complete-by of node i has passed. If the node waits for a
// child run, only the end of the child says whether it has an effect. So outlast keeps the call
// open, asks the child to turn back, and returns true. It returns false if no call that starts a
// child run is open.
func (d caller) outlast(i int) bool {
	if n := d.get(i); d.step(n).Child == nil || n.Undo == model.UndoActive || !n.Open() {
		return false
	}
	n, open, fresh := d.edit(i), false, false
	for k := range n.Attempts {
		a := &n.Attempts[k]
		if a.Status != model.AttemptOpen || a.Kind != model.CallDo {
			continue
		}
		open = true
		if !overstays(a) || a.CompleteBy <= d.at {
			a.CompleteBy, fresh = d.at.Add(childTimeout+time.Microsecond), true
		}
	}
	if fresh {
		d.stop(i)
	}
	return open
}

// overstays reports whether the attempt `a` is a call for a child run that stays open although its
// time is over. The complete-by shows this: only the method `outlast` sets it to a time that is
// more than childTimeout after the start of the call.
func overstays(a *model.Attempt) bool { return a.CompleteBy > a.Started.Add(childTimeout) }

// overstayed reports whether the time of the last call for the child run of node n was over before
// the child ended.
func (d caller) overstayed(n *model.Node) bool {
	a := n.Find(int(n.Newest(model.CallDo)))
	return a != nil && d.step(n).Child != nil && overstays(a)
}

// rest makes the active track (forward or undo) of node i idle, so that the node has no pause and
// does not wait for its agent. It closes no attempt, and it does not decide what happens next.
func (d caller) rest(i int) {
	n := d.edit(i)
	n.Queue, n.Hold = 0, 0
	n.Track().Act = model.Idle
	if n.Undo != model.UndoNone {
		n.Fwd.Act = model.Idle
	}
}

// restartSilence is called when an agent has given a sign of life for the attempt `a`, and when the
// attempt starts. It makes the heartbeat_timeout of the attempt start again.
func (d caller) restartSilence(n *model.Node, a *model.Attempt) {
	if a.Kind != model.CallDo && a.Kind != model.CallLearn {
		return
	}
	settings, err := d.settings(n)
	if err != nil || settings.HeartbeatTimeout <= 0 {
		return
	}
	a.Silent = d.at.Add(settings.HeartbeatTimeout)
	if a.Silent >= a.CompleteBy {
		a.Silent = 0
	}
}

// closeAttempts closes all open attempts of node i. Their outcome is unknown.
func (d caller) closeAttempts(i int, code string) {
	n := d.edit(i)
	for k := range n.Attempts {
		if a := &n.Attempts[k]; a.Status == model.AttemptOpen {
			d.closeUnknown(i, a, code, "no answer in time")
		}
	}
}

// closeUnknown closes the attempt `a` of node i. Its outcome is unknown. The agent may still
// work on the attempt until complete-by plus grace.
func (d caller) closeUnknown(i int, a *model.Attempt, code, message string) {
	n := d.edit(i)
	a.Status, a.Ended, a.Said = model.AttemptUnknown, d.at, model.NewFailureText(code, message)
	d.noteMayWork(n, a)
	n.Tally(a.Kind)
	if a.Kind == model.CallDo || a.Kind == model.CallLearn {
		n.TimedOut = n.TimedOut || code == sdk.CodeTimeout
	}
	if a.Kind == model.CallUndo {
		n.UndoDoubt++
	}
}

// stop asks the agents of node i to end forward calls that are not needed any more. It does so
// only if the action is read-only or declares that it may be interrupted. The run waits for
// all other calls until their complete-by: an interruption would turn a result into an unknown
// outcome. The run also waits for a lookup, because the undo needs the answer. If the agent
// completes the work before it stops, the result still counts.
func (d caller) stop(i int) {
	n := d.get(i)
	if do := d.step(n).Do; !do.ReadOnly && !do.Cancellable {
		return
	}
	for _, a := range n.Attempts {
		if a.Status == model.AttemptOpen && a.Kind == model.CallDo && a.CompleteBy > d.at {
			d.commands = append(d.commands, d.stopping(AttemptID{Node: i, Call: int(a.Call)}))
		}
	}
}

// stopping returns the command that stops the attempt `id`. All fields of the command follow from
// the state of the run. So after a takeover, the next owner makes an equal command.
func (d caller) stopping(id AttemptID) Stop {
	if r := &d.run; r.NoUndo {
		return Stop{Attempt: id, NoCompensate: true, Reason: r.Failure.Message}
	}
	return Stop{Attempt: id}
}

// retract removes the attempts of node i that the present decision started, with their
// commands. No call was sent yet, because calls are sent only after the commit.
func (d caller) retract(i int) {
	n, calls := d.get(i), d.s.before(i).Calls
	if n.Calls == calls {
		return
	}
	n = d.edit(i)
	n.Attempts = slices.DeleteFunc(n.Attempts, func(a model.Attempt) bool {
		if a.Call <= calls {
			return false
		}
		if a.Kind == model.CallDo {
			n.Fwd.Attempt, n.Fwd.Total = n.Fwd.Attempt-1, n.Fwd.Total-1
			n.Doubt = max(0, n.Doubt-1)
		}
		if a.Kind == model.CallUndo {
			n.Und.Attempt, n.Und.Total = n.Und.Attempt-1, n.Und.Total-1
		}
		return true
	})
	n.Calls = calls
	handover(d).retract(i)
	d.commands = slices.DeleteFunc(d.commands, func(c Command) bool {
		inv, ok := c.(Invoke)
		return ok && inv.Attempt.Node == i
	})
	if n.Fwd.Total == 0 {
		n.Fwd.Began = 0
	}
}

// action returns the action that a call of the given kind invokes for node n.
func (d caller) action(n *model.Node, kind model.CallKind) *dsl.Action {
	return model.CalledAction(d.step(n), kind)
}

func (d caller) agentOf(n *model.Node, kind model.CallKind) string { return d.action(n, kind).Agent }

// isChild reports whether a call of the given kind starts or undoes a child run.
func (d caller) isChild(n *model.Node, kind model.CallKind) bool {
	return d.agentOf(n, kind) == d.wf.ChildAgent()
}

// pause records that node i waits until the given time before its next call, forward or undo.
func (d caller) pause(i int, until model.Instant) {
	n := d.edit(i)
	t := n.Track()
	t.Act, t.Until = model.Backoff, until
	n.Queue, n.Hold = 0, 0
	if n.Undo == model.UndoNone {
		n.State = status.StepBackoff
	}
}

// lookUp plans a lookup for node i. The lookup starts when no earlier attempt can be running
// any more.
func (d caller) lookUp(i int) {
	n := d.edit(i)
	n.Fwd.Kind = model.CallLookup
	if until := max(n.MayWorkUntil, n.Fwd.Rest); until > d.at {
		d.pause(i, until)
		return
	}
	d.launch.push(i)
}

// waitsForChild reports whether the attempt `a` of a step with a child run is open, and its time is
// not over.
func waitsForChild(a *model.Attempt) bool {
	return a.Status == model.AttemptOpen && a.Kind == model.CallDo && !overstays(a)
}

// bound returns the command that tells the child run of the attempt `a` of node i until when the
// parent waits.
func bound(i int, a *model.Attempt) BoundChild {
	return BoundChild{Attempt: AttemptID{Node: i, Call: int(a.Call)}, Until: a.CompleteBy.Time()}
}
