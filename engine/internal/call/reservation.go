package call

import (
	"sync/atomic"

	"github.com/saga-engine/engine/engine/invoke"
)

// A Reservation is the slot that a call in flight holds. When the call ends it passes
// to the decision on the answer, so that the run's next call need not compete
// for it. If no call follows, the slot is given back.
type Reservation struct {
	capacity invoke.Capacity
	spec     invoke.AgentSpec
	gone     atomic.Bool // taken or given back
}

// init makes it the seat of a call for which a slot is reserved. capacity is nil
// if nothing is limited: then it is no seat.
func (s *Reservation) init(capacity invoke.Capacity, spec invoke.AgentSpec) {
	s.capacity, s.spec = capacity, spec
}

// Of reports whether the slot was reserved with capacity. That of an earlier
// membership is not this one's to use.
func (s *Reservation) Of(capacity invoke.Capacity) bool { return s != nil && s.capacity == capacity }

// Take makes the caller the owner of the slot, and reports false if the slot
// was taken before, or if there is none.
func (s *Reservation) Take() bool { return s != nil && s.capacity != nil && !s.gone.Swap(true) }

// HandBack returns the slot to the seat from which it was taken, unless it is gone.
func (s *Reservation) HandBack(to *Reservation) {
	if s.Take() {
		to.gone.Store(false)
	}
}

// Release gives the slot back, unless it is gone.
func (s *Reservation) Release() {
	if s.Take() {
		s.capacity.Release(s.spec, 1)
	}
}

// Own returns a reservation of the same slot, for the caller that has taken it.
func (s *Reservation) Own() *Reservation { return &Reservation{capacity: s.capacity, spec: s.spec} }

// Key returns the key of the agent whose slot it is.
func (s *Reservation) Key() string { return s.spec.Key }
