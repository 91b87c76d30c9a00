package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// call starts the planned call of node i, if that is possible now. If the agent has no free
// slot, the node waits for a slot. A pause, a ceiling, or an undo that must come first can
// also prevent the call.
func (d caller) call(i int) {
	n := d.get(i)
	if n.Undo == model.UndoNone && (d.run.Phase == model.PhaseUndo || n.Ended()) || n.Undo != model.UndoNone && n.Undo != model.UndoActive {
		return // the call was planned earlier in this decision, but is not needed any more
	}
	kind := n.Track().Kind
	if kind == model.CallNone {
		kind = model.CallDo
		d.edit(i).Fwd.Kind = kind
	}
	// An answer to an older attempt has asked for a pause.
	if kind == model.CallDo && n.Fwd.Rest > d.at {
		d.caller().pause(i, n.Fwd.Rest)
		return
	}
	if m, over := d.exceeded(); over && kind == model.CallDo && !d.slots().halted() {
		d.run.Begin()
		d.forward().missed(i, m)
		return
	}
	if !(loops(d)).ready(i, kind) {
		return
	}
	if kind == model.CallDo && !d.slots().halted() && d.undoing().mustClear(n) {
		d.undoing().clear(i)
		return
	}
	agent := d.agentOf(n, kind)
	if !d.slots().canStart(i, agent) {
		d.slots().hold(i, agent)
		return
	}
	if !d.step(n).Calls() {
		if d.prepare(i) {
			d.waits().begin(i)
		}
		return
	}
	if kind == model.CallDo && !d.prepare(i) || kind == model.CallUndo && !d.undoing().prepareUndo(i) {
		return
	}
	asked, err := d.lookupInput(n, kind)
	if err != nil {
		d.cannotAsk(i, kind)
		return
	}
	d.start(i, kind, asked)
}

// lookupInput evaluates the input of a lookup that calls another action than the earlier call,
// whose outcome is unknown. For any other call, lookupInput returns null.
func (d caller) lookupInput(n *model.Node, kind model.CallKind) (dsl.Value, error) {
	step := d.step(n)
	switch {
	case kind == model.CallLookup && step.Do.Asks != nil:
		return step.Do.AskInput(d.selfScope(n))
	case kind == model.CallUndoLookup && step.Undo.Do.Asks != nil:
		return step.Undo.Do.AskInput(d.undoScope(n))
	}
	return dsl.Value{}, nil
}

// cannotAsk handles a planned lookup whose input cannot be evaluated. Another lookup would have the
// same input, so no other lookup is tried. The run continues as if all lookups had been tried
// without success.
func (d caller) cannotAsk(i int, kind model.CallKind) {
	n := d.edit(i)
	d.rest(i)
	switch {
	case kind == model.CallUndoLookup:
		d.undoing().undoFails(i, n.Und.Blamed())
	case n.Undo != model.UndoNone:
		n.Fwd.Lookups = maxLookups
		d.undoing().resumeUndo(i)
	default:
		n.Fwd.Lookups = maxLookups - 1
		d.forward().lookupMissed(i)
	}
}

// start opens an attempt of node i, and adds the command that calls the agent. The parameter
// `asked` is the result of lookupInput for this attempt.
func (d caller) start(i int, kind model.CallKind, asked dsl.Value) {
	n := d.edit(i)
	act := d.action(n, kind)
	t := n.Track()
	by := d.completeBy(i, kind)
	if by <= d.at {
		// A deadline that limits complete-by passes at this moment. The next decision handles this
		// deadline. The call is not sent, because its answer could not arrive in time.
		d.caller().pause(i, d.at.Add(time.Microsecond))
		return
	}
	if kind == model.CallDo {
		handover(d).give(i)
	}
	n.Calls++
	// From now on no person can correct the outcome that a person stated.
	n.Stated = model.StatedNothing
	n.Queue, n.Hold = 0, 0
	t.Act = model.Running
	if t.Began == 0 {
		t.Began = d.at
	}
	if n.Undo == model.UndoNone {
		n.State = status.StepRunning
	}
	d.run.Begin()
	number := int32(n.Und.Lookups) + 1
	if kind == model.CallLookup {
		number = int32(n.Fwd.Lookups) + 1 // also during an undo: the lookup asks about the forward call
	}
	if kind == model.CallDo || kind == model.CallUndo || kind == model.CallLearn {
		t.Attempt++
		number = t.Attempt
		// Total does not count a CallLearn: it only repeats the forward call to learn the output.
		if kind != model.CallLearn {
			t.Total++
		}
	}
	if (kind == model.CallDo || kind == model.CallLearn) && !act.ReadOnly {
		n.Doubt++
	}
	n.Attempts = append(n.Attempts, model.Attempt{
		Call: n.Calls, Kind: kind, Number: number, Started: d.at, CompleteBy: by, Gen: n.Gen,
	})
	d.restartSilence(n, &n.Attempts[len(n.Attempts)-1])
	d.slots().take(act.Agent)
	inv := d.invocation(i, kind, act, int(number), by)
	if kind.Purpose() == sdk.PurposeLookup && !asked.IsNull() {
		inv.Input = asked
	}
	d.commands = append(d.commands, inv)
}

