package call

import (
	"sync/atomic"

	"github.com/saga-engine/engine/engine/invoke"
)

// A Reservation holds the slot of a call in flight. When the call ends, the decision on the
// answer takes the slot, so that the run's next call need not wait for a free slot. If no call
// follows, the slot is given back.
type Reservation struct {
	capacity invoke.Capacity // where the slot was reserved; nil = there is no slot
	spec     invoke.AgentSpec
	gone     atomic.Bool // Take or Release was called, so the Reservation holds no slot any more
}

// init puts a slot into the Reservation. The caller has reserved this slot by a call of
// capacity.Reserve. If the parameter `capacity` is nil, the number of calls has no limit, and there
// is no slot.
func (s *Reservation) init(capacity invoke.Capacity, spec invoke.AgentSpec) {
	s.capacity, s.spec = capacity, spec
}

// Of reports whether the slot was reserved with the given Capacity. Each membership has its
// own Capacity. A membership may not use a slot that an earlier membership has reserved.
func (s *Reservation) Of(capacity invoke.Capacity) bool { return s != nil && s.capacity == capacity }

// Take makes the caller the owner of the slot. It returns false if there is no slot, or if the
// slot was taken or given back before.
func (s *Reservation) Take() bool { return s != nil && s.capacity != nil && !s.gone.Swap(true) }

// HandBack moves the slot from s back to the Reservation `to`, from which the slot was taken. It
// does nothing if s has no slot any more.
func (s *Reservation) HandBack(to *Reservation) {
	if s.Take() {
		to.gone.Store(false)
	}
}

// Release gives the slot back to the Capacity. It does nothing if s has no slot any more.
func (s *Reservation) Release() {
	if s.Take() {
		s.capacity.Release(s.spec, 1)
	}
}

// Own returns a new Reservation that holds the same slot. The caller must have taken the slot from
// s before.
func (s *Reservation) Own() *Reservation { return &Reservation{capacity: s.capacity, spec: s.spec} }

// Agent returns the agent to which the slot belongs.
func (s *Reservation) Agent() invoke.AgentSpec { return s.spec }

// Key returns the AgentSpec.Key of the agent to which the slot belongs.
func (s *Reservation) Key() string { return s.spec.Key }
