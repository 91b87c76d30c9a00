package machine

import "time"

// Silence returns how long the call of an open attempt may be silent, counted
// from its start (heartbeat_timeout); 0 = as long as it runs.
func (s *State) Silence(id AttemptID) time.Duration {
	if id.Node < 0 || id.Node >= len(s.nodes) {
		return 0
	}
	a := s.nodes[id.Node].Find(id.Call)
	if a == nil || a.Silent == 0 {
		return 0
	}
	return a.Silent.Time().Sub(a.Started.Time())
}
