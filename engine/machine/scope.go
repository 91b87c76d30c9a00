package machine

import (
	"errors"
	"strconv"

	"github.com/saga-engine/engine/dsl"
)

var (
	errEach     = errors.New("keys and values differ in number")
	errEmptyKey = errors.New("the key is empty")
)

// A seen is what expressions have been shown, or have said, in a decision.
type seen struct {
	scope    dsl.Scope
	ready    bool                     // scope is
	results  func(int) dsl.StepResult // of this decider
	each     dsl.EachItem
	step     int32         // of settings
	settings *dsl.Settings // of the step last asked for; nil = none

	undo         undoTold
	undoSettings *dsl.Settings // of the node in undo; nil = none
}

// An undoTold is what the limits of a node's undo may depend on.
type undoTold struct {
	n               *node
	output          held
	known, timedOut bool
	said            *saying
	failure         dsl.Failure
}

// scope is what the expressions of a node see; nil for the workflow's own. It is
// the decision's only one, good until it is asked for again.
func (d *decider) scope(n *node) *dsl.Scope {
	sc := &d.seen.scope
	if !d.seen.ready {
		d.seen.ready = true
		if d.seen.results == nil {
			d.seen.results = d.stepResult
		}
		*sc = dsl.Scope{
			Run: dsl.RunInfo{
				ID: d.run.name, Workflow: d.wf.Name, Key: d.run.key, StartedAt: d.run.started.time(),
			},
			Vars: d.run.vars.v,
			Step: d.seen.results,
			Memo: &d.s.cache.memo,

			Allowance: d.in.Allowance,
		}
	}
	sc.Each = nil
	if n != nil && n.item {
		d.seen.each = dsl.EachItem{Key: n.key, Value: n.each.v}
		sc.Each = &d.seen.each
	}
	return sc
}

// settings are the limits of a node's step. They are the same for all its
// instances and all its attempts, so that a decision asks once.
func (d *decider) settings(n *node) (*dsl.Settings, error) {
	if d.seen.settings != nil && d.seen.step == n.step {
		return d.seen.settings, nil
	}
	settings, err := d.step(n).Settings(d.scope(n))
	if err != nil {
		return nil, err
	}
	d.seen.step, d.seen.settings = n.step, settings
	return settings, nil
}

// selfScope adds self.* for a postcondition.
func (d *decider) selfScope(n *node) *dsl.Scope {
	sc := new(dsl.Scope)
	*sc = *d.scope(n)
	sc.Self = &dsl.Self{
		Input: n.input.v, Output: n.output.v, OutputKnown: n.known, Key: d.forwardKey(n), TimedOut: n.timedOut,
	}
	return sc
}

// undoScope is what compensate sees.
func (d *decider) undoScope(n *node) *dsl.Scope {
	sc := d.selfScope(n)
	f := d.run.failure
	if n.clearing { // the run itself goes on: only this step is undone
		f = dsl.Failure{Step: d.step(n).Name, Code: n.fwd.code(), Message: n.fwd.message()}
	}
	sc.Failure = &f
	return sc
}

// stepResult is what expressions see of a step. Results of finished steps are
// cached for the run, also those that this very decision finished: the cache
// is dropped if the record is not applied.
func (d *decider) stepResult(i int) dsl.StepResult {
	if i < 0 || i >= int(d.run.steps) {
		return dsl.StepResult{}
	}
	c := d.s.cache
	if r, ok := c.results[i]; ok {
		return r
	}
	n := d.get(i)
	final := n.ended()
	if final && d.draft.find(i) != nil {
		c.pending = true
	}
	r := dsl.StepResult{Final: final, One: instanceResult(n)}
	if d.wf.Steps[i].ForEach != nil {
		r.Each, r.One = true, dsl.InstanceResult{Status: n.state.String()}
		for k := n.first; k < n.first+n.count; k++ {
			r.Instances = append(r.Instances, instanceResult(d.get(k)))
		}
		if final {
			if c.results == nil {
				c.results = map[int]dsl.StepResult{}
			}
			c.results[i] = r
		}
	}
	return r
}

func instanceResult(n *node) dsl.InstanceResult {
	r := dsl.InstanceResult{
		Key: n.key, Status: n.state.String(), Attempts: int(n.fwd.total),
		StartedAt: n.fwd.began.time(), TimedOut: n.timedOut,
	}
	switch n.state {
	case StepSucceeded:
		r.Output = n.output.v
	case StepCaught:
		r.Output = n.caught.v
	}
	if n.state == StepCaught || n.state == StepFailed {
		r.ErrorCode, r.ErrorText = n.fwd.code(), n.fwd.message()
	}
	return r
}

// postconditions checks what must hold after a result. A condition that cannot
// be evaluated counts as failed.
func (d *decider) postconditions(i int) (miss, bool) {
	n := d.get(i)
	for _, c := range d.step(n).Post {
		if m, ok := checkCondition(c, d.selfScope(n), "postcondition"); !ok {
			if m.kind == missExpression {
				m.kind, m.code = missCondition, "postcondition_failed"
			}
			return m, false
		}
	}
	return miss{}, true
}

// checkCondition evaluates one condition.
func checkCondition(c dsl.Condition, sc *dsl.Scope, what string) (miss, bool) {
	ok, err := c.Check(sc)
	if err != nil {
		return expressionMiss(what, err), false
	}
	if ok {
		return miss{}, true
	}
	m := miss{kind: missCondition, code: what + "_failed"}
	if c.Code != nil {
		if code, err := c.Code(sc); err == nil && code != "" {
			m.code = code
		}
	}
	if c.Message != nil {
		text, err := c.Message(sc)
		if err != nil {
			text = "error_message: " + err.Error()
		}
		m.message = text
	}
	return m, false
}

// nodeName returns a node's name as people write it: step, or step["key"].
func nodeName(wf *dsl.Workflow, i int, n *node) string {
	name := "#" + strconv.Itoa(int(n.step))
	if wf != nil && int(n.step) < len(wf.Steps) {
		name = wf.Steps[n.step].Name
	}
	if n.item {
		name += "[" + strconv.Quote(n.key) + "]"
	}
	return name
}
