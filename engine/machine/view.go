package machine

import (
	"iter"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/sdk"
)

// RunID returns the internal id; 0 before the first record.
func (s *State) RunID() RunID { return s.run.id }

// Name returns the public id.
func (s *State) Name() string { return s.run.name }

// Key returns the value of unique.key, or "".
func (s *State) Key() string { return s.run.key }

// Workflow returns the workflow's name.
func (s *State) Workflow() string { return s.run.workflow }

// Vars returns the run's variables.
func (s *State) Vars() dsl.Value { return s.run.vars.v }

// StartedBy returns who asked for the run.
func (s *State) StartedBy() string { return s.run.startedBy }

// Owner returns the membership that took the run over last; 0 if the engine
// that accepted it still has it.
func (s *State) Owner() int32 { return s.run.owner }

// Status returns the run's state; RunInvalid before the first record.
func (s *State) Status() RunState { return s.run.state }

// StartedAt returns when the run was accepted.
func (s *State) StartedAt() time.Time { return s.run.started.time() }

// FinishedAt returns when the run ended; zero while it is open.
func (s *State) FinishedAt() time.Time { return s.run.finished.time() }

// Deadline returns the deadline of the forward part; zero = none.
func (s *State) Deadline() time.Time { return s.run.deadline.time() }

// CompensationDeadline returns the deadline of all undo work; zero = none, or
// the run has not turned.
func (s *State) CompensationDeadline() time.Time { return s.run.undoDeadline.time() }

// Last returns the time of the last record.
func (s *State) Last() time.Time { return s.run.last.time() }

// Records returns how many records the state is the fold of.
func (s *State) Records() int { return int(s.run.records) }

// NeedsHuman reports whether only a person can move the run on.
func (s *State) NeedsHuman() bool { return s.run.state.NeedsHuman() }

// Overdue reports whether the run's deadline has passed without turning the
// run: it is parked, or past its pivot.
func (s *State) Overdue() bool { return s.run.overdue }

// Failure returns the failure that turned or parked the run; zero = none.
func (s *State) Failure() dsl.Failure {
	if s.run.lost() {
		return s.run.lostFailure()
	}
	return s.run.failure
}

// Lost reports whether engines died with the run, and nobody has said since how it
// goes on.
func (s *State) Lost() bool { return s.run.lost() }

// Cancelled reports whether the run turned because cancel was asked.
func (s *State) Cancelled() bool { return s.run.cancel }

// Undone returns how many effects were undone.
func (s *State) Undone() int { return int(s.run.undone) }

// LeftAsIs returns how many effects operators have left in place.
func (s *State) LeftAsIs() int { return int(s.run.left) }

// NotUndoneByDeclaration returns how many effects stay because of
// compensation = "none".
func (s *State) NotUndoneByDeclaration() int { return int(s.run.undeclared) }

// KeptByDeclaration names the steps and instances whose effects stay because of
// compensation = "none", in the order of the workflow. wf may be nil; names are
// then missing.
func (s *State) KeptByDeclaration(wf *dsl.Workflow) []string {
	return keptByDeclaration(wf, &s.run, func() []*node { return s.nodes })
}

// keptByDeclaration asks for the nodes only where such effects exist.
func keptByDeclaration(wf *dsl.Workflow, r *run, nodes func() []*node) []string {
	if r.undeclared == 0 {
		return nil
	}
	var kept []string
	for i, n := range nodes() {
		if n.undo == undoDeclared && !n.expanded {
			kept = append(kept, nodeName(wf, i, n))
		}
	}
	return kept
}

// UndoFailures returns the undos that have failed for good, and how many
// effects are in place only because an undo before theirs failed. wf may be
// nil; names are then missing.
func (s *State) UndoFailures(wf *dsl.Workflow) (failures []UndoFailure, blocked int) {
	return undoFailures(wf, s.nodes)
}

func undoFailures(wf *dsl.Workflow, nodes []*node) (failures []UndoFailure, blocked int) {
	for i, n := range nodes {
		switch {
		case n.expanded:
		case n.undo == undoFailed:
			failures = append(failures, UndoFailure{Step: nodeName(wf, i, n), Code: n.und.code(), Message: n.und.message()})
		case n.undo == undoPending && n.effect() != EffectNone:
			if wf == nil || wf.Steps[n.step].Undo != nil && !wf.Steps[n.step].NoUndo {
				blocked++
			}
		}
	}
	if len(failures) == 0 {
		return nil, 0 // what is pending waits for its turn
	}
	return failures, blocked
}

