package machine

import (
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// maxSignals is the largest number of early signals that a run keeps. An early signal is one that
// the run has accepted, and that no wait step has taken yet.
const maxSignals = 1000

// signalCost is an estimate of the memory for an early signal without its payload, in bytes.
const signalCost = 160

// A signal (this type) holds the data of one signal that a run has accepted.
type signal = model.Signal

// signals holds the early signals of a run. They are computed from the journal: the events say
// which signals the run accepted, and the nodes say which signals ended a wait.
type signals struct {
	list  []signal        // early signals, the oldest first
	ids   map[string]bool // ids of all signals that the run accepted
	last  int32           // Signal.Number of the newest signal that the run accepted; 0 = none
	ahead int32           // largest Signal.Number that was taken before its signal was in the list; 0 = none
	bytes int64           // estimated memory of the early signals, in bytes
}

// knows reports whether the run has accepted a signal with this id before. It returns false if `id`
// is "".
func (s *signals) knows(id string) bool { return id != "" && s.ids[id] }

// Knows reports whether the run had accepted a signal with this id before the record of the Change.
// It returns false if the id is "".
func (c *Change) Knows(id string) bool { return c.s.signals.knows(id) }

// take removes the signal with this number from the list, because a node has taken the signal. If
// the record that is being applied brings this signal, the signal is not in the list yet. Then take
// stores the number in the field `ahead`.
func (s *signals) take(number int32) {
	k := slices.IndexFunc(s.list, func(x signal) bool { return x.Number == number })
	if k < 0 {
		s.ahead = max(s.ahead, number)
		return
	}
	s.bytes -= int64(len(s.list[k].Payload.JSON())) + signalCost
	s.list = slices.Delete(slices.Clone(s.list), k, k+1)
}

// landed updates s after a record with the event e was applied. If e brings a new signal, landed
// adds the signal to the list, unless a node has taken the signal already.
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

// signal returns the signal that the event brings, with the given number.
func (e SignalReceived) signal(number int32) signal {
	return signal{Number: number, Name: e.Name, Payload: e.Payload, Fail: e.Fail, Reason: e.Reason, By: e.By}
}

func (s *signals) clone() signals {
	c := *s
	c.list, c.ids = slices.Clone(s.list), maps.Clone(s.ids)
	return c
}

// ascendingIDs returns the ids of all signals that the run accepted, in ascending order.
func (s *signals) ascendingIDs() []string { return slices.Sorted(maps.Keys(s.ids)) }

// restoredSignals returns the signals that a snapshot contains.
func restoredSignals(im model.Image) signals {
	s := signals{list: im.Signals, last: im.LastSignal}
	if len(im.SignalIDs) > 0 {
		s.ids = make(map[string]bool, len(im.SignalIDs))
	}
	for _, id := range im.SignalIDs {
		s.ids[id] = true
	}
	for k := range s.list {
		s.bytes += int64(len(s.list[k].Payload.JSON())) + signalCost
	}
	return s
}
