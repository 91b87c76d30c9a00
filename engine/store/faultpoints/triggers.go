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

// A triggered store is a `faultStore` store that keeps published workflows and events. No faults
// are injected around the calls of these two roles: tests inject them in the engine code that makes
// these calls.
type triggered struct {
	*faultStore
	publisher
	inbox
}

// withTriggers returns s with the roles schedules.Store and events.Store of the wrapped store, and
// with its submissions. If the wrapped store does not have both roles, withTriggers returns s
// unchanged.
func withTriggers(s *faultStore) store.Store {
	flows, publishes := schedules.Of(s.Full)
	box, takes := events.Of(s.Full)
	if !publishes || !takes {
		return s
	}
	return withSubmissions(&triggered{s, flows, box})
}