// Outputs returns the run's outputs; nil unless it has succeeded.
func (s *State) Outputs() []NamedValue { return namedValues(s.run.outputs) }

func namedValues(outputs []output) []NamedValue {
	var named []NamedValue
	for _, o := range outputs {
		named = append(named, NamedValue{Name: o.name, Value: o.value.v, Sensitive: o.sensitive, Problem: o.problem})
	}
	return named
}

// Exit classes, as exit codes of the command line.
const (
	ExitSucceeded = 0 // succeeded
	ExitClean     = 4 // not succeeded; at most effects with compensation = "none" are left
	ExitHuman     = 5 // needs a human, or a human left effects in place
	ExitOpen      = 6 // not ended yet
)

// ExitClass says how a command that followed the run ends.
func (s *State) ExitClass() int {
	switch {
	case s.run.left > 0 && s.run.state.Final(), s.run.state.NeedsHuman():
		return ExitHuman
	case s.run.state == RunSucceeded:
		return ExitSucceeded
	case s.run.state.Final():
		return ExitClean
	}
	return ExitOpen
}

// NextDue returns the earliest time at which time alone changes something.
// There is none for a run that has ended, waits for a person, or waits for a
// slot without a known time.
func (s *State) NextDue() (time.Time, bool) {
	at := s.nextDue()
	return at.time(), at != 0
}

func (s *State) nextDue() instant {
	r := &s.run
	if r.id == 0 || r.finished != 0 {
		return 0
	}
	at := s.expiry.top()
	if r.deadlineRuns() {
		at = earliest(at, r.deadline)
	}
	if r.phase == phaseUndo && !r.undoExpired && !r.stuck {
		at = earliest(at, r.undoDeadline)
	}
	if r.parked && r.phase == phaseForward {
		return at
	}
	if !r.turning {
		at = earliest(at, s.limits.top())
	}
	if r.held() {
		return at
	}
	at = earliest(at, s.wakes.top())
	for h := range s.queues {
		if s.queues[h].top() != 0 {
			at = earliest(at, r.holds[h].until)
		}
	}
	return at
}

// A HeldAgent is an agent that some step of the run waits for.
type HeldAgent struct {
	Agent string
	Until time.Time // nothing can start before; zero = until a slot frees
	Why   string
	Steps int // how many wait
}

// Held returns the agents that steps wait for, in the order in which they were
// first waited for. Deliver SlotsFreed when one of them has a slot.
func (s *State) Held() []HeldAgent {
	var held []HeldAgent
	for h := range s.queues {
		if s.queues[h].top() != 0 {
			held = append(held, HeldAgent{
				Agent: s.run.holds[h].agent, Until: s.run.holds[h].until.time(),
				Why: s.run.holds[h].why, Steps: s.queues[h].valid,
			})
		}
	}
	return held
}

// An OpenAttempt is a call in flight.
type OpenAttempt struct {
	ID         AttemptID
	Purpose    sdk.Purpose
	Step       string // node name
	Agent      string // key of Workflow.Agents
	StartedAt  time.Time
	CompleteBy time.Time
}

// OpenAttempts returns the calls in flight, by node and call. It costs what it
// finds.
func (s *State) OpenAttempts(wf *dsl.Workflow) []OpenAttempt {
	const always = instant(1<<63 - 1)
	return s.openUpTo(wf, always)
}

// ExpiredAttempts returns the calls in flight whose complete-by is not after at,
// by node and call. It costs what it finds, and next to nothing where nothing is
// due.
func (s *State) ExpiredAttempts(wf *dsl.Workflow, at time.Time) []OpenAttempt {
	return s.openUpTo(wf, toInstant(at))
}

