//go:build failpoints

package faultpoints

import (
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
	"github.com/saga-engine/engine/engine/store/schedules"
)

type (
	publisher = schedules.Store
	inbox     = events.Store
)

// The type `triggered` is a faultStore that also has the roles schedules.Store and events.Store. No
// faults are injected around the calls of these two roles: tests inject them in the engine code
// that makes these calls.
type triggered struct {
	*faultStore
	publisher
	inbox
}

// withTriggers returns s with the roles schedules.Store, events.Store and, if possible,
// intake.Store of the wrapped store. If the wrapped store lacks schedules.Store or events.Store,
// withTriggers returns s unchanged.
func withTriggers(s *faultStore) store.Store {
	flows, publishes := schedules.Of(s.Full)
	box, takes := events.Of(s.Full)
	if !publishes || !takes {
		return s
	}
	return withSubmissions(&triggered{s, flows, box})
}
