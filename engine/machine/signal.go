package machine

import (
	"maps"
	"slices"

	"github.com/saga-engine/engine/dsl"
)

// maxSignals is how many signals of a run may wait for a step that takes them.
const maxSignals = 1000

// signalCost is what an early signal takes in memory in addition to its payload, in bytes.
const signalCost = 160

// A signal is a signal that a run has taken and that no wait has taken yet.
type signal struct {
	Number  int32 // in the order in which the run took signals, from 1
	Name    string
	Payload dsl.Value
	Fail    string // code with which the wait fails; "" = it succeeds
	Reason  string
	By      string
}

// signals holds the early signals of a run. It is folded from the events of the run's
// records and from the numbers that nodes have taken.
type signals struct {
	list  []signal        // in order
	ids   map[string]bool // of all signals that the run took
	last  int32           // number of the newest signal
	ahead int32           // the signal of the record that is being applied, if a node has taken it
	bytes int64           // of the payloads in list
}

// knows reports whether the run has taken a signal with this id before.
func (s *signals) knows(id string) bool { return id != "" && s.ids[id] }

// take removes a signal that a node has taken. A signal of the record that is being
// applied is not in the list yet.
func (s *signals) take(number int32) {
	k := slices.IndexFunc(s.list, func(x signal) bool { return x.Number == number })
	if k < 0 {
		s.ahead = max(s.ahead, number)
		return
	}
	s.bytes -= int64(len(s.list[k].Payload.JSON())) + signalCost
	s.list = slices.Delete(slices.Clone(s.list), k, k+1)
}

// landed adds the signal of a record that was applied, unless a node has taken it.
func (s *signals) landed(e Event) {
	ev, ok := e.(SignalReceived)
	if !ok || s.knows(ev.ID) {
		return
	}
	if ev.ID != "" {
		if s.ids == nil {
			s.ids = map[string]bool{}
		}
		s.ids[ev.ID] = true
	}
	if s.last++; s.ahead == s.last {
		return
	}
	x := ev.signal(s.last)
	s.bytes += int64(len(x.Payload.JSON())) + signalCost
	s.list = append(slices.Clip(s.list), x)
}

// signal returns the event as a signal of the given number.
func (e SignalReceived) signal(number int32) signal {
	return signal{Number: number, Name: e.Name, Payload: e.Payload, Fail: e.Fail, Reason: e.Reason, By: e.By}
}

func (s *signals) clone() signals {
	c := *s
	c.list, c.ids = slices.Clone(s.list), maps.Clone(s.ids)
	return c
}
