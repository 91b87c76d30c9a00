package story

import (
	"iter"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A NodeView holds what people can see of a node: a step, or one instance of a for_each step.
type NodeView struct {
	Node  int
	Step  int    // index in Workflow.Steps
	Name  string // name of the step, with ["key"] for an instance
	Key   string
	Each  bool // the node is a for_each step; its instances have views of their own
	Count int  // number of instances of a for_each step; -1 = not known yet. 1 for any other node
	State status.StepState
	// Forward is the state of the step without its undo. The field State also shows states of the
	// undo.
	Forward status.StepState
	Effect  status.Effect
	// Action of the step, as AGENT.ACTION. For a step without a call: value, timer or wait.
	Action string
	// Number of attempts in the present round; of the undo, if the undo has begun or is planned.
	Attempt  int
	Attempts int // number of attempts in all rounds, without undo attempts
	Failures int // number of attempts and undo attempts that ended without a result
	// Number of the present iteration, counted from 1, and the largest number of iterations (0 = no
	// limit, or not known). Both are 0 if the step has no repeat block, or has not started.
	Iteration, Iterations int

	// Child is the public name of the child run that the node has started; "" = it has started
	// none, or the engine refused to start it, for example because of no_room. If the node has
	// started several child runs, Child is the name of the last one.
	Child string

	StartedAt  time.Time // start of the first attempt or of the wait; zero = not started
	FinishedAt time.Time
	CompleteBy time.Time // latest complete-by of the calls in flight; zero = no call is in flight
	// Deadline of the step; zero = no deadline. An instance has the deadline of its step.
	Deadline time.Time
	// Time at which the node continues, if it is in backoff, is held, or waits for a time. Zero =
	// not known, or the node does not wait.
	Until  time.Time
	Awaits []string // names of the signals for which the node waits now; nil = it waits for none
	Signal string   // name of the signal that ended the wait; "" = no signal ended it
	HeldBy string   // if the node is held: the agent for which it waits
	Why    string   // if the node is held: the reason

	Code, Message  string    // code and message of the last failure, or ""
	Data           dsl.Value // data of the last failure (error.data); null = no data
	Input, Output  dsl.Value
	OutputKnown    bool
	IdempotencyKey string // idempotency key of the step's calls, except calls for its undo
	// The operator who last settled the step, or who repeated or skipped its failed undo; "" =
	// none.
	By string

	UndoAction string
	// Number of undo attempts in all rounds. Calls that only learn the output (PurposeLearn) do
	// not count.
	UndoAttempts           int
	UndoKey                string // idempotency key of the undo; "" = the step has no undo
	UndoDeadline           time.Time
	UndoCode, UndoMessage  string
	UndoStartedAt          time.Time
	UndoFinishedAt         time.Time
	UndoInput              dsl.Value
	LeftAsIs               bool // an operator decided to leave the effect in place
	NotUndoneByDeclaration bool
	// The latest calls that the state still contains, oldest first.
	Calls []CallView
}

// A CallView holds what people can see of one call.
type CallView struct {
	Call       int
	Purpose    Purpose
	Undo       bool   // the call belongs to the undo of the node
	Number     int    // number of the attempt in its round, from 1
	Key        string // idempotency key that was sent; "" = the key is not known any more
	Status     string // one of open, ok, failed, unknown, not_sent, not_done, needless
	Code       string
	Message    string
	StartedAt  time.Time
	EndedAt    time.Time
	CompleteBy time.Time
	Silent     time.Time // an open call needs a heartbeat before this time; zero = it needs none
}

// keyOf returns the idempotency key with which an attempt was sent. It returns "" if the key of the
// attempt is not known any more. This is so if the step has other keys now, after a retry with a
// new key or an undo_first. It is also so if the attempt is no undo, and belongs to an earlier
// iteration of a loop. The undo of a step has the same key in all iterations.
func (v *NodeView) keyOf(n *model.Node, a *model.Attempt) string {
	switch {
	case a.Gen != n.Gen && n.BizKey == "":
		return ""
	case a.Kind == model.CallUndo || a.Kind == model.CallUndoLookup:
		return v.UndoKey
	case a.Call <= n.Loop.Calls:
		return ""
	}
	return v.IdempotencyKey
}

// Nodes returns the views of all nodes: first the steps in order of declaration, then the
// instances. If `wf` is nil, the views have a number such as #3 instead of a step's name, and no
// actions.
func Nodes(s *machine.State, wf *dsl.Workflow) iter.Seq[NodeView] {
	return func(yield func(NodeView) bool) {
		for i := range s.Nodes() {
			if !yield(Node(s, wf, i)) {
				return
			}
		}
	}
}

// Node returns the view of one node. It returns the zero view if the node does not exist.
func Node(s *machine.State, wf *dsl.Workflow, i int) NodeView {
	if i < 0 || i >= s.NodeCount() {
		return NodeView{}
	}
	n, r := s.Nodes()[i], s.Run()
	t := n.Track()
	v := NodeView{
		Node: i, Step: n.Of(), Name: model.NodeName(wf, i, n), Key: n.Key, Count: 1,
		State: n.Shown(), Forward: n.State, Effect: n.Effect(), Action: model.ActionName(wf, n, model.CallDo),
		Attempt: int(t.Attempt), Attempts: int(n.Fwd.Total), Failures: int(n.Fwd.Failures + n.Und.Failures),
		StartedAt: n.Fwd.Began.Time(), FinishedAt: n.Fwd.Ended.Time(), Deadline: stepDeadline(s.Nodes(), n).Time(),
		Code: n.Fwd.Code(), Message: n.Fwd.Message(), Data: n.Data.V,
		Input: n.Input.V, Output: n.Output.V, OutputKnown: n.Known, By: n.Manual,
		UndoAttempts: int(n.Und.Total), UndoCode: n.Und.Code(), UndoMessage: n.Und.Message(),
		UndoStartedAt: n.Und.Began.Time(), UndoFinishedAt: n.Und.Ended.Time(), UndoInput: n.UndoInput.V,
		LeftAsIs: n.LeavesEffect(), NotUndoneByDeclaration: n.DeclaresEffect(),
	}
	if n.State == status.StepCaught {
		v.Output = n.Caught.V
	}
	if wf != nil && n.Of() < len(wf.Steps) {
		if wf.Steps[n.Step].ForEach != nil && !n.Item {
			v.Each, v.Count = true, -1
			if n.Expanded {
				v.Count = n.Count
			}
		}
		if wf.Steps[n.Step].Undo != nil {
			v.UndoAction = model.ActionName(wf, n, model.CallUndo)
		}
		if loops(wf, n) && n.Fwd.Ready != 0 {
			v.Iteration, v.Iterations = int(n.Loop.Iteration)+1, mostIterations(wf, n, &dsl.Scope{Vars: r.Vars.V})
		}
		if wf.Steps[n.Step].Child != nil && !v.Each && n.Fwd.Began != 0 && !startedNoChild(n) {
			v.Child = childName(s, wf, n)
		}
		work, undo := machine.Keys(wf, r, n)
		v.IdempotencyKey = work
		if v.UndoAction != "" {
			v.UndoKey = undo
		}
	}
	v.UndoDeadline = n.Und.Deadline.Time()
	v.Awaits, v.Signal = awaited(n), n.EndedBy()
	if t.Act == model.Backoff || n.Waits() {
		v.Until = t.Until.Time()
	}
	if n.Queue != 0 && n.Hold > 0 && int(n.Hold) <= len(r.Holds) {
		h := r.Holds[n.Hold-1]
		v.Until, v.HeldBy, v.Why = h.Until.Time(), h.Agent, h.Why
	}
	for _, a := range n.Attempts {
		if a.Status == model.AttemptOpen && a.CompleteBy.Time().After(v.CompleteBy) {
			v.CompleteBy = a.CompleteBy.Time()
		}
		v.Calls = append(v.Calls, CallView{
			Call: int(a.Call), Purpose: purposeOf(a.Kind), Undo: n.Undoes(&a), Number: int(a.Number), Key: v.keyOf(n, &a), Status: model.AttemptStatuses[a.Status],
			Code: a.Code(), Message: a.Message(),
			StartedAt: a.Started.Time(), EndedAt: a.Ended.Time(), CompleteBy: a.CompleteBy.Time(), Silent: a.Silent.Time(),
		})
	}
	return v
}

// stepDeadline returns the deadline of a node's step; 0 = none. The state of an instance contains no
// deadline, because its step has the deadline. The parameter `nodes` holds all nodes of the run.
func stepDeadline(nodes []*model.Node, n *model.Node) model.Instant {
	if n.Item {
		return nodes[n.Step].Fwd.Deadline
	}
	return n.Fwd.Deadline
}

// Outputs returns the run's outputs. It returns nil if the run has not succeeded.
func Outputs(s *machine.State) []NamedValue { return namedValues(s.Run().Outputs) }

// KnownOutputs returns the outputs that can be shown now. For a run that has succeeded, these are
// all its outputs. For a run that goes forward, they are the outputs that refer only to steps
// which have ended well. For every other run, KnownOutputs returns nil. If wf is nil, it returns
// outputs only for a run that has succeeded.
func KnownOutputs(s *machine.State, wf *dsl.Workflow) []NamedValue {
	if s.Status().Final() || wf == nil {
		return Outputs(s)
	}
	return earlyOutputs(s, wf)
}

// earlyOutputs returns the outputs that are known while a run still goes forward: each output that
// refers only to steps which have ended well. It leaves out an output that cannot be evaluated,
// because the run evaluates it again at its end.
func earlyOutputs(s *machine.State, wf *dsl.Workflow) []NamedValue {
	if s.RunID() == 0 || s.Run().Phase != model.PhaseForward {
		return nil
	}
	scope := new(machine.Scratch).Scope(wf, s.Clone())
	scope.Allowance = dsl.NewAllowance(earlyCost)
	var early []NamedValue
	for _, o := range wf.Outputs {
		if slices.ContainsFunc(o.After, func(i int) bool { return !s.Nodes()[i].Well() }) {
			continue
		}
		if v, err := o.Value(scope); err == nil {
			early = append(early, NamedValue{Name: o.Name, Value: v, Sensitive: o.Sensitive})
		}
	}
	return early
}

// earlyCost is the largest total cost of the expressions that one call of earlyOutputs evaluates.
// Its unit is approximately a nanosecond (dsl.Allowance). A single expression of a workflow may
// use up all of it.
const earlyCost = machine.MaxDecisionCost / 20

func namedValues(outputs []model.Output) []NamedValue {
	var named []NamedValue
	for _, o := range outputs {
		named = append(named, NamedValue{Name: o.Name, Value: o.Value.V, Sensitive: o.Sensitive, Problem: o.Problem})
	}
	return named
}

// KeptByDeclaration returns the names of the steps and instances whose effects stay because of
// compensation = "none": first the steps in the order of declaration, then the instances. A step is
// also named if its child run keeps such effects. If `wf` is nil, the result has a number such as
// #3 instead of a step's name.
func KeptByDeclaration(s *machine.State, wf *dsl.Workflow) []string {
	return keptByDeclaration(wf, s.Run(), s.Nodes)
}

// keptByDeclaration does the work of KeptByDeclaration. It calls the function `nodes`, which costs
// time, only if some effects stay because of compensation = "none".
func keptByDeclaration(wf *dsl.Workflow, r *model.Run, nodes func() []*model.Node) []string {
	if r.Undeclared == 0 {
		return nil
	}
	var kept []string
	for i, n := range nodes() {
		if n.DeclaresEffect() && !n.Expanded {
			kept = append(kept, model.NodeName(wf, i, n))
		}
	}
	return kept
}

// UndoFailures returns the undos that have failed. The result `blocked` is the number of effects
// that are not undone, because an undo that must come first has failed. If `wf` is nil, each
// UndoFailure has a number such as #3 instead of a step's name.
func UndoFailures(s *machine.State, wf *dsl.Workflow) (failures []UndoFailure, blocked int) {
	return undoFailures(wf, s.Nodes())
}

func undoFailures(wf *dsl.Workflow, nodes []*model.Node) (failures []UndoFailure, blocked int) {
	for i, n := range nodes {
		switch {
		case n.Expanded:
		case n.Undo == model.UndoFailed:
			failures = append(failures, UndoFailure{Step: model.NodeName(wf, i, n), Code: n.Und.Code(), Message: n.Und.Message()})
		case n.Undo == model.UndoPending && n.OwnEffect() != status.EffectNone:
			if wf == nil || wf.Steps[n.Step].Undo != nil && !wf.Steps[n.Step].NoUndo {
				blocked++
			}
		}
	}
	if len(failures) == 0 {
		return nil, 0 // no undo has failed, so the undos that have not begun yet are not blocked
	}
	return failures, blocked
}
