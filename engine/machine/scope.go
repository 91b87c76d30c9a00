package machine

import (
	"errors"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

var (
	errEach     = errors.New("keys and values differ in number")
	errEmptyKey = errors.New("the key is empty")
)

// A seen caches the scope that the expressions of one decision read, and the settings
// that they return. Each is made once.
type seen struct {
	scope    dsl.Scope
	ready    bool                     // scope is filled in
	results  func(int) dsl.StepResult // reads from this decider
	each     dsl.EachItem
	step     int32         // whose settings these are
	settings *dsl.Settings // nil = none yet

	undo         undoTold
	undoSettings *dsl.Settings // of the node in undo; nil = none yet
}

// An undoTold holds the values on which the limits of a node's undo may depend.
type undoTold struct {
	n               *model.Node
	output          model.Held
	known, timedOut bool
	said            *model.Saying
	failure         dsl.Failure
}

// scope is what the expressions of a node see; nil for the workflow's own. It is
// the decision's only one, good until it is asked for again.
func (d *decider) scope(n *model.Node) *dsl.Scope {
	sc := &d.seen.scope
	if !d.seen.ready {
		d.seen.ready = true
		if d.seen.results == nil {
			d.seen.results = d.stepResult
		}
		*sc = dsl.Scope{
			Run: dsl.RunInfo{
				ID: d.run.Name, Workflow: d.wf.Name, Key: d.run.Key, StartedAt: d.run.Started.Time(),
			},
			Vars: d.run.Vars.V,
			Step: d.seen.results,
			Memo: &d.s.cache.memo,

			Allowance: d.in.Allowance,
		}
	}
	sc.Each = nil
	if n != nil && n.Item {
		d.seen.each = dsl.EachItem{Key: n.Key, Value: n.Each.V}
		sc.Each = &d.seen.each
	}
	return sc
}

// settings are the limits of a node's step. They are the same for all its
// instances and all its attempts, so that a decision asks once.
func (d *decider) settings(n *model.Node) (*dsl.Settings, error) {
	if d.seen.settings != nil && d.seen.step == n.Step {
		return d.seen.settings, nil
	}
	settings, err := d.step(n).Settings(d.scope(n))
	if err != nil {
		return nil, err
	}
	d.seen.step, d.seen.settings = n.Step, settings
	return settings, nil
}

// selfScope adds self.* for a postcondition.
func (d *decider) selfScope(n *model.Node) *dsl.Scope {
	sc := new(dsl.Scope)
	*sc = *d.scope(n)
	sc.Self = &dsl.Self{
		Input: n.Input.V, Output: n.Output.V, OutputKnown: n.Known, Key: d.forwardKey(n), TimedOut: n.TimedOut,
	}
	return sc
}

// undoScope is what compensate sees.
func (d *decider) undoScope(n *model.Node) *dsl.Scope {
	sc := d.selfScope(n)
	f := d.run.Failure
	if n.Clearing { // the run itself goes on: only this step is undone
		f = dsl.Failure{Step: d.step(n).Name, Code: n.Fwd.Code(), Message: n.Fwd.Message()}
	}
	sc.Failure = &f
	return sc
}

// stepResult is what expressions see of a step. Results of finished steps are
// cached for the run, also those that this very decision finished: the cache
// is dropped if the record is not applied.
func (d *decider) stepResult(i int) dsl.StepResult {
	if i < 0 || i >= int(d.run.Steps) {
		return dsl.StepResult{}
	}
	c := d.s.cache
	if r, ok := c.results[i]; ok {
		return r
	}
	n := d.get(i)
	final := n.Ended()
	if final && d.draft.find(i) != nil {
		c.pending = true
	}
	r := dsl.StepResult{Final: final, One: instanceResult(n)}
	if d.wf.Steps[i].ForEach != nil {
		r.Each, r.One = true, dsl.InstanceResult{Status: n.State.String()}
		for k := n.First; k < n.First+n.Count; k++ {
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

func instanceResult(n *model.Node) dsl.InstanceResult {
	r := dsl.InstanceResult{
		Key: n.Key, Status: n.State.String(), Attempts: int(n.Fwd.Total),
		StartedAt: n.Fwd.Began.Time(), TimedOut: n.TimedOut,
	}
	switch n.State {
	case StepSucceeded:
		r.Output = n.Output.V
	case StepCaught:
		r.Output = n.Caught.V
	}
	if n.State == StepCaught || n.State == StepFailed {
		r.ErrorCode, r.ErrorText = n.Fwd.Code(), n.Fwd.Message()
	}
	return r
}

// postconditions checks what must hold after a result. A condition that cannot
// be evaluated counts as failed.
func (d *decider) postconditions(i int) (model.Miss, bool) {
	n := d.get(i)
	for _, c := range d.step(n).Post {
		if m, ok := checkCondition(c, d.selfScope(n), "postcondition"); !ok {
			if m.Kind == model.MissExpression {
				m.Kind, m.Code = model.MissCondition, "postcondition_failed"
			}
			return m, false
		}
	}
	return model.Miss{}, true
}

// checkCondition evaluates one condition.
func checkCondition(c dsl.Condition, sc *dsl.Scope, what string) (model.Miss, bool) {
	ok, err := c.Check(sc)
	if err != nil {
		return expressionMiss(what, err), false
	}
	if ok {
		return model.Miss{}, true
	}
	m := model.Miss{Kind: model.MissCondition, Code: what + "_failed"}
	if c.Code != nil {
		if code, err := c.Code(sc); err == nil && code != "" {
			m.Code = code
		}
	}
	if c.Message != nil {
		text, err := c.Message(sc)
		if err != nil {
			text = "error_message: " + err.Error()
		}
		m.Message = text
	}
	return m, false
}