// openUpTo returns the calls in flight whose complete-by is not after limit. A
// node is in the index by what comes first: its silence, or a complete-by.
func (s *State) openUpTo(wf *dsl.Workflow, limit instant) []OpenAttempt {
	var open []OpenAttempt
	for _, i := range ascending(s.expiry.upTo(limit, nil)) {
		n := s.nodes[i]
		for k := range n.attempts {
			if a := &n.attempts[k]; a.status == attemptOpen && a.completeBy <= limit {
				open = append(open, openAttempt(wf, i, n, a))
			}
		}
	}
	return open
}

// InFlight reports whether a call is in flight, at no cost.
func (s *State) InFlight() bool { return s.expiry.valid > 0 }

// OpenAttempt returns one call in flight; false if it is none.
func (s *State) OpenAttempt(wf *dsl.Workflow, id AttemptID) (OpenAttempt, bool) {
	if id.Node < 0 || id.Node >= len(s.nodes) {
		return OpenAttempt{}, false
	}
	n := s.nodes[id.Node]
	a := n.find(id.Call)
	if a == nil || a.status != attemptOpen {
		return OpenAttempt{}, false
	}
	return openAttempt(wf, id.Node, n, a), true
}

func openAttempt(wf *dsl.Workflow, i int, n *node, a *attempt) OpenAttempt {
	return OpenAttempt{
		ID: AttemptID{Node: i, Call: int(a.call)}, Purpose: a.kind.purpose(), Step: nodeName(wf, i, n),
		Agent: actionOf(wf, n, a.kind).Agent, StartedAt: a.started.time(), CompleteBy: a.completeBy.time(),
	}
}

var noAction = dsl.Action{}

func actionOf(wf *dsl.Workflow, n *node, kind callKind) *dsl.Action {
	if wf == nil || n.of() >= len(wf.Steps) {
		return &noAction
	}
	step := wf.Steps[n.step]
	if (kind == callUndo || kind == callUndoLookup) && step.Undo != nil {
		return step.Undo.Do
	}
	return step.Do
}

// A NodeView is what people see of a step or of one instance of it.
type NodeView struct {
	Node     int
	Step     int    // index in Workflow.Steps
	Name     string // step, or step["key"]
	Key      string
	Each     bool // a for_each step itself; its instances have views of their own
	Count    int  // of instances; -1 = not known yet
	State    StepState
	Forward  StepState // the state without regard to the undo
	Effect   Effect
	Action   string // AGENT.ACTION
	Attempt  int    // attempts of the present round
	Attempts int    // attempts of all rounds
	Failures int    // attempts that ended without result

	StartedAt  time.Time // first attempt; zero = none yet
	FinishedAt time.Time
	CompleteBy time.Time // latest of the open attempts; zero = none open
	Deadline   time.Time // of the step; zero = none
	Until      time.Time // backoff, held: when it goes on; zero = not known
	HeldBy     string    // held: the agent it waits for
	Why        string    // held: why it has to wait

	Code, Message  string // last failure, or ""
	Input, Output  dsl.Value
	OutputKnown    bool
	IdempotencyKey string // of its work; the undo's is UndoKey
	By             string // operator who settled or skipped it last

	UndoAction             string
	UndoAttempts           int    // of all rounds, without calls that only learn the output
	UndoKey                string // idempotency key of the undo; "" = there is none
	UndoDeadline           time.Time
	UndoCode, UndoMessage  string
	UndoStartedAt          time.Time
	UndoFinishedAt         time.Time
	UndoInput              dsl.Value
	LeftAsIs               bool // an operator left the effect in place
	NotUndoneByDeclaration bool
	Calls                  []CallView // the last ones, oldest first
}

// A CallView is one call as people see it.
type CallView struct {
	Call       int
	Purpose    Purpose
	Undo       bool   // it belongs to the undo
	Number     int    // attempt number, from 1, in its round
	Key        string // idempotency key that was sent; "" = not known any more
	Status     string // open, ok, failed, unknown, not_sent, not_done, needless
	Code       string
	Message    string
	StartedAt  time.Time
	EndedAt    time.Time
	CompleteBy time.Time
	Silent     time.Time // open: it has to be heard of before; zero = it need not
}

// Nodes returns the views of all nodes: first the steps in order of
// declaration, then the instances. wf may be nil; names and actions are then
// missing.
func (s *State) Nodes(wf *dsl.Workflow) iter.Seq[NodeView] {
	return func(yield func(NodeView) bool) {
		for i := range s.nodes {
			if !yield(s.Node(wf, i)) {
				return
			}
		}
	}
}

