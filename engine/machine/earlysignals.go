package machine

// EarlySignals returns the signals that the run has accepted, and that no step and no group has taken
// yet, the oldest first. The caller must not change the list.
func (s *State) EarlySignals() []Signal { return s.signals.list }
