package machine

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A State holds everything that is known about one run. It is computed from the run's records,
// which are applied one after the other. It is plain data with a few indexes. Apply keeps the
// indexes up to date. Only one goroutine at a time may use a State. In a State, Decide changes only
// the caches of decoded values and the field `private`. States, records and the drafts of decisions
// may point to the same data where they are equal.
type State struct {
	run   model.Run
	nodes []*model.Node // a node is changed in place only if `private` is true

	// No record, draft or other state shares the list `nodes`, or data of these nodes. All states
	// share the nodes in model.Pristine in any case.
	private bool

	schedule
	values known

	signals signals

	checkpoints int64 // total size of all checkpoints recorded so far, in bytes; see Ceilings

	cache *cache
}

// NewState returns an empty state, from before the first record of a run.
func NewState() *State {
	return &State{run: model.Run{Head: &model.NoHead, Rare: &model.NoRare}, private: true}
}

// Clone returns a copy. The copy and the original share only data that neither of them
// changes.
func (s *State) Clone() *State {
	// Do not write the field if it is false already: other goroutines may be reading it.
	if s.private {
		s.private = false
	}
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: s.values.clone(), signals: s.signals.clone(), checkpoints: s.checkpoints}
	c.schedule = s.schedule.clone()
	return c
}

// A cache holds decoded values that expressions read. They can be computed again at any time.
// A decision adds values to the cache. If a value is the result of a step that the decision itself
// has ended, the value is valid only if the record of the decision is applied. Until then the cache
// is pending.
type cache struct {
	memo dsl.Memo
	// Results of finished steps with for_each, or with a repeat block that collects values, by index
	// of the step.
	results map[int]dsl.StepResult
	pending bool // a value is from a decision whose record is not applied yet
}

// A schedule holds indexes that order the nodes of a state by time. Apply keeps them up to
// date.
type schedule struct {
	// Nodes with an open attempt, ordered by the time at which their first open attempt expires.
	expiry lazyHeap
	limits lazyHeap // nodes whose forward work or undo has a deadline, ordered by that deadline
	wakes  lazyHeap // nodes in a pause, ordered by the end of the pause
	// queues[h] holds the nodes that wait for the agent in Run.Holds[h]. They are ordered by rank
	// (slots.rank).
	queues []lazyHeap
}

func (s *schedule) clone() schedule {
	c := schedule{expiry: s.expiry.clone(), limits: s.limits.clone(), wakes: s.wakes.clone()}
	for _, q := range s.queues {
		c.queues = append(c.queues, q.clone())
	}
	return c
}

