package machine

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// step describes what a node does or waits for; "" if it is of no interest.
func (x *explainer) step(i int, n *node) string {
	name := nodeName(x.wf, i, n)
	r := &x.s.run
	if text := x.attempts(n, name); text != "" {
		return text
	}
	track := n.track()
	undo := ""
	if n.undo != undoNone {
		undo = "The undo of "
	}
	switch {
	case n.queue != 0 && n.hold > 0 && int(n.hold) <= len(r.holds):
		if r.held() || r.parked && r.phase == phaseForward {
			return fmt.Sprintf("%s%s is ready and starts when the run goes on.", undo, name)
		}
		h := r.holds[n.hold-1]
		text := fmt.Sprintf("%s%s waits for agent %s", undo, name, h.agent)
		if h.why != "" {
			text += " (" + h.why + ")"
		}
		if h.until != 0 {
			return text + " and is tried again at " + x.when(h.until) + "."
		}
		return text + " and starts as soon as a call is possible there."
	case track.act == backoff:
		return x.pause(n, name, track)
	case n.clearing:
		return fmt.Sprintf("What %s may have done is undone before its next attempt.", name)
	}
	return ""
}

// attempts describes the calls in flight.
func (x *explainer) attempts(n *node, name string) string {
	var open *attempt
	count := 0
	for k := range n.attempts {
		if a := &n.attempts[k]; a.status == attemptOpen {
			count++
			if open == nil || a.completeBy >= open.completeBy {
				open = a
			}
		}
	}
	if open == nil {
		return ""
	}
	action := actionName(x.wf, n, open.kind)
	what := ""
	switch open.kind {
	case callUndo:
		what = fmt.Sprintf("The undo of %s runs: attempt %d of %s", name, open.number, action)
		if n.clearing {
			what = fmt.Sprintf("What %s may have done is undone before its next attempt: attempt %d of %s", name, open.number, action)
		}
	case callLookup:
		what = fmt.Sprintf("%s is asked what became of %s: question %d", action, name, open.number)
	case callUndoLookup:
		what = fmt.Sprintf("%s is asked what became of the undo of %s: question %d", action, name, open.number)
	case callLearn:
		what = fmt.Sprintf("%s is called once more to learn the output that the undo of %s needs: attempt %d", action, name, open.number)
	default:
		what = fmt.Sprintf("%s runs: attempt %d of %s", name, open.number, action)
		if n.undo != undoNone {
			what = fmt.Sprintf("%s is not wanted any more, but attempt %d of %s may still take effect", name, open.number, action)
		}
	}
	if count > 1 {
		what += fmt.Sprintf(" (%d more may still be at work)", count-1)
	}
	text := fmt.Sprintf("%s, since %s, complete by %s", what, x.when(open.started), x.when(open.completeBy))
	if open.silent != 0 {
		text += ", to be heard of by " + x.when(open.silent)
	}
	return text + "."
}

// pause describes what waits for a time.
func (x *explainer) pause(n *node, name string, t *track) string {
	until := x.when(t.until)
	r := &x.s.run
	if r.held() || r.parked && r.phase == phaseForward {
		until += ", if the run goes on by then"
	}
	subject := name
	if n.undo != undoNone {
		subject = "The undo of " + name
	}
	text := ""
	switch {
	case t.until == n.quiet && n.undo != undoNone:
		return fmt.Sprintf("%s waits until %s, because until then an attempt may be at work.", subject, until)
	case t.until == n.quiet && (t.kind == callLookup || x.wf.Steps[n.step].OnRerun == dsl.RerunUndoFirst):
		return fmt.Sprintf("An attempt of %s may be at work until %s; what became of it is seen to then.", name, until)
	case t.kind == callLookup, t.kind == callUndoLookup:
		text = fmt.Sprintf("What became of %s is asked again at %s", name, until)
	case n.undo == undoNone && t.attempt == 0 && t.rounds > 0:
		text = fmt.Sprintf("%s cools down until %s and then gets a fresh round of attempts", subject, until)
	default:
		text = fmt.Sprintf("%s is tried again at %s", subject, until)
	}
	switch {
	case t.code() == "":
		return text + "."
	case t.message() == "":
		return fmt.Sprintf("%s; the last failure was %s.", text, t.code())
	}
	return fmt.Sprintf("%s; the last failure was %s: %s.", text, t.code(), strings.TrimSuffix(t.message(), "."))
}

