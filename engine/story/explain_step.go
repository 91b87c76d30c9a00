package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// step returns a sentence that says what a node is doing or what it waits for. It returns "" if
// the node does neither.
func (x *explainer) step(i int, n *model.Node) string {
	name := model.NodeName(x.wf, i, n)
	r := x.s.Run()
	held := n.Queue != 0 && n.Hold > 0 && int(n.Hold) <= len(r.Holds)
	if text := x.attempts(n, name); text != "" {
		// A node may have an open call and also wait for its agent. After a takeover, for example,
		// the call of the dead engine may still be in flight.
		if held && !r.Held() && !r.Parked {
			text += " Its next attempt " + x.hold(r.Holds[n.Hold-1])
		}
		return text
	}
	track := n.Track()
	undo := ""
	if n.Undo != model.UndoNone {
		undo = "The undo of "
	}
	switch {
	case held:
		if r.Held() || r.Parked && r.Phase == model.PhaseForward {
			return fmt.Sprintf("%s%s is ready and starts when the run goes on.", undo, name)
		}
		return undo + name + " " + x.hold(r.Holds[n.Hold-1])
	case n.Waits():
		return x.wait(n, name)
	case track.Act == model.Backoff:
		return x.pause(n, name, track)
	case n.Clearing:
		return fmt.Sprintf("What %s may have done is undone before its next attempt.", name)
	}
	return ""
}

// hold returns the end of a sentence about a node that waits for its agent.
func (x *explainer) hold(h model.Hold) string {
	text := "waits for agent " + h.Agent
	if h.Why != "" {
		text += " (" + h.Why + ")"
	}
	if h.Until != 0 {
		return text + " and is tried again at " + x.when(h.Until) + "."
	}
	return text + " and starts as soon as a call is possible there."
}

// wait returns a sentence about a node that waits for a signal, or for the end of a timer.
func (x *explainer) wait(n *model.Node, name string) string {
	names := awaited(n)
	if names == nil {
		return fmt.Sprintf("%s waits until %s.", name, x.when(n.Fwd.Until))
	}
	text := fmt.Sprintf("%s waits for signal %s%s", name, strings.Join(names, " or "), x.within(n))
	if limit := stepDeadline(x.s.Nodes(), n); limit != 0 {
		text += ", until " + x.when(limit)
	}
	return fmt.Sprintf("%s: engine signal %s %s --data JSON.", text, x.run(), word(names[0]))
}

// attempts returns a sentence about a node's calls in flight; "" = there are none.
func (x *explainer) attempts(n *model.Node, name string) string {
	var open *model.Attempt
	count := 0
	for k := range n.Attempts {
		if a := &n.Attempts[k]; a.Status == model.AttemptOpen {
			count++
			if open == nil || a.CompleteBy >= open.CompleteBy {
				open = a
			}
		}
	}
	if open == nil {
		return ""
	}
	if model.ActionOf(x.wf, n, open.Kind).Agent == x.wf.ChildAgent() {
		return x.child(n, name, open)
	}
	action := model.ActionName(x.wf, n, open.Kind)
	what := ""
	switch open.Kind {
	case model.CallUndo:
		what = fmt.Sprintf("The undo of %s runs: attempt %d of %s", name, open.Number, action)
		if n.Clearing {
			what = fmt.Sprintf("What %s may have done is undone before its next attempt: attempt %d of %s", name, open.Number, action)
		}
	case model.CallLookup:
		what = fmt.Sprintf("%s is asked what became of %s: question %d", action, name, open.Number)
	case model.CallUndoLookup:
		what = fmt.Sprintf("%s is asked what became of the undo of %s: question %d", action, name, open.Number)
	case model.CallLearn:
		what = fmt.Sprintf("%s is called once more to learn the output that the undo of %s needs: attempt %d", action, name, open.Number)
	default:
		what = fmt.Sprintf("%s runs: attempt %d of %s%s", name, open.Number, action, x.within(n))
		if n.Undo != model.UndoNone {
			what = fmt.Sprintf("%s is not wanted any more, but attempt %d of %s may still take effect", name, open.Number, action)
		}
	}
	if count > 1 {
		what += fmt.Sprintf(" (%d more may still be at work)", count-1)
	}
	text := fmt.Sprintf("%s, since %s, complete by %s", what, x.when(open.Started), x.when(open.CompleteBy))
	if open.Silent != 0 {
		text += ", next sign of life due by " + x.when(open.Silent)
	}
	return text + "."
}

