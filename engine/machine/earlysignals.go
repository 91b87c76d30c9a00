package machine

import "github.com/saga-engine/engine/engine/internal/model"

// EarlySignals returns the signals that the run has accepted, and that no step and no group has taken
// yet, the oldest first. The caller must not change the list.
func (s *State) EarlySignals() []model.Signal { return s.signals.list }
