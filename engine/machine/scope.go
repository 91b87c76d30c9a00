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

// scope returns the values that the expressions of a node can read. If n is nil, it returns
// the values for expressions of the workflow itself. Each call changes and returns the same
// Scope, so a result is valid only until the next call.
func (d *decider) scope(n *model.Node) *dsl.Scope {
	sc := &d.seen.scope
	if !d.seen.ready {
		d.seen.ready = true
		if d.seen.results == nil {
			d.seen.results = d.stepResult
		}
		*sc = dsl.Scope{
			Run: dsl.RunInfo{
				ID: d.run.Name, Workflow: d.wf.Name, Key: d.run.Key, StartedAt: d.run.Started.Time(), Trigger: d.run.Trigger,
			},
			Vars: d.run.Vars.V,
			Step: d.seen.results,
			Memo: &d.s.cache.memo,

			Allowance: d.in.Allowance,
		}
	}
	sc.Each, sc.Self = nil, nil
	if len(d.run.Ancestors) > 0 {
		seer{d}.setRunInfo(sc, n)
	}
	if n != nil {
		sc.Self = loops{d}.self(n)
	}
	if n != nil && n.Item {
		d.seen.each = dsl.EachItem{Key: n.Key, Value: n.Each.V}
		sc.Each = &d.seen.each
	}
	return sc
}

// settings returns the evaluated settings of the node's step, such as timeout and retry. They
// are the same for all instances and attempts of the step. So the decider keeps the settings
// that it evaluated last. If an expression cannot be evaluated, settings returns the error.
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

// selfScope returns the scope of a node with the values of self.* added. Postconditions and
// undos need them.
func (d *decider) selfScope(n *model.Node) *dsl.Scope {
	sc := new(dsl.Scope)
	*sc = *d.scope(n)
	self := sc.Self
	sc.Self = &dsl.Self{
		Input: n.Input.V, Given: n.Given.V, Output: n.Output.V, OutputKnown: n.Known, Key: d.forwardKey(n),
		TimedOut: n.TimedOut, Signal: n.EndedBy(),
	}
	if self != nil {
		sc.Self.Previous, sc.Self.Collected = self.Previous, self.Collected
	}
	return sc
}

// caughtScope returns the values that catch.output of a node can read: the values that the method
// `scope` returns, but as self.* only the failure m, as self.error.
func caughtScope(d *decider, n *model.Node, m model.Miss) *dsl.Scope {
	sc := new(dsl.Scope)
	*sc = *d.scope(n)
	sc.Self = &dsl.Self{ErrorCode: m.Code, ErrorText: m.Message, ErrorData: n.Data.V}
	return sc
}

// self returns self.previous and self.collected, which the expressions of a step with a repeat
// block can read, except catch.output. It returns nil if the step of node n has no repeat block.
func (d loops) self(n *model.Node) *dsl.Self {
	r := d.step(n).Repeat
	if r == nil {
		return nil
	}
	s := &dsl.Self{Previous: n.Last.V}
	if r.Collect != nil {
		s.Collected = n.Collected.List
	}
	return s
}

// undoScope returns the values that expressions of a compensate block can read. They are the values
// that selfScope returns, and the failure that is the reason for the undo. In a step with a repeat
// block, self.output is the output of the last call that succeeded.
func (d *decider) undoScope(n *model.Node) *dsl.Scope {
	sc := d.selfScope(n)
	out, known := n.Result()
	sc.Self.Output, sc.Self.OutputKnown = out.V, known
	f := d.run.Failure
	if n.Clearing { // the run itself continues forward: only this step is undone
		f = dsl.Failure{Step: d.step(n).Name, Code: n.Fwd.Code(), Message: n.Fwd.Message()}
	}
	sc.Failure = &f
	return sc
}

// stepResult returns the result of the step with the number i, as expressions see it. It caches the
// results of finished for_each steps, and of finished steps with a repeat block that collects
// values. If the decision that has finished such a step is not committed, the cache is dropped.
func (d *decider) stepResult(i int) dsl.StepResult {
	i = d.wf.NodeOf(i)
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
	repeat := d.wf.Steps[i].Repeat
	collects := repeat != nil && repeat.Collect != nil
	r := dsl.StepResult{Final: final, One: instanceResult(n, collects)}
	if d.wf.Steps[i].ForEach != nil {
		r.Each, r.One = true, dsl.InstanceResult{Status: n.State.String()}
		for k := n.First; k < n.First+n.Count; k++ {
			r.Instances = append(r.Instances, instanceResult(d.get(k), collects))
		}
	}
	if r.Each || collects {
		if final {
			if c.results == nil {
				c.results = map[int]dsl.StepResult{}
			}
			c.results[i] = r
		}
	}
	return r
}