// pause returns a sentence about a node that waits until a known time.
func (x *explainer) pause(n *model.Node, name string, t *model.Track) string {
	until := x.when(t.Until)
	r := x.s.Run()
	if r.Held() || r.Parked && r.Phase == model.PhaseForward {
		until += ", if the run goes on by then"
	}
	subject := name
	if n.Undo != model.UndoNone {
		subject = "The undo of " + name
	}
	text := ""
	switch {
	case n.Undo == model.UndoNone && n.Loop.Between && loops(x.wf, n):
		return x.iterations(n, name, until)
	case t.Until == n.MayWorkUntil && n.Undo != model.UndoNone:
		return fmt.Sprintf("%s waits until %s, because until then an attempt may be at work.", subject, until)
	case t.Until == n.MayWorkUntil && (t.Kind == model.CallLookup || x.wf.Steps[n.Step].OnRerun == dsl.RerunUndoFirst):
		return fmt.Sprintf("An attempt of %s may be at work until %s; its outcome is found out then.", name, until)
	case t.Kind == model.CallLookup, t.Kind == model.CallUndoLookup:
		text = fmt.Sprintf("What became of %s is asked again at %s", name, until)
	case n.Undo == model.UndoNone && t.Attempt == 0 && t.Rounds > 0:
		text = fmt.Sprintf("%s cools down until %s and then gets a fresh round of attempts", subject, until)
	default:
		text = fmt.Sprintf("%s is tried again at %s", subject, until)
	}
	switch {
	case t.Code() == "":
		return text + "."
	case t.Message() == "":
		return fmt.Sprintf("%s; the last failure was %s.", text, t.Code())
	}
	return fmt.Sprintf("%s; the last failure was %s: %s.", text, t.Code(), strings.TrimSuffix(t.Message(), "."))
}

// verbs adds command lines (Remedies) for a run that needs a person. It adds nothing for other
// runs.
func (x *explainer) verbs() {
	r := x.s.Run()
	if !x.s.Run().State.NeedsHuman() {
		return
	}
	if r.Lost() {
		x.lost()
		return
	}
	late := r.Deadline != 0 && r.Deadline <= model.ToInstant(x.now) && !r.Passed
	told := 0
	for i, n := range x.s.Nodes() {
		if n.Expanded || n.State != status.StepFailed && n.Undo != model.UndoFailed || told == maxStepsDescribed {
			continue
		}
		before := len(x.out.Remedies)
		if r.State == status.RunParked {
			x.failed(i, n, late)
		} else if n.Undo == model.UndoFailed {
			x.undoFailed(i, n)
		}
		if len(x.out.Remedies) > before {
			told++
		}
	}
	if r.State != status.RunParked {
		return
	}
	// No command line for a failed step was added. For example, the run was parked because of a
	// deadline.
	if len(x.out.Remedies) == 0 {
		x.remedy(machine.RetryRequested{Extend: time.Hour}, "retry %s --extend 1h", x.run())
	}
	if !x.remedy(machine.CompensateRequested{}, "compensate %s", x.run()) {
		x.remedy(machine.CancelRequested{NoCompensate: true}, "cancel %s --no-compensate --reason TEXT", x.run())
	}
}

