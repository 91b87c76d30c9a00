package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A State is everything known about one run. It is made by folding the run's records one
// after the other. It is plain data with a few indexes, which Apply keeps up to date. Only
// one goroutine at a time may use a State. Decide only reads it, except that it fills
// caches of decoded values. States, records and drafts share the memory of parts that are
// equal in them.
type State struct {
	run   model.Run
	nodes []*model.Node // a node is never changed in place, unless private is true

	private bool // no record, draft or other state shares nodes or the data they point to

	schedule
	values known

	signals signals

	checkpoints int64 // total size of all recorded checkpoints in bytes; see Ceilings

	cache *cache
}

// NewState returns the state before a run's first record.
func NewState() *State {
	return &State{run: model.Run{Head: &model.NoHead, Trouble: &model.NoTrouble}, private: true}
}

// Clone returns a copy. The copy and the original share only data that neither of them
// changes.
func (s *State) Clone() *State {
	if s.private { // do not write false again: other goroutines may be reading the field
		s.private = false
	}
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: s.values.clone(), signals: s.signals.clone(), checkpoints: s.checkpoints}
	c.schedule = s.schedule.clone()
	return c
}

// A cache holds decoded values for expressions. They can be recomputed at any time. Entries
// made during a decision are valid only once the record of the decision has been applied.
// Until then the cache is pending.
type cache struct {
	memo    dsl.Memo
	results map[int]dsl.StepResult // results of finished for_each steps, by index of the step
	pending bool                   // the cache holds results of a record that is not applied yet
}

// A schedule holds indexes of a state's nodes by time. Apply maintains them.
type schedule struct {
	expiry lazyHeap // nodes with an open attempt, by the time at which the first of them expires
	limits lazyHeap // nodes with a deadline of their own or of their undo, by that deadline
	wakes  lazyHeap // nodes in a pause, by the end of the pause
	// One queue for each entry of Run.Holds. It holds the nodes that wait for this agent, by
	// the time at which they began to wait.
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

// keep returns a value in the form in which records hold it. If the state already has an
// equal value of at least WorthSharing bytes, the result refers to that one.
func (s *State) keep(v dsl.Value) model.Held {
	if len(v.JSON()) >= model.WorthSharing {
		if o, ok := s.values.get(model.HashValue(v)); ok && model.SameValue(s.at(o), v) {
			return model.Held{V: v, From: o}
		}
	}
	return model.Held{V: v}
}

// at returns the value that an origin refers to; null if there is no such value.
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

// resolve sets h.V if h is a reference. The value is in the state before the record, or it
// is the given each.key.
func (s *State) resolve(h *model.Held, key string) {
	switch h.From.Kind {
	case model.OriginInline:
	case model.OriginKey:
		h.V = model.KeyValue(key)
	default:
		h.V = s.at(h.From)
	}
}
