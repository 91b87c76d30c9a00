package machine

import (
	"iter"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/sdk"
)

// RunID returns the internal id; 0 before the first record.
func (s *State) RunID() RunID { return s.run.ID }

// Name returns the public id.
func (s *State) Name() string { return s.run.Name }

// Key returns the value of unique.key, or "".
func (s *State) Key() string { return s.run.Key }

// Workflow returns the workflow's name.
func (s *State) Workflow() string { return s.run.Workflow }

// Vars returns the run's variables.
func (s *State) Vars() dsl.Value { return s.run.Vars.V }

// StartedBy returns who asked for the run.
func (s *State) StartedBy() string { return s.run.StartedBy }

// Owner returns the membership that took the run over last; 0 if the engine
// that accepted it still has it.
func (s *State) Owner() int32 { return s.run.Owner }

// Status returns the run's state; RunInvalid before the first record.
func (s *State) Status() RunState { return s.run.State }

// StartedAt returns when the run was accepted.
func (s *State) StartedAt() time.Time { return s.run.Started.Time() }

// FinishedAt returns when the run ended; zero while it is open.
func (s *State) FinishedAt() time.Time { return s.run.Finished.Time() }

// Deadline returns the deadline of the forward part; zero = none.
func (s *State) Deadline() time.Time { return s.run.Deadline.Time() }

// CompensationDeadline returns the deadline of all undo work; zero = none, or
// the run has not turned.
func (s *State) CompensationDeadline() time.Time { return s.run.UndoDeadline.Time() }

// Last returns the time of the last record.
func (s *State) Last() time.Time { return s.run.Last.Time() }

// Records returns how many records the state is the fold of.
func (s *State) Records() int { return int(s.run.Records) }

// NeedsHuman reports whether only a person can move the run on.
func (s *State) NeedsHuman() bool { return s.run.State.NeedsHuman() }

// Overdue reports whether the run's deadline has passed without turning the
// run: it is parked, or past its pivot.
func (s *State) Overdue() bool { return s.run.Overdue }

// Failure returns the failure that turned or parked the run; zero = none.
func (s *State) Failure() dsl.Failure {
	if s.run.Lost() {
		return lostFailure(&s.run)
	}
	return s.run.Failure
}

// Lost reports whether engines died with the run, and nobody has said since how it
// goes on.
func (s *State) Lost() bool { return s.run.Lost() }

// Cancelled reports whether the run turned because cancel was asked.
func (s *State) Cancelled() bool { return s.run.Cancel }

// Undone returns how many effects were undone.
func (s *State) Undone() int { return int(s.run.Undone) }

// LeftAsIs returns how many effects operators have left in place.
func (s *State) LeftAsIs() int { return int(s.run.Left) }

// NotUndoneByDeclaration returns how many effects stay because of
// compensation = "none".
func (s *State) NotUndoneByDeclaration() int { return int(s.run.Undeclared) }

// KeptByDeclaration names the steps and instances whose effects stay because of
// compensation = "none", in the order of the workflow. wf may be nil; names are
// then missing.
func (s *State) KeptByDeclaration(wf *dsl.Workflow) []string {
	return keptByDeclaration(wf, &s.run, func() []*model.Node { return s.nodes })
}