// failed adds the command lines with which a person can continue a parked run after a failed
// step.
func (x *explainer) failed(i int, n *model.Node, late bool) {
	name := model.NodeName(x.wf, i, n)
	run, step := x.run(), word(name)
	if n.Present() == status.EffectMaybe {
		x.say("It is not known whether %s took effect.", name)
		x.remedy(machine.SettleRequested{Step: name, As: machine.SettleSucceeded}, "settle %s --step %s --succeeded --output JSON --reason TEXT", run, step)
		x.remedy(machine.SettleRequested{Step: name, As: machine.SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	}
	verb, flags := machine.RetryRequested{Step: name}, ""
	if n.Kept.Stay() {
		x.say("The child run of %s has left effects in place, and a retry may cause them a second time.", name)
		verb.NewKey, flags = true, " --new-key"
	}
	if late {
		verb.Extend, flags = time.Hour, flags+" --extend 1h"
	}
	x.remedy(verb, "retry %s --step %s%s", run, step, flags)
}

// undoFailed adds the command lines with which a person can continue a run after a failed undo.
func (x *explainer) undoFailed(i int, n *model.Node) {
	name := model.NodeName(x.wf, i, n)
	run, step := x.run(), word(name)
	switch {
	case n.Present() == status.EffectMaybe && !n.Known:
		x.say("It is not known whether %s took effect.", name)
		x.remedy(machine.SettleRequested{Step: name, As: machine.SettleSucceeded}, "settle %s --step %s --succeeded --output JSON --reason TEXT", run, step)
		x.remedy(machine.SettleRequested{Step: name, As: machine.SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	case n.UndoDoubt > 0:
		x.say("It is not known whether the undo of %s took effect.", name)
		x.remedy(machine.SettleRequested{Step: name, As: machine.SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	}
	// If only a person can deal with the effect, a further attempt of the undo would fail at once.
	if !x.s.Hopeless(x.wf, i) {
		x.remedy(machine.CompensateRequested{Step: name, Retry: true}, "compensate %s --step %s --retry", run, step)
	}
	x.remedy(machine.SettleRequested{Step: name, As: machine.SettleUndone}, "settle %s --step %s --undone --reason TEXT", run, step)
	x.remedy(machine.CompensateRequested{Step: name, Skip: true}, "compensate %s --step %s --skip --reason TEXT", run, step)
}

// lost adds command lines for a run that was parked because engines died while they had the run
// in hand.
func (x *explainer) lost() {
	if !x.remedy(machine.RetryRequested{}, "retry %s", x.run()) {
		x.remedy(machine.RetryRequested{Extend: time.Hour}, "retry %s --extend 1h", x.run())
	}
	if !x.remedy(machine.CompensateRequested{}, "compensate %s", x.run()) {
		x.remedy(machine.CancelRequested{}, "cancel %s --reason TEXT", x.run())
	}
	x.remedy(machine.CancelRequested{NoCompensate: true}, "cancel %s --no-compensate --reason TEXT", x.run())
}

// iterations returns a sentence about a node whose next iteration is planned. The parameter
// `until` is the time at which this iteration starts, as text.
func (x *explainer) iterations(n *model.Node, name, until string) string {
	most := mostIterations(x.wf, n, &dsl.Scope{Vars: x.s.Run().Vars.V})
	text := fmt.Sprintf("%s has made %s", name, IterationText(int(n.Loop.Iteration)+1, most))
	if x.wf.Steps[n.Step].Repeat.Until != nil {
		text += " and its until was not true yet"
	}
	return fmt.Sprintf("%s; the next iteration starts at %s.", text, until)
}

// within returns a text that says in which iteration a node is; "" if its step does not repeat.
func (x *explainer) within(n *model.Node) string {
	if !loops(x.wf, n) {
		return ""
	}
	return ", in " + IterationText(int(n.Loop.Iteration)+1, mostIterations(x.wf, n, &dsl.Scope{Vars: x.s.Run().Vars.V}))
}

// child returns a sentence about the open call of a node that waits for a child run.
func (x *explainer) child(n *model.Node, name string, open *model.Attempt) string {
	run := childName(x.s, x.wf, n)
	text := fmt.Sprintf("%s waits for child run %s%s", name, run, x.within(n))
	switch {
	case open.Kind == model.CallUndo:
		text = fmt.Sprintf("The undo of %s waits until child run %s is undone", name, run)
	case n.Undo != model.UndoNone:
		text = fmt.Sprintf("%s is not wanted any more and waits until child run %s has stopped", name, run)
	}
	text += ", since " + x.when(open.Started)
	if open.CompleteBy.Time().Sub(open.Started.Time()) < x.far() {
		text += ", until " + x.when(open.CompleteBy)
	}
	return fmt.Sprintf("%s: engine explain %s.", text, word(run))
}

// far returns five years. If a call of a node for a child run has no deadline, its complete-by is
// ten years away, and tells people nothing. So the method `child` shows complete-by only if it is
// less than five years after the start of the call.
func (x *explainer) far() time.Duration { return 5 * 365 * 24 * time.Hour }

// childName returns the public name of the child run that a node starts, or has started. The step
// of the node must start child runs. If the run has taken over the step from an ended run (engine
// restart), the ended run has started the child run. Then the name of the child run contains the
// name of the ended run, and the name that the step had there.
func childName(s *machine.State, wf *dsl.Workflow, n *model.Node) string {
	key, _ := machine.Keys(wf, s.Run(), n)
	parent, name := s.Name(), wf.Steps[n.Step].KeyName()
	if from, step := s.Run().Legacy(n.Step); from != nil {
		parent, name = from.Name, step
	}
	if n.Item {
		name = fmt.Sprintf("%s[%q]", name, n.Key)
	}
	return naming.ChildName(parent, name, key)
}

// startedNoChild reports whether the last call of a node for a child run has failed before the
// child run existed, for example because of no_room. It looks at the data of the failure: if a
// child run has failed, the data has the name and the state of the child run, so a failure without
// data means that there was no child run. If the node was taken over from an ended run, it has no
// attempts, and startedNoChild uses other fields of the node.
func startedNoChild(n *model.Node) bool {
	for k := len(n.Attempts) - 1; k >= 0; k-- {
		if a := &n.Attempts[k]; a.Kind == model.CallDo {
			return a.Status == model.AttemptFailed && a.Gen == n.Gen && n.Data.V.IsNull()
		}
	}
	return n.Handed.Absent || n.State == status.StepCaught && n.Data.V.IsNull()
}
