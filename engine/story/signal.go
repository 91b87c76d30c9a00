package story

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// KnowsSignal reports whether a run has accepted a signal with this id, and still remembers the id. It
// returns false if the id is "".
func KnowsSignal(s *machine.State, id string) bool {
	nothing := machine.NewRecord(machine.TimePassed{}, model.Delta{At: s.Run().Last})
	c := s.Change(&nothing)
	return c.Knows(id)
}