// due returns the earliest time at which TimePassed changes the run, if no other event
// comes before; 0 if there is no such time.
func (s *schedule) due(r *model.Run) model.Instant {
	if r.ID == 0 || r.Finished != 0 {
		return 0
	}
	at := s.expiry.top()
	if r.DeadlineRuns() {
		at = model.Earliest(at, r.Deadline)
	}
	if r.MustStart() {
		at = model.Earliest(at, r.StartBy)
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

// keep returns what a record stores for the value v: v itself or, if the state already has an equal
// value of at least WorthSharing bytes, a reference to that value.
func (s *State) keep(v dsl.Value) model.StoredValue {
	if len(v.JSON()) >= model.WorthSharing {
		if o, ok := s.values.get(model.HashValue(v)); ok && model.SameValue(s.at(o), v) {
			return model.StoredValue{V: v, From: o}
		}
	}
	return model.StoredValue{V: v}
}

// at returns the value to which an origin refers; null if there is no such value.
func (s *State) at(o model.Origin) dsl.Value {
	if o.Kind == model.OriginVars {
		return s.run.Vars.V
	}
	if o.Node < 0 || int(o.Node) >= len(s.nodes) {
		return dsl.Value{}
	}
	switch o.Kind {
	case model.OriginOutput:
		return s.nodes[o.Node].Output.V
	case model.OriginInput:
		return s.nodes[o.Node].Input.V
	}
	return dsl.Value{}
}

// resolve sets h.V if h is a reference to a value in s, the state before the record, or to the
// each.key of the node. The parameter `key` is this each.key.
func (s *State) resolve(h *model.StoredValue, key string) {
	switch h.From.Kind {
	case model.OriginInline:
	case model.OriginKey:
		h.V = model.KeyValue(key)
	default:
		h.V = s.at(h.From)
	}
}

// EarlySignals returns the signals that the run has accepted, and that no step and no group has
// taken yet, the oldest first. The caller must not change the list.
func (s *State) EarlySignals() []model.Signal { return s.signals.list }

// RunID returns the internal id of the run; 0 before the first record.
func (s *State) RunID() status.RunID { return s.run.ID }

// Name returns the public id of the run.
func (s *State) Name() string { return s.run.Name }

// Vars returns the run's variables.
func (s *State) Vars() dsl.Value { return s.run.Vars.V }

// Status returns the status of the run; RunInvalid before the first record.
func (s *State) Status() status.RunState { return s.run.State }

// Last returns the time of the last record.
func (s *State) Last() time.Time { return s.run.Last.Time() }

// Failure returns the failure that made the run turn back or park; zero if there is none.
func (s *State) Failure() dsl.Failure {
	if s.run.Lost() {
		return LostFailure(&s.run)
	}
	return s.run.Failure
}

// Run returns the data of the run itself. Only packages of this module call this method. They
// must not change the result.
func (s *State) Run() *model.Run { return &s.run }

// Nodes returns the nodes: first all steps in order of declaration, then the instances. A move
// keeps the numbers of the nodes and adds new steps at the end, so in a moved run, steps may follow
// instances. The caller must not change the nodes.
func (s *State) Nodes() []*model.Node { return s.nodes }

// NextDue returns the earliest time at which TimePassed changes the run, if no other event comes
// before. It returns false if there is no such time: the state has no record, the run has ended, or
// it waits only for something without a known time, such as a person, a signal or a free slot.
func (s *State) NextDue() (time.Time, bool) {
	at := s.due(&s.run)
	return at.Time(), at != 0
}

// A HeldAgent describes an agent for which some step of the run waits.
type HeldAgent struct {
	Agent string
	Until time.Time // time before which no call can start; zero = calls wait only for a free slot
	Why   string
	// Rank is the rank of the first step that waits. Ranks order the waiting steps of all runs.
	Rank  time.Time
	first int // number of the node of the first step that waits
}

// Held returns the agents for which steps wait. The agents are in the order in which the run
// first waited for them. The engine delivers SlotsFreed when one of these agents has a free
// slot.
func (s *State) Held() []HeldAgent {
	var held []HeldAgent
	for h := range s.queues {
		if s.queues[h].top() != 0 {
			held = append(held, HeldAgent{
				Agent: s.run.Holds[h].Agent, Until: s.run.Holds[h].Until.Time(),
				Why:  s.run.Holds[h].Why,
				Rank: s.run.Line.Rank(s.queues[h].top().Time()), first: s.queues[h].items[0].node,
			})
		}
	}
	return held
}

// OpenAttempts returns the calls in flight, ordered by node and call. The cost grows with
// the number of calls in flight, not with the size of the run.
func (s *State) OpenAttempts(wf *dsl.Workflow) []model.OpenCall {
	const always = model.Instant(1<<63 - 1)
	return openUpTo(s, wf, always)
}

// ExpiredAttempts returns the calls in flight whose complete-by is not later than the parameter
// `at`. They are ordered by node and call. If there are none, the method costs almost nothing.
func (s *State) ExpiredAttempts(wf *dsl.Workflow, at time.Time) []model.OpenCall {
	return openUpTo(s, wf, model.ToInstant(at))
}

// openUpTo returns the calls in flight whose complete-by is not later than the parameter `limit`.
// It uses the index s.expiry to find the nodes. This index also contains nodes of which only a
// heartbeat is late, so openUpTo checks the complete-by of each call.
func openUpTo(s *State, wf *dsl.Workflow, limit model.Instant) []model.OpenCall {
	var open []model.OpenCall
	for _, i := range ascending(s.expiry.upTo(limit, nil)) {
		n := s.nodes[i]
		for k := range n.Attempts {
			if a := &n.Attempts[k]; a.Status == model.AttemptOpen && a.CompleteBy <= limit {
				open = append(open, openCall(wf, i, n, a))
			}
		}
	}
	return open
}

// InFlight reports whether any call of the run is in flight. It reads only a counter.
func (s *State) InFlight() bool { return s.expiry.valid > 0 }

// OpenAttempt returns the call with this id, and true. If the call is not in flight, it
// returns false.
func (s *State) OpenAttempt(wf *dsl.Workflow, id AttemptID) (model.OpenCall, bool) {
	if id.Node < 0 || id.Node >= len(s.nodes) {
		return model.OpenCall{}, false
	}
	n := s.nodes[id.Node]
	a := n.Find(id.Call)
	if a == nil || a.Status != model.AttemptOpen {
		return model.OpenCall{}, false
	}
	return openCall(wf, id.Node, n, a), true
}

func openCall(wf *dsl.Workflow, i int, n *model.Node, a *model.Attempt) model.OpenCall {
	return model.OpenCall{Node: i, Call: int(a.Call), Agent: model.ActionOf(wf, n, a.Kind).Agent, CompleteBy: a.CompleteBy.Time()}
}

// NodeCount returns the number of nodes: steps and instances.
func (s *State) NodeCount() int { return len(s.nodes) }

// FindNode returns the number of the node with this name, and true. It returns false if there
// is no such node.
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

// Silence returns the time from the start of an attempt to the moment at which its next
// heartbeat is due. It returns 0 if the attempt needs no heartbeat before its complete-by, or does
// not exist. For a new attempt, any other result is the heartbeat_timeout.
func (s *State) Silence(id AttemptID) time.Duration {
	if id.Node < 0 || id.Node >= len(s.nodes) {
		return 0
	}
	a := s.nodes[id.Node].Find(id.Call)
	if a == nil || a.Silent == 0 {
		return 0
	}
	return a.Silent.Time().Sub(a.Started.Time())
}

// Hopeless reports whether only a person can deal with the effect that node i may have. The comment
// of the function `hopeless` says when that is the case.
func (s *State) Hopeless(wf *dsl.Workflow, i int) bool { return hopeless(wf, s.nodes[i]) }

// Weight returns an estimate of how many bytes of memory the state takes.
func (s *State) Weight() int64 {
	return s.values.bytes + s.signals.bytes + s.signals.known + int64(len(s.run.Vars.V.JSON())) + int64(len(s.nodes))*nodeWeight
}
