package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A step with a repeat block makes several iterations, one after the other. The fields of its node
// describe the present iteration. So the rules for attempts, lookups and unknown outcomes apply to
// each iteration. Loop.Past is true if an earlier iteration had an effect. When the run turns back,
// one undo reverts the effects of all iterations.

// maxAtOnce is how many iterations one decision may begin, counted over all steps. The first
// iteration of a step does not count. Without this limit, a loop that calls no agent could keep a
// decision busy for ever.
const maxAtOnce = 100

// succeed is called when the call or the wait of node i has succeeded. If the step has no repeat
// block, or its loop is over, the node ends as succeeded. If the loop is not over, the next
// iteration is planned. The iteration fails if an expression of the repeat block cannot be
// evaluated, if a limit is reached, or if `until` is still false after the last iteration that is
// allowed.
func (d loops) succeed(i int) {
	n := d.edit(i)
	r := d.step(n).Repeat
	// If the deadline of a step with on_timeout = "continue" has passed, no other iteration begins.
	timedOut := n.TimedOut && d.step(n).Wait != nil
	if r == nil || timedOut {
		d.end(i)
		return
	}
	if m, ok := d.gather(i); !ok {
		d.forward().missed(i, m)
		return
	}
	over, err := false, error(nil)
	if r.Until != nil {
		if over, err = r.Until(d.selfScope(n)); err != nil {
			d.forward().missed(i, loopMiss("until", err))
			return
		}
	}
	settings, err := d.settings(n)
	switch {
	case over:
	case err != nil:
		d.forward().missed(i, loopMiss("max_iterations", err))
		return
	case settings.MaxIterations == 0 || int(n.Loop.Iteration)+1 < settings.MaxIterations:
		d.plan(i)
		return
	case r.Until != nil:
		d.forward().missed(i, model.Miss{
			Kind: model.MissPermanent, Code: codeMaxIterations,
			Message: fmt.Sprintf("until was not true after %d iterations", settings.MaxIterations),
		})
		return
	}
	d.end(i)
}

// end ends node i with the state succeeded.
func (d loops) end(i int) {
	n := d.edit(i)
	n.Loop.Between = false
	d.keepGiven(n)
	n.Fwd.Blame(model.Miss{})
	d.forward().endForward(i, status.StepSucceeded)
}

// gather appends the value of `collect` to the list of node i, and returns true. If the list
// already has the value of the present iteration, gather only returns true. If `collect` cannot be
// evaluated, or the list would be too large, gather returns the failure and false.
func (d loops) gather(i int) (model.Miss, bool) {
	n := d.get(i)
	if !d.lacks(n) {
		return model.Miss{}, true
	}
	v, err := d.step(n).Repeat.Collect(d.selfScope(n))
	if err != nil {
		return loopMiss("collect", err), false
	}
	bytes := len(v.JSON())
	switch {
	case n.Collected.Len() >= model.MaxCollected:
		return tooMuch("%d values are collected already, and this is the limit", model.MaxCollected), false
	case n.Collected.Size()+int64(bytes) > model.MaxCollectedBytes:
		return tooMuch("the collected values would have %d bytes together; the limit is %d",
			n.Collected.Size()+int64(bytes), model.MaxCollectedBytes), false
	}
	if m, ok := d.grow("collect", bytes); !ok {
		return m, false
	}
	d.append(i, v)
	return model.Miss{}, true
}

// gatherLast collects the value of an iteration that has an effect, but did not end well: for
// example, its result came after the run had turned back, a postcondition failed, or its value
// exceeded a limit. The undo needs this value, so no limit applies. If the value cannot be
// computed, the undo still has self.output.
func (d loops) gatherLast(i int) {
	n := d.get(i)
	if !n.Known || !d.lacks(n) {
		return
	}
	if v, err := d.step(n).Repeat.Collect(d.selfScope(n)); err == nil {
		d.append(i, v)
	}
}

// lacks reports whether the loop of a node collects values, and the value of the present iteration
// is missing.
func (d loops) lacks(n *model.Node) bool {
	r := d.step(n).Repeat
	return r != nil && r.Collect != nil && n.Collected.Len() <= n.Loop.Iteration
}

// append adds a value to the list of node i. The record must then store the field Last again, too.
// Last may be a reference to the output of a node, and this output may have changed since. So
// append makes a new reference, with the method `keep`.
func (d loops) append(i int, v dsl.Value) {
	n := d.edit(i)
	n.Last = d.s.keep(n.Last.V)
	n.Collected = n.Collected.Append(v, d.s.before(i).Collected.Len())
}

// keepGiven makes a new reference for the field Given of a node whose field Loop has changed: the
// record then stores both fields again. The method `append` makes a new reference for the field
// Last, for the same reason. The comment of that method explains the reason.
func (d loops) keepGiven(n *model.Node) {
	if !n.Given.V.IsNull() {
		n.Given = d.s.keep(n.Given.V)
	}
}

