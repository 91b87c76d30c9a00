package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

var (
	errEach     = errors.New("keys and values differ in number")
	errEmptyKey = errors.New("the key is empty")
)

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
		StartedAt: n.Fwd.Began.Time(), TimedOut: n.TimedOut, Signal: n.Signal.Name,
	}
	switch n.State {
	case status.StepSucceeded:
		r.Output = n.Output.V
	case status.StepCaught:
		r.Output = n.Caught.V
	}
	if n.State == status.StepCaught || n.State == status.StepFailed {
		r.ErrorCode, r.ErrorText, r.ErrorData = n.Fwd.Code(), n.Fwd.Message(), n.Data.V
	}
	return r
}

// undoSettings are the limits of a step's undo, with defaults where none are
// given: transient failures are repeated, 1s to 5m apart, until the deadline.
func (d *decider) undoSettings(n *model.Node) *dsl.Settings {
	undo := d.step(n).Undo
	if undo == nil || undo.Settings == nil {
		return &undoDefaults
	}
	told := undoTold{n: n, output: n.Output, known: n.Known, timedOut: n.TimedOut, said: n.Fwd.Said, failure: d.run.Failure}
	if d.seen.undoSettings == nil || d.seen.undo != told {
		s, err := undo.Settings(d.undoScope(n))
		if err != nil {
			return &undoDefaults
		}
		d.seen.undo, d.seen.undoSettings = told, s
	}
	return d.seen.undoSettings
}

// forwardKey is the idempotency key of a node's work: the same for all its
// attempts, on whatever engine, and for no other call (S26, S29). It holds
// neither attempt number nor time nor list position.
func (d *decider) forwardKey(n *model.Node) string {
	return forwardKey(d.run.ID, d.step(n).Name, n)
}

func forwardKey(run status.RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey
	}
	return idempotencyKey(run, step, n.Key, "do", int(n.Gen))
}

// undoKey is the idempotency key of a node's undo.
func (d *decider) undoKey(n *model.Node) string {
	return undoKey(d.run.ID, d.step(n).Name, n)
}

func undoKey(run status.RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey + ":undo"
	}
	return idempotencyKey(run, step, n.Key, "undo", int(n.Gen))
}

// Keys returns the idempotency keys of a node's work and of its undo, whether it has one or
// not. wf must be the run's workflow.
func Keys(wf *dsl.Workflow, r *model.Run, n *model.Node) (work, undo string) {
	step := wf.Steps[n.Step].Name
	return forwardKey(r.ID, step, n), undoKey(r.ID, step, n)
}

// idempotencyKey hashes what identifies a call. Every part is preceded by its
// length, so that no two lists of parts read alike. The zero after the key is
// the repeat index of a step without repeat.
func idempotencyKey(id status.RunID, step, key, direction string, generation int) string {
	var short [128]byte
	b := short[:0]
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	for _, part := range [...]string{step, key, direction} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(generation))
	sum := sha256.Sum256(b)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

// undoDefaults are the limits of an undo for which none are stated. Nobody
// changes them.
var undoDefaults = dsl.Settings{
	Timeout: defaultTimeout,
	Retry: dsl.Retry{
		MaxAttempts: dsl.Unbounded, Strategy: dsl.Exponential,
		InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Minute, Jitter: true,
	},
}

const defaultTimeout = 30 * time.Second

// checkCondition evaluates one condition.
func checkCondition(c dsl.Condition, sc *dsl.Scope, what string) (model.Miss, bool) {
	ok, err := c.Check(sc)
	if err != nil {
		return expressionMiss(what, err), false
	}
	if ok {
		return model.Miss{}, true
	}
	return describe(c, sc, model.Miss{Kind: model.MissCondition, Code: what + "_failed"}), false
}

// describe adds the code and the message of a condition to a failure.
func describe(c dsl.Condition, sc *dsl.Scope, m model.Miss) model.Miss {
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
	return m
}
