package call

import (
	"sync/atomic"

	"github.com/saga-engine/engine/engine/invoke"
)

// A Reservation is the slot of a call in flight. When the call ends, the slot passes to the
// decision on the answer, so that the run's next call need not compete for a slot. If no
// call follows, the slot is given back.
type Reservation struct {
	capacity invoke.Capacity
	spec     invoke.AgentSpec
	gone     atomic.Bool // the slot was taken or given back
}

// init sets the slot that is reserved for a call. If capacity is nil, there is no limit and
// no slot.
func (s *Reservation) init(capacity invoke.Capacity, spec invoke.AgentSpec) {
	s.capacity, s.spec = capacity, spec
}

// Of reports whether the slot was reserved with the given Capacity. Each membership has its
// own Capacity, and may not use the slot of an earlier membership.
func (s *Reservation) Of(capacity invoke.Capacity) bool { return s != nil && s.capacity == capacity }

// Take makes the caller the owner of the slot. It reports false if the slot was taken
// before or if there is none.
func (s *Reservation) Take() bool { return s != nil && s.capacity != nil && !s.gone.Swap(true) }

// HandBack returns the slot to the reservation from which it was taken. It does nothing if
// s has no slot any more.
func (s *Reservation) HandBack(to *Reservation) {
	if s.Take() {
		to.gone.Store(false)
	}
}

// Release gives the slot back. It does nothing if the slot is gone.
func (s *Reservation) Release() {
	if s.Take() {
		s.capacity.Release(s.spec, 1)
	}
}

// Own returns a reservation of the same slot, for the caller that has taken it.
func (s *Reservation) Own() *Reservation { return &Reservation{capacity: s.capacity, spec: s.spec} }

// Key returns the key of the agent whose slot it is.
func (s *Reservation) Key() string { return s.spec.Key }