// loopMiss returns the failure of an iteration if an expression of the repeat block cannot be
// evaluated. It has the code of a failed postcondition: in both cases the call may have had its
// effect.
func loopMiss(what string, err error) model.Miss {
	return model.Miss{Kind: model.MissCondition, Code: "postcondition_failed", Message: what + ": " + err.Error()}
}

// tooMuch returns the failure of a step that would collect more than a fixed limit allows.
func tooMuch(format string, args ...any) model.Miss {
	return model.Miss{Kind: model.MissExpression, Code: CodeLimit, Message: "collect: " + fmt.Sprintf(format, args...)}
}

// plan plans the next iteration of node i. The iteration begins after the interval of the repeat
// block. If there is no interval, it begins at once, or in a later decision if the run is parked,
// early signals are left for a wait step, or this decision has planned more than maxAtOnce
// iterations. If the interval would end at the deadline or after it, the loop ends.
func (d loops) plan(i int) {
	n := d.edit(i)
	step := d.step(n)
	until := d.at
	if step.Repeat.Interval != nil {
		pause, err := step.Repeat.Interval(d.selfScope(n))
		if err != nil {
			d.forward().missed(i, loopMiss("interval", err))
			return
		}
		until = d.at.Add(pause)
	}
	// A parked run gets later deadlines when it continues. So the deadlines that it has now do not
	// matter here.
	if by := d.forward().forwardBound(i); !d.run.Parked && by != 0 && until > d.at && until >= by {
		d.outOfTime(i)
		return
	}
	n.Last = d.s.keep(n.Output.V)
	n.Loop.Between = true
	d.keepGiven(n)
	n.Stated = model.StatedNothing // no person can correct the outcome now: the loop has used it
	n.Fwd.Blame(model.Miss{})
	n.Fwd.Kind, n.Fwd.Ended = model.CallDo, 0
	d.looped++
	// A record can store only one signal that a node has taken. So if more signals have
	// arrived, the node takes the next one in another decision.
	signals := step.Wait != nil && len(d.waits().early()) > 0
	if until > d.at || d.run.Parked || signals || d.looped > maxAtOnce {
		d.caller().pause(i, max(until, d.at+1))
		return
	}
	d.caller().rest(i)
	d.launch.push(i)
}

// outOfTime ends the loop of node i, because its deadline comes before the next iteration. A wait
// with on_timeout = "continue" succeeds; any other step fails.
func (d loops) outOfTime(i int) {
	n := d.edit(i)
	if w := d.step(n).Wait; w != nil && w.Continue {
		n.TimedOut = true
		d.waits().done(i, dsl.Value{})
		return
	}
	d.forward().missed(i, model.Miss{
		Kind: model.MissDeadline, Code: CodeDeadlineExceeded,
		Message: fmt.Sprintf("the deadline leaves no time for another iteration after %d", n.Loop.Iteration+1),
	})
}

// ready begins the next iteration of node i if one is planned and the run may start calls. It
// returns false only if the node has ended instead of beginning that iteration (method `next`).
func (d loops) ready(i int, kind model.CallKind) bool {
	return !d.get(i).Loop.Between || kind != model.CallDo || d.slots().halted() || d.next(i)
}

// next begins the planned iteration of node i and returns true. If `when` is false now, or cannot
// be evaluated, it ends the node and returns false.
func (d loops) next(i int) bool {
	n := d.get(i)
	step := d.step(n)
	when := step.When
	if n.Item {
		when = step.WhenEach
	}
	if !d.forward().wanted(i, when) {
		return false
	}
	n = d.edit(i)
	n.Loop = model.Loop{Iteration: n.Loop.Iteration + 1, Calls: n.Calls, Past: n.OwnEffect() != status.EffectNone}
	d.keepGiven(n)
	n.Doubt, n.Done, n.Known, n.Output = 0, false, false, model.StoredValue{}
	n.Prepared, n.TimedOut, n.Data = false, false, model.StoredValue{}
	n.Point, n.Blob = 0, nil
	n.Fwd.Attempt, n.Fwd.Rounds, n.Fwd.Lookups = 0, 0, 0
	return true
}

// unwanted ends node i, because its condition `when` is false. Before the first iteration the node
// is skipped. Later it succeeds with the output of the last iteration.
func (d loops) unwanted(i int) {
	n := d.edit(i)
	if n.Loop.Iteration == 0 && !n.Loop.Between {
		d.forward().endForward(i, status.StepSkipped)
		return
	}
	if out, known := n.Result(); known && !n.Known {
		n.Known, n.Output = true, d.s.keep(out.V)
	}
	d.end(i)
}

// wanted evaluates the condition `when` of node i, and returns true if the node must run. A node
// without a condition must run. If the condition is false, the method `unwanted` ends the node, as
// skipped or as succeeded. If the condition cannot be evaluated, the node fails.
func (d forward) wanted(i int, when func(*dsl.Scope) (bool, error)) bool {
	if when == nil {
		return true
	}
	yes, err := when(d.scope(d.get(i)))
	switch {
	case err != nil:
		d.missed(i, expressionMiss("when", err))
	case !yes:
		loops(d).unwanted(i)
	}
	return err == nil && yes
}