// verbs lists what a person can do about a run that needs one.
func (x *explainer) verbs() {
	r := &x.s.run
	if !x.s.NeedsHuman() {
		return
	}
	if r.lost() {
		x.lost()
		return
	}
	late := r.deadline != 0 && r.deadline <= toInstant(x.now) && !r.passed
	told := 0
	for i, n := range x.s.nodes {
		if n.expanded || n.state != StepFailed && n.undo != undoFailed || told == mostTold {
			continue
		}
		before := len(x.out.Remedies)
		if r.state == RunParked {
			x.failed(i, n, late)
		} else if n.undo == undoFailed {
			x.undoFailed(i, n)
		}
		if len(x.out.Remedies) > before {
			told++
		}
	}
	if r.state != RunParked {
		return
	}
	if len(x.out.Remedies) == 0 { // no step is to blame: a deadline, or a cancel
		x.remedy(RetryRequested{Extend: time.Hour}, "retry %s --extend 1h", x.run())
	}
	if !x.remedy(CompensateRequested{}, "compensate %s", x.run()) {
		x.remedy(CancelRequested{NoCompensate: true}, "cancel %s --no-compensate --reason TEXT", x.run())
	}
}

// failed lists what can be done about a failed step of a parked run.
func (x *explainer) failed(i int, n *node, late bool) {
	name := nodeName(x.wf, i, n)
	run, step := x.run(), word(name)
	if n.effect() == EffectMaybe {
		x.say("It is not known whether %s took effect.", name)
		x.remedy(SettleRequested{Step: name, As: SettleSucceeded}, "settle %s --step %s --succeeded --output JSON --reason TEXT", run, step)
		x.remedy(SettleRequested{Step: name, As: SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	}
	if late {
		x.remedy(RetryRequested{Step: name, Extend: time.Hour}, "retry %s --step %s --extend 1h", run, step)
	} else {
		x.remedy(RetryRequested{Step: name}, "retry %s --step %s", run, step)
	}
}

// undoFailed lists what can be done about a failed undo.
func (x *explainer) undoFailed(i int, n *node) {
	name := nodeName(x.wf, i, n)
	run, step := x.run(), word(name)
	switch {
	case n.effect() == EffectMaybe && !n.known:
		x.say("It is not known whether %s took effect.", name)
		x.remedy(SettleRequested{Step: name, As: SettleSucceeded}, "settle %s --step %s --succeeded --output JSON --reason TEXT", run, step)
		x.remedy(SettleRequested{Step: name, As: SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	case n.undoDoubt > 0:
		x.say("It is not known whether the undo of %s took effect.", name)
		x.remedy(SettleRequested{Step: name, As: SettleNotDone}, "settle %s --step %s --not-done --reason TEXT", run, step)
	}
	if d := (&decider{wf: x.wf, s: x.s, run: x.s.run}); !d.hopeless(i) { // else it would fail at once
		x.remedy(CompensateRequested{Step: name, Retry: true}, "compensate %s --step %s --retry", run, step)
	}
	x.remedy(SettleRequested{Step: name, As: SettleUndone}, "settle %s --step %s --undone --reason TEXT", run, step)
	x.remedy(CompensateRequested{Step: name, Skip: true}, "compensate %s --step %s --skip --reason TEXT", run, step)
}

// lost lists what can be done about a run with which engines died.
func (x *explainer) lost() {
	if !x.remedy(RetryRequested{}, "retry %s", x.run()) {
		x.remedy(RetryRequested{Extend: time.Hour}, "retry %s --extend 1h", x.run())
	}
	if !x.remedy(CompensateRequested{}, "compensate %s", x.run()) {
		x.remedy(CancelRequested{}, "cancel %s --reason TEXT", x.run())
	}
	x.remedy(CancelRequested{NoCompensate: true}, "cancel %s --no-compensate --reason TEXT", x.run())
}
