package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// begin starts node i, whose step calls no agent. A value step also ends at once.
func (d waits) begin(i int) {
	n := d.edit(i)
	n.Queue, n.Hold = 0, 0
	n.Fwd.Act = model.Idle
	if n.Fwd.Began == 0 {
		n.Fwd.Began = d.at
	}
	d.run.Begin()
	switch step := d.step(n); {
	case step.Value != nil:
		out, err := step.Value(d.scope(n))
		if err != nil {
			d.forward().missed(i, expressionMiss("value", err))
			return
		}
		d.done(i, out)
	case step.Until != nil:
		d.setTimer(i)
	case step.Wait != nil:
		d.listen(i)
	}
}

// setTimer starts the timer of node i. If the workflow gives a duration, the duration counts from
// the time at which the step was ready. In the second and later iterations of a repeat block, the
// duration counts from now. If the end of the timer has passed already, the step ends at once.
func (d waits) setTimer(i int) {
	n := d.edit(i)
	limit, err := d.step(n).Until(d.scope(n))
	if err != nil {
		d.forward().missed(i, expressionMiss("timer", err))
		return
	}
	from := n.Fwd.Ready
	if n.Loop.Iteration > 0 {
		from = d.at
	}
	at, _ := limit.From(from.Time())
	if until := model.ToInstant(at); until > d.at {
		n.State, n.Fwd.Act, n.Fwd.Until = status.StepWaiting, model.Waiting, until
		return
	}
	d.done(i, dsl.Value{})
}

// timerEnded ends node i, whose timer has ended.
func (d waits) timerEnded(i int) { d.done(i, dsl.Value{}) }

// listen makes node i wait for its signals. If there are early signals that the node can take,
// the oldest of them ends the node at once.
func (d waits) listen(i int) {
	n := d.edit(i)
	names, err := d.step(n).Wait.Signals(d.scope(n))
	if err != nil {
		d.forward().missed(i, expressionMiss("signal", err))
		return
	}
	n.Signal.Awaits = strings.Join(names, "\n")
	n.State, n.Fwd.Act, n.Fwd.Until = status.StepWaiting, model.Waiting, 0
	for _, s := range d.early() {
		if d.takes(i, s) {
			return
		}
	}
}

// takes ends node i with the signal s and returns true, if the node waits for a signal of this name
// and the payload has the declared type. Otherwise it changes nothing and returns false. A signal
// with an error code needs no payload; it makes the node fail.
func (d waits) takes(i int, s signal) bool {
	n := d.get(i)
	if !n.Waits() || !slices.Contains(strings.Split(n.Signal.Awaits, "\n"), s.Name) {
		return false
	}
	var out dsl.Value
	if s.Fail == "" {
		var err error
		if out, err = d.step(n).Wait.Payload(s.Payload.JSON()); err != nil {
			return false
		}
	}
	d.take(s.Number)
	n = d.edit(i)
	n.Signal = model.Reception{Awaits: n.Signal.Awaits, Name: s.Name, Number: s.Number}
	if s.Fail != "" {
		n.Fwd.Act = model.Idle
		d.forward().missed(i, model.Miss{Kind: model.MissPermanent, Code: s.Fail, Message: s.Reason})
		return true
	}
	d.done(i, out)
	return true
}

// done ends node i as succeeded, with the output in the parameter `out`. If the step has a repeat
// block that is not over, done plans the next iteration instead. The step of the node calls no
// agent. If a postcondition does not hold, or the output is too large, the node fails.
func (d waits) done(i int, out dsl.Value) {
	n := d.edit(i)
	n.Fwd.Act = model.Idle
	if m, ok := d.grow("output", len(out.JSON())); !ok {
		d.forward().missed(i, m)
		return
	}
	n.Known, n.Output = true, d.s.keep(out)
	if m, ok := d.answers().postconditions(i); !ok {
		d.forward().missed(i, m)
		return
	}
	loops{d.decider}.succeed(i)
}

