package story

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// KnowsSignal reports whether a run has accepted a signal with this id, and still remembers the id.
// It returns false if the id is "".
func KnowsSignal(s *machine.State, id string) bool {
	nothing := machine.NewRecord(machine.TimePassed{}, model.Delta{At: s.Run().Last})
	c := s.Change(&nothing)
	return c.Knows(id)
}

// An EarlySignal is a signal that a run keeps until a step or a group takes it. It has no payload,
// which may be sensitive.
type EarlySignal struct {
	Name  string
	Code  string // error code with which the step fails; "" = the step succeeds
	By    string // person who sent the signal; "" = not known
	Bytes int    // size of the payload
}

// EarlySignals returns the signals that a run keeps until a step or a group takes them, the oldest
// first. A run that has ended keeps none.
func EarlySignals(s *machine.State) []EarlySignal {
	if s.Status().Final() {
		return nil
	}
	list := s.EarlySignals()
	out := make([]EarlySignal, len(list))
	for k, x := range list {
		out[k] = EarlySignal{Name: x.Name, Code: x.Fail, By: x.By, Bytes: len(x.Payload.JSON())}
	}
	return out
}