// instanceResult returns the result of one node, as expressions see it. The parameter `collects` is
// true if the step of the node has a repeat block with the attribute `collect`.
func instanceResult(n *model.Node, collects bool) dsl.InstanceResult {
	r := dsl.InstanceResult{
		Key: n.Key, Status: n.State.String(), Attempts: int(n.Fwd.Total),
		StartedAt: n.Fwd.Began.Time(), EndedAt: n.Fwd.Ended.Time(), TimedOut: n.TimedOut, Signal: n.EndedBy(),
	}
	if collects {
		r.Collected = n.Collected.List()
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

// undoSettings returns the settings of the undo of the node's step, such as timeout and retry. It
// returns default settings if the workflow gives no settings, or if these cannot be evaluated. With
// the defaults, transient failures are repeated until the deadline. The longest possible pause
// grows from 1 s to 5 min, and jitter makes each pause shorter.
func (d *decider) undoSettings(n *model.Node) *dsl.Settings {
	undo := d.step(n).Undo
	if undo == nil || undo.Settings == nil {
		return &undoDefaults
	}
	inputs := undoInputs{n: n, output: n.Output, known: n.Known, timedOut: n.TimedOut, said: n.Fwd.Said, failure: d.run.Failure}
	if d.seen.undoSettings == nil || d.seen.undo != inputs {
		s, err := undo.Settings(d.undoScope(n))
		if err != nil {
			return &undoDefaults
		}
		d.seen.undo, d.seen.undoSettings = inputs, s
	}
	return d.seen.undoSettings
}

// forwardKey returns the idempotency key of a node's forward calls. If the step sets
// idempotency_key, the key is the value of this argument. Otherwise, all attempts have the same
// key, on every engine, and no other node has that key (S26, S29). So the key contains no attempt
// number, no time and no list position. Only another iteration of a repeat step, or a new
// generation of the node (Node.Gen), gets another key.
func (d *decider) forwardKey(n *model.Node) string {
	run, step := keyRoot(d.wf, &d.run, n)
	return forwardKey(run, step, n)
}

// keyRoot returns the run and the step name that are part of the idempotency keys of a node. This
// is the run that made the calls of the node, and the first name that the step had in that run.
func keyRoot(wf *dsl.Workflow, r *model.Run, n *model.Node) (status.RunID, string) {
	if len(r.Ancestors) > 0 {
		if from, name := r.Legacy(n.Step); from != nil {
			return from.Run, name
		}
	}
	return r.ID, wf.Steps[n.Step].KeyName()
}

func forwardKey(run status.RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey
	}
	return idempotencyKey(run, step, n.Key, "do", int(n.Loop.Iteration), int(n.Gen))
}

// undoKey returns the idempotency key of a node's undo.
func (d *decider) undoKey(n *model.Node) string {
	run, step := keyRoot(d.wf, &d.run, n)
	return undoKey(run, step, n)
}

func undoKey(run status.RunID, step string, n *model.Node) string {
	if n.BizKey != "" {
		return n.BizKey + ":undo"
	}
	return idempotencyKey(run, step, n.Key, "undo", 0, int(n.Gen))
}

// Keys returns the idempotency keys of a node's forward call and of its undo. It returns
// both even if the node has no undo. wf must be the run's workflow.
func Keys(wf *dsl.Workflow, r *model.Run, n *model.Node) (work, undo string) {
	run, step := keyRoot(wf, r, n)
	return forwardKey(run, step, n), undoKey(run, step, n)
}

// idempotencyKey returns a hash of the data that identify a call. It hashes the length of each text
// before the text, so that two different lists of texts never give the same bytes. For example, the
// lists ("ab", "c") and ("a", "bc") give different bytes. The parameter `iteration` is the number
// of the iteration of a repeat block, counted from 0. It is 0 for a step without a repeat block. It
// is also 0 for an undo, because one undo reverts all iterations of the step.
func idempotencyKey(id status.RunID, step, key, direction string, iteration, generation int) string {
	var short [128]byte
	b := short[:0]
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	for _, part := range [...]string{step, key, direction} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(iteration))
	b = binary.BigEndian.AppendUint32(b, uint32(generation))
	sum := sha256.Sum256(b)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return string(text[:])
}

// undoDefaults are the settings of an undo if the workflow gives none. No code may change them.
var undoDefaults = dsl.Settings{
	Timeout: defaultTimeout,
	Retry: dsl.Retry{
		MaxAttempts: dsl.Unbounded, Strategy: dsl.Exponential,
		InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Minute, Jitter: true,
	},
}

const defaultTimeout = 30 * time.Second

// childTimeout is how long a step waits for its child run if no deadline comes first. It is ten
// years, because a child run may wait for a person.
const childTimeout = 10 * 365 * 24 * time.Hour

// checkCondition evaluates one precondition or postcondition. It returns true if the condition is
// true. If the condition is false, or cannot be evaluated, it returns the failure and false. The
// parameter `what` has the value "precondition" or "postcondition".
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

// describe returns the failure m with the error_code and the error_message of the condition c.
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

// Scope returns the values that expressions can read in a state: var.*, run.* and step.*. They are
// the values that the expressions of the workflow itself would read now. A Scope is valid until the
// next use of the Scratch. It uses caches of the state. So only one goroutine at a time may use the
// Scope or the state.
func (s *Scratch) Scope(wf *dsl.Workflow, state *State) *dsl.Scope {
	d := s.decider()
	d.open(wf, state, Input{})
	return d.scope(nil)
}

// A seer sets the values of run.* that the expressions of a node can read.
type seer struct{ *decider }

// setRunInfo sets run.* for the expressions of node n; nil = for expressions of the workflow. If
// the step was taken over from an ended run, run.* describes the ended run, because the ended run
// made the calls of the step. The expressions of such a step use no cache, because the cache holds
// values of the present run.
func (d seer) setRunInfo(sc *dsl.Scope, n *model.Node) {
	sc.Run = dsl.RunInfo{ID: d.run.Name, Workflow: d.wf.Name, Key: d.run.Key, StartedAt: d.run.Started.Time(), Trigger: d.run.Trigger}
	sc.Memo = &d.s.cache.memo
	if n == nil {
		return
	}
	if from, _ := d.run.Legacy(n.Step); from != nil {
		sc.Run.ID, sc.Run.Key, sc.Run.StartedAt, sc.Run.Trigger = from.Name, from.Key, from.Started.Time(), from.Trigger
		sc.Memo = nil
	}
}