// keptByDeclaration asks for the nodes only where such effects exist.
func keptByDeclaration(wf *dsl.Workflow, r *model.Run, nodes func() []*model.Node) []string {
	if r.Undeclared == 0 {
		return nil
	}
	var kept []string
	for i, n := range nodes() {
		if n.Undo == model.UndoDeclared && !n.Expanded {
			kept = append(kept, model.NodeName(wf, i, n))
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

func undoFailures(wf *dsl.Workflow, nodes []*model.Node) (failures []UndoFailure, blocked int) {
	for i, n := range nodes {
		switch {
		case n.Expanded:
		case n.Undo == model.UndoFailed:
			failures = append(failures, UndoFailure{Step: model.NodeName(wf, i, n), Code: n.Und.Code(), Message: n.Und.Message()})
		case n.Undo == model.UndoPending && n.Effect() != EffectNone:
			if wf == nil || wf.Steps[n.Step].Undo != nil && !wf.Steps[n.Step].NoUndo {
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
func (s *State) Outputs() []NamedValue { return namedValues(s.run.Outputs) }

func namedValues(outputs []model.Output) []NamedValue {
	var named []NamedValue
	for _, o := range outputs {
		named = append(named, NamedValue{Name: o.Name, Value: o.Value.V, Sensitive: o.Sensitive, Problem: o.Problem})
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
	case s.run.Left > 0 && s.run.State.Final(), s.run.State.NeedsHuman():
		return ExitHuman
	case s.run.State == RunSucceeded:
		return ExitSucceeded
	case s.run.State.Final():
		return ExitClean
	}
	return ExitOpen
}

// NextDue returns the earliest time at which time alone changes something.
// There is none for a run that has ended, waits for a person, or waits for a
// slot without a known time.
func (s *State) NextDue() (time.Time, bool) {
	at := s.nextDue()
	return at.Time(), at != 0
}

func (s *State) nextDue() model.Instant {
	r := &s.run
	if r.ID == 0 || r.Finished != 0 {
		return 0
	}
	at := s.expiry.top()
	if r.DeadlineRuns() {
		at = model.Earliest(at, r.Deadline)
	}
	if r.Phase == model.PhaseUndo && !r.UndoExpired && !r.Stuck {
		at = model.Earliest(at, r.UndoDeadline)
	}
	if r.Parked && r.Phase == model.PhaseForward {
		return at
	}
	if !r.Turning {
		at = model.Earliest(at, s.limits.top())
	}
	if r.Held() {
		return at
	}
	at = model.Earliest(at, s.wakes.top())
	for h := range s.queues {
		if s.queues[h].top() != 0 {
			at = model.Earliest(at, r.Holds[h].Until)
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
				Agent: s.run.Holds[h].Agent, Until: s.run.Holds[h].Until.Time(),
				Why: s.run.Holds[h].Why, Steps: s.queues[h].valid,
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
	const always = model.Instant(1<<63 - 1)
	return s.openUpTo(wf, always)
}

// ExpiredAttempts returns the calls in flight whose complete-by is not after at,
// by node and call. It costs what it finds, and next to nothing where nothing is
// due.
func (s *State) ExpiredAttempts(wf *dsl.Workflow, at time.Time) []OpenAttempt {
	return s.openUpTo(wf, model.ToInstant(at))
}

// openUpTo returns the calls in flight whose complete-by is not after limit. A
// node is in the index by what comes first: its silence, or a complete-by.
func (s *State) openUpTo(wf *dsl.Workflow, limit model.Instant) []OpenAttempt {
	var open []OpenAttempt
	for _, i := range ascending(s.expiry.upTo(limit, nil)) {
		n := s.nodes[i]
		for k := range n.Attempts {
			if a := &n.Attempts[k]; a.Status == model.AttemptOpen && a.CompleteBy <= limit {
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
	a := n.Find(id.Call)
	if a == nil || a.Status != model.AttemptOpen {
		return OpenAttempt{}, false
	}
	return openAttempt(wf, id.Node, n, a), true
}

func openAttempt(wf *dsl.Workflow, i int, n *model.Node, a *model.Attempt) OpenAttempt {
	return OpenAttempt{
		ID: AttemptID{Node: i, Call: int(a.Call)}, Purpose: a.Kind.Purpose(), Step: model.NodeName(wf, i, n),
		Agent: model.ActionOf(wf, n, a.Kind).Agent, StartedAt: a.Started.Time(), CompleteBy: a.CompleteBy.Time(),
	}
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
	t := n.Track()
	v := NodeView{
		Node: i, Step: n.Of(), Name: model.NodeName(wf, i, n), Key: n.Key, Count: 1,
		State: n.Shown(), Forward: n.State, Effect: n.Effect(), Action: model.ActionName(wf, n, model.CallDo),
		Attempt: int(t.Attempt), Attempts: int(n.Fwd.Total), Failures: int(n.Fwd.Failures + n.Und.Failures),
		StartedAt: n.Fwd.Began.Time(), FinishedAt: n.Fwd.Ended.Time(), Deadline: n.Fwd.Deadline.Time(),
		Code: n.Fwd.Code(), Message: n.Fwd.Message(),
		Input: n.Input.V, Output: n.Output.V, OutputKnown: n.Known, By: n.Manual,
		UndoAttempts: int(n.Und.Total), UndoCode: n.Und.Code(), UndoMessage: n.Und.Message(),
		UndoStartedAt: n.Und.Began.Time(), UndoFinishedAt: n.Und.Ended.Time(), UndoInput: n.UndoInput.V,
		LeftAsIs: n.Undo == model.UndoLeft, NotUndoneByDeclaration: n.Undo == model.UndoDeclared,
	}
	if n.State == StepCaught {
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
		keys := decider{wf: wf, run: s.run}
		v.IdempotencyKey = keys.forwardKey(n)
		if v.UndoAction != "" {
			v.UndoKey = keys.undoKey(n)
		}
	}
	v.UndoDeadline = n.Und.Deadline.Time()
	if t.Act == model.Backoff {
		v.Until = t.Until.Time()
	}
	if n.Queue != 0 && n.Hold > 0 && int(n.Hold) <= len(s.run.Holds) {
		h := s.run.Holds[n.Hold-1]
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

// keyOf returns the idempotency key under which an attempt was sent. A new key
// given by an operator leaves that of earlier attempts unknown.
func (v *NodeView) keyOf(n *model.Node, a *model.Attempt) string {
	switch {
	case a.Kind == model.CallUndo || a.Kind == model.CallUndoLookup:
		return v.UndoKey
	case a.Gen != n.Gen && n.BizKey == "":
		return ""
	}
	return v.IdempotencyKey
}

// FindNode returns the number of the node with this name.
func (s *State) FindNode(wf *dsl.Workflow, name string) (int, bool) {
	i := slices.IndexFunc(s.nodes, func(n *model.Node) bool { return n.Of() < len(wf.Steps) && wf.Steps[n.Step].Name == name })
	if i >= 0 {
		return i, true
	}
	for i, n := range s.nodes {
		if model.NodeName(wf, i, n) == name {
			return i, true
		}
	}
	return 0, false
}
