//go:build failpoints

package faultpoints

import (
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/firings"
	"github.com/saga-engine/engine/engine/store/intake"
)

// Selections returns the role firings.Store of the wrapped store; nil = the store does not have
// this role. No faults are injected around the calls of this role: tests inject them in the engine
// code that makes these calls.
func (s *faultStore) Selections() firings.Store {
	role, _ := firings.Of(s.Full)
	return role
}

type submissions = intake.Store

// The type `fed` is a `triggered` store that also has the role intake.Store: it keeps submissions
// of other programs. No faults are injected around the calls of this role: tests inject them in the
// engine code that makes these calls.
type fed struct {
	*triggered
	submissions
}

// withSubmissions returns s with the role intake.Store of the wrapped store. If the wrapped store
// does not have this role, withSubmissions returns s unchanged.
func withSubmissions(s *triggered) store.Store {
	if from, ok := intake.Of(s.Full); ok {
		return &fed{s, from}
	}
	return s
}