// timedOut is called when the deadline of node i has passed. It ends the node and returns true if
// two conditions hold: the step has on_timeout = "continue", and the node waits for a signal or for
// its next iteration. Otherwise it returns false, and the caller lets the node fail.
func (d waits) timedOut(i int) bool {
	n := d.get(i)
	w := d.step(n).Wait
	if !n.Waits() && (w == nil || !n.Loop.Between) {
		return false
	}
	n = d.edit(i)
	n.Fwd.Act = model.Idle
	if w == nil {
		return false
	}
	n.TimedOut = true
	if !w.Continue {
		return false
	}
	d.done(i, dsl.Value{})
	return true
}

// signalReceived gives a signal to the first node that takes it. If no node takes the signal now,
// the run keeps it, for a later step or for a group that has not started. signalReceived refuses
// the signal if no step can ever take it, or if the run keeps too many signals.
func (d waits) signalReceived(ev SignalReceived) {
	ev.Forgets = ev.ID != "" && !d.s.signals.knows(ev.ID) && d.s.signals.full()
	d.event = ev
	if d.s.signals.knows(ev.ID) {
		return // the run has accepted this signal before, so it changes nothing
	}
	if why := d.unwanted(ev); why != "" {
		d.verbs().refuse("signal", ev.By, "%s", why)
		return
	}
	d.arrived = []signal{ev.signal(d.s.signals.last + 1)}
	for i := range d.decider.count() {
		if d.takes(i, d.arrived[0]) {
			return
		}
	}
	if why := d.crowded(); why != "" {
		d.arrived = nil
		d.verbs().refuse("signal", ev.By, "%s", why)
	}
}

// crowded returns the reason why the run cannot keep the signal that has arrived. It returns "" if
// the run can keep the signal.
func (d waits) crowded() string {
	early := &d.s.signals
	switch sum := early.bytes + signalBytes(&d.arrived[0]); {
	case len(early.list) >= maxSignals:
		return fmt.Sprintf("%d signals wait already, and no step takes them", maxSignals)
	case sum > maxSignalBytes:
		return fmt.Sprintf("with this signal, the signals that no step has taken yet would have %d bytes; the run keeps at most %d",
			sum, maxSignalBytes)
	}
	return ""
}

// unwanted returns "" if a step of the run, or a group that has not started, can take the signal
// now or later. If none of them can ever take it, unwanted returns the reason.
func (d waits) unwanted(ev SignalReceived) string {
	if d.run.Phase == model.PhaseUndo || d.run.Turning {
		return "the run is being undone: no step waits for a signal any more"
	}
	if ev.Fail != "" && !sdk.ValidCode(ev.Fail) {
		return fmt.Sprintf("%.60q is no error code: lower case letters, digits and _, such as plan_refused", ev.Fail)
	}
	s, group, ended := ev.signal(0), "", false
	var bad error
	for i, step := range d.wf.Steps {
		if group == "" && step.AwaitsInside(ev.Name) {
			group = step.Name
		}
		var err error
		switch {
		case step.Awaits(ev.Name) && d.get(i).Ended():
			ended = true
			continue
		case step.Awaits(ev.Name):
			err = s.Fits(step.Wait)
		case step.AwaitsInside(ev.Name) && d.starts(i, -1):
			err = fitsInside(step, &s)
		default:
			continue
		}
		if err == nil {
			return ""
		}
		bad = cmp.Or(bad, err)
	}
	switch {
	case bad != nil:
		return "the payload does not fit: " + bad.Error()
	case ended:
		return "the step that waits for signal " + ev.Name + " has ended"
	case group != "":
		return fmt.Sprintf("the step that waits for signal %s is in group %s, which is a run of its own", ev.Name, group)
	}
	var listened []string
	for _, step := range d.wf.Steps {
		listened = append(listened, step.SignalNames()...)
	}
	if len(listened) == 0 {
		return "no step of the workflow waits for a signal"
	}
	slices.Sort(listened)
	return "no step waits for signal " + ev.Name + "; the workflow waits for " + strings.Join(slices.Compact(listened), ", ")
}

// count returns how many nodes wait for a signal, or for the end of a timer.
func (d waits) count() int32 {
	waits := d.s.run.Waits
	for k := range d.draft.list {
		e := &d.draft.list[k]
		if e.old.Waits() {
			waits--
		}
		if e.now.Waits() {
			waits++
		}
	}
	return waits
}
