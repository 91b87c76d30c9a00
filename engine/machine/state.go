package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A State is everything known of one run: the fold of its records. It is
// plain data with a few indexes that Apply maintains. One goroutine at a time
// uses a State; Decide only reads it, except for caches of decoded values.
// States, records and drafts share what they do not change.
type State struct {
	run   model.Run
	nodes []*model.Node // never changed in place, except by Fold where they are private

	private bool // nodes, and what they point to, are in no record, draft or other state

	schedule
	values known

	signals signals

	checkpoints int64 // bytes of those that were recorded; see Ceilings

	cache *cache
}

// NewState returns the state before a run's first record.
func NewState() *State {
	return &State{run: model.Run{Head: &model.NoHead, Trouble: &model.NoTrouble}, private: true}
}

// Clone returns a copy that shares nothing that either of the two changes.
func (s *State) Clone() *State {
	if s.private { // else it may be read by many
		s.private = false
	}
	c := &State{run: s.run, nodes: slices.Clone(s.nodes), values: s.values.clone(), signals: s.signals.clone(), checkpoints: s.checkpoints}
	c.schedule = s.schedule.clone()
	return c
}

// A cache holds what can be recomputed: decoded values for expressions.
// Entries made while a record was being decided are only valid once that
// record is applied, hence pending.
type cache struct {
	memo    dsl.Memo
	results map[int]dsl.StepResult // results of finished for_each steps
	pending bool                   // holds results of a record that is not applied yet
}

// A schedule holds indexes of a state's nodes by time. Apply maintains them.
type schedule struct {
	expiry lazyHeap   // of nodes with an open attempt, when the first is over
	limits lazyHeap   // deadlines of steps and of undos
	wakes  lazyHeap   // ends of backoffs and of waits for a quiet node
	queues []lazyHeap // by hold: nodes that wait for an agent, in order
}

func (s *schedule) clone() schedule {
	c := schedule{expiry: s.expiry.clone(), limits: s.limits.clone(), wakes: s.wakes.clone()}
	for _, q := range s.queues {
		c.queues = append(c.queues, q.clone())
	}
	return c
}

// due returns the earliest time at which time alone changes something of the run; 0 = none.
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

// keep wraps a value for the state, as a reference if the state has it.
func (s *State) keep(v dsl.Value) model.Held {
	if len(v.JSON()) >= model.WorthSharing {
		if o, ok := s.values.get(model.HashValue(v)); ok && model.SameValue(s.at(o), v) {
			return model.Held{V: v, From: o}
		}
	}
	return model.Held{V: v}
}

// at returns the value an origin points to; null if there is none.
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

// resolve fills in the value of a reference from the state before the record.
func (s *State) resolve(h *model.Held, key string) {
	switch h.From.Kind {
	case model.OriginInline:
	case model.OriginKey:
		h.V = model.KeyValue(key)
	default:
		h.V = s.at(h.From)
	}
}