// NodeCount returns the number of nodes.
func (s *State) NodeCount() int { return len(s.nodes) }

// Node returns the view of one node; the zero view if there is none.
func (s *State) Node(wf *dsl.Workflow, i int) NodeView {
	if i < 0 || i >= len(s.nodes) {
		return NodeView{}
	}
	n := s.nodes[i]
	t := n.track()
	v := NodeView{
		Node: i, Step: n.of(), Name: nodeName(wf, i, n), Key: n.key, Count: 1,
		State: n.shown(), Forward: n.state, Effect: n.effect(), Action: actionName(wf, n, callDo),
		Attempt: int(t.attempt), Attempts: int(n.fwd.total), Failures: int(n.fwd.failures + n.und.failures),
		StartedAt: n.fwd.began.time(), FinishedAt: n.fwd.ended.time(), Deadline: n.fwd.deadline.time(),
		Code: n.fwd.code(), Message: n.fwd.message(),
		Input: n.input.v, Output: n.output.v, OutputKnown: n.known, By: n.manual,
		UndoAttempts: int(n.und.total), UndoCode: n.und.code(), UndoMessage: n.und.message(),
		UndoStartedAt: n.und.began.time(), UndoFinishedAt: n.und.ended.time(), UndoInput: n.undoInput.v,
		LeftAsIs: n.undo == undoLeft, NotUndoneByDeclaration: n.undo == undoDeclared,
	}
	if n.state == StepCaught {
		v.Output = n.caught.v
	}
	if wf != nil && n.of() < len(wf.Steps) {
		if wf.Steps[n.step].ForEach != nil && !n.item {
			v.Each, v.Count = true, -1
			if n.expanded {
				v.Count = n.count
			}
		}
		if wf.Steps[n.step].Undo != nil {
			v.UndoAction = actionName(wf, n, callUndo)
		}
		keys := decider{wf: wf, run: s.run}
		v.IdempotencyKey = keys.forwardKey(n)
		if v.UndoAction != "" {
			v.UndoKey = keys.undoKey(n)
		}
	}
	v.UndoDeadline = n.und.deadline.time()
	if t.act == backoff {
		v.Until = t.until.time()
	}
	if n.queue != 0 && n.hold > 0 && int(n.hold) <= len(s.run.holds) {
		h := s.run.holds[n.hold-1]
		v.Until, v.HeldBy, v.Why = h.until.time(), h.agent, h.why
	}
	for _, a := range n.attempts {
		if a.status == attemptOpen && a.completeBy.time().After(v.CompleteBy) {
			v.CompleteBy = a.completeBy.time()
		}
		v.Calls = append(v.Calls, CallView{
			Call: int(a.call), Purpose: a.kind.told(), Undo: n.undoes(&a), Number: int(a.number), Key: v.keyOf(n, &a), Status: attemptStatuses[a.status],
			Code: a.code(), Message: a.message(),
			StartedAt: a.started.time(), EndedAt: a.ended.time(), CompleteBy: a.completeBy.time(), Silent: a.silent.time(),
		})
	}
	return v
}

// keyOf returns the idempotency key under which an attempt was sent. A new key
// given by an operator leaves that of earlier attempts unknown.
func (v *NodeView) keyOf(n *node, a *attempt) string {
	switch {
	case a.kind == callUndo || a.kind == callUndoLookup:
		return v.UndoKey
	case a.gen != n.gen && n.bizKey == "":
		return ""
	}
	return v.IdempotencyKey
}

// FindNode returns the number of the node with this name.
func (s *State) FindNode(wf *dsl.Workflow, name string) (int, bool) {
	i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.of() < len(wf.Steps) && wf.Steps[n.step].Name == name })
	if i >= 0 {
		return i, true
	}
	for i, n := range s.nodes {
		if nodeName(wf, i, n) == name {
			return i, true
		}
	}
	return 0, false
}

func actionName(wf *dsl.Workflow, n *node, kind callKind) string {
	act := actionOf(wf, n, kind)
	if act == nil || act.Name == "" {
		return ""
	}
	return act.Agent + "." + act.Name
}