// completeBy returns the complete-by of a new call. It is the end of the timeout, or the first
// deadline that applies, if this deadline is earlier (S10, S11). For a lookup of the outcome of a
// forward attempt, the deadlines of the forward work count only if the node is being undone before
// its next attempt.
func (d caller) completeBy(i int, kind model.CallKind) model.Instant {
	n := d.get(i)
	by := d.at.Add(d.timeout(n, kind))
	switch {
	case n.Undo != model.UndoNone:
		by = model.Earliest(by, n.Und.Deadline)
		if !d.run.UndoExpired {
			by = model.Earliest(by, d.run.UndoDeadline)
		}
		if n.Clearing {
			by = model.Earliest(by, d.forward().forwardBound(i))
		}
	case kind == model.CallDo:
		by = model.Earliest(by, d.forward().forwardBound(i))
	}
	return by
}

func (d caller) timeout(n *model.Node, kind model.CallKind) time.Duration {
	if d.isChild(n, kind) {
		return childTimeout
	}
	var settings *dsl.Settings
	if kind == model.CallUndo || kind == model.CallUndoLookup {
		settings = d.undoSettings(n)
	} else if s, err := d.settings(n); err == nil {
		settings = s
	}
	if settings == nil || settings.Timeout <= 0 {
		return defaultTimeout
	}
	return settings.Timeout
}

// invocation returns the command that calls the agent for an attempt.
func (d caller) invocation(i int, kind model.CallKind, act *dsl.Action, number int, by model.Instant) Invoke {
	n := d.get(i)
	inv := Invoke{
		Attempt: AttemptID{Node: i, Call: int(n.Calls)}, Step: n.Of(), Key: n.Key,
		Agent: act.Agent, Action: act.Sent(), Number: number, CompleteBy: by.Time(),
		Purpose: kind.Purpose(), Input: n.Input.V, IdempotencyKey: d.forwardKey(n),
	}
	if kind == model.CallUndo || kind == model.CallUndoLookup {
		inv.Input = n.UndoInput.V
		inv.ForwardKey, inv.IdempotencyKey = inv.IdempotencyKey, d.undoKey(n)
		if d.isChild(n, kind) {
			// The call may have to submit the child run. Then n.Input has the child's variables.
			inv.Input = n.Input.V
		}
	}
	if kind == model.CallDo {
		inv.Signals = handover(d).signals(n)
	}
	switch {
	case (kind == model.CallDo || kind == model.CallLearn) && n.Marked():
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.Point), Blob: slices.Clone(n.Blob)}
	case kind == model.CallUndo && (n.UndoPoint != 0 || len(n.UndoBlob) > 0):
		inv.Checkpoint = &sdk.Checkpoint{Number: int64(n.UndoPoint), Blob: slices.Clone(n.UndoBlob)}
	}
	return inv
}

// input evaluates the input of a node. If the input uses the idempotency key of the call, the
// method `input` evaluates the key, too.
func (d caller) input(n *model.Node, scope *dsl.Scope) (dsl.Value, error) {
	step := d.step(n)
	if !step.Do.Keyed {
		return step.Input(scope)
	}
	key := d.forwardKey(n)
	if step.IdempotencyKey != nil {
		var err error
		if key, err = step.IdempotencyKey(scope); err != nil {
			return dsl.Value{}, err
		}
	}
	keyed := *scope
	self := dsl.Self{}
	if scope.Self != nil {
		self = *scope.Self // self.previous and self.collected of a step with a repeat block
	}
	self.Key = key
	keyed.Self = &self
	return step.Input(&keyed)
}

// given returns the arguments that node n gives to a declared action, if the run must store them.
// It returns null if the run need not store them.
func (d caller) given(n *model.Node, scope *dsl.Scope) (dsl.Value, error) {
	if f := d.step(n).Given; f != nil {
		return f(scope)
	}
	return dsl.Value{}, nil
}

// prepare evaluates the preconditions, the input and the key of node i before its first attempt,
// and returns true. If they are evaluated already (Node.Prepared), prepare only returns true: later
// attempts use the same input. Each iteration of a repeat block evaluates them again. So does a
// step that a move or a correction makes pending again. If a precondition is false, an expression
// cannot be evaluated, or the input is too large for the run, prepare handles the failure and
// returns false.
func (d caller) prepare(i int) bool {
	n := d.get(i)
	if n.Prepared {
		return true
	}
	step, scope := d.step(n), d.scope(n)
	for _, c := range step.Pre {
		if m, ok := checkCondition(c, scope, "precondition"); !ok {
			// The failure counts as an attempt, so that a step with
			// `on = ["precondition_failed"]` does not repeat for ever.
			d.edit(i).Fwd.Attempt++
			d.run.Begin()
			d.forward().missed(i, m)
			return false
		}
	}
	input, err := d.input(n, scope)
	var given dsl.Value
	if err == nil {
		given, err = d.given(n, scope)
	}
	if err != nil {
		d.run.Begin()
		d.forward().missed(i, expressionMiss("input", err))
		return false
	}
	key := ""
	if step.IdempotencyKey != nil {
		if key, err = step.IdempotencyKey(scope); err == nil && key == "" {
			err = errEmptyKey
		}
		if err != nil {
			d.run.Begin()
			d.forward().missed(i, expressionMiss("idempotency_key", err))
			return false
		}
	}
	stored := len(input.JSON())
	if !given.IsNull() {
		stored += len(given.JSON())
	}
	if m, ok := d.grow("input", stored); !ok {
		d.run.Begin()
		d.forward().missed(i, m)
		return false
	}
	n = d.edit(i)
	n.Prepared, n.Input, n.BizKey = true, d.s.keep(input), key
	if !n.Given.V.IsNull() || !given.IsNull() {
		n.Given = d.s.keep(given)
	}
	return true
}
