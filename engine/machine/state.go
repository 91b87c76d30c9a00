package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A State holds everything that is known about one run. It is computed from the run's records,
// which are applied one after the other. It is plain data with a few indexes. Apply keeps the
// indexes up to date. Only one goroutine at a time may use a State. Decide only reads a State,
// except that it fills caches of decoded values. States, records and the drafts of decisions may
// point to the same data where they are equal.
type State struct {
	run   model.Run
	nodes []*model.Node // a node is changed in place only if `private` is true

	private bool // no record, draft or other state shares the list `nodes`, or data of these nodes

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
	if s.private { // if it is false already, do not write it: other goroutines may be reading it
		s.private = false
	}
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: s.values.clone(), signals: s.signals.clone(), checkpoints: s.checkpoints}
	c.schedule = s.schedule.clone()
	return c
}

// A cache holds decoded values that expressions read. They can be computed again at any time.
// A decision adds values to the cache. These values are valid only if the record of the
// decision is applied. Until then the cache is pending.
type cache struct {
	memo    dsl.Memo
	results map[int]dsl.StepResult // results of finished for_each steps, by index of the step
	pending bool                   // a value is from a decision whose record is not applied yet
}

// A schedule holds indexes that order the nodes of a state by time. Apply keeps them up to
// date.
type schedule struct {
	// Nodes with an open attempt, ordered by the time at which their first open attempt expires.
	expiry lazyHeap
	limits lazyHeap // nodes whose forward work or undo has a deadline, ordered by that deadline
	wakes  lazyHeap // nodes in a pause, ordered by the end of the pause
	// queues[h] holds the nodes that wait for the agent in Run.Holds[h]. They are ordered by rank
	// (slots.searchDir).
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
