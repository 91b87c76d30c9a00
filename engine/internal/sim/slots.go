package sim

import (
	"slices"
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

// slots limits how many calls an engine may have in flight to its agents.
type slots struct {
	w     *world
	n     *node
	total int

	mu   sync.Mutex // protects the fields below
	free int
	fns  []func(key string)
	keys []string // keys of all agents that have asked for a slot; they share the slots of the engine
}

var _ invoke.Capacity = (*slots)(nil)

func newSlots(w *world, n *node, total int) *slots {
	return &slots{w: w, n: n, total: total, free: total}
}

// Slot implements invoke.Capacity.
func (s *slots) Slot(spec invoke.AgentSpec) machine.Slot {
	if spec.Name == badAgent {
		s.n.bite()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.keys, spec.Key) {
		s.keys = append(s.keys, spec.Key)
	}
	return machine.Slot{Free: max(0, s.free)}
}

// Reserve implements invoke.Capacity.
func (s *slots) Reserve(_ invoke.AgentSpec, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < n {
		return false
	}
	s.free -= n
	return true
}

// Release implements invoke.Capacity.
func (s *slots) Release(_ invoke.AgentSpec, n int) {
	s.mu.Lock()
	s.free += n
	free, fns, keys := s.free, s.fns, slices.Clone(s.keys)
	s.mu.Unlock()
	if free > s.total {
		s.w.fault("engine %d gave back a slot that it had not taken: %d of %d are free", s.n.n, free, s.total)
	}
	for _, fn := range fns {
		for _, key := range keys {
			fn(key)
		}
	}
}

// OnFree implements invoke.Capacity.
func (s *slots) OnFree(fn func(key string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fns = append(s.fns, fn)
}

// judge checks that all slots are free. The caller must make sure that no call is in flight.
func (s *slots) judge() {
	s.mu.Lock()
	free := s.free
	s.mu.Unlock()
	if free != s.total {
		s.w.fault("engine %d: %d of %d slots are free and nothing is called", s.n.n, free, s.total)
	}
}
