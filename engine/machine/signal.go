package machine

import (
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// maxSignals is the largest number of early signals that a run keeps. An early signal is one that
// the run has accepted, and that no wait step has taken yet.
const maxSignals = 1000

// maxSignalBytes is the largest size of the early signals of a run together, in bytes. A signal counts
// with its payload, its texts and signalCost.
const maxSignalBytes = 16 << 20

// maxSignalIDs is the number of signal ids that a run remembers. When it accepts a signal with one
// more id, it forgets the oldest. Without this ceiling the memory and the snapshots of a long loop
// would grow with each signal.
const maxSignalIDs = 10_000

const (
	signalCost   = 160 // estimate of the memory for an early signal without its payload and texts, in bytes
	signalIDCost = 96  // estimate of the memory for an id without its text, in bytes
)

// A signal (this type) holds the data of one signal that a run has accepted.
type signal = model.Signal

// signals holds the early signals of a run. They are computed from the journal: the events say
// which signals the run accepted, and the nodes say which signals ended a wait.
type signals struct {
	list  []signal        // early signals, the oldest first
	ids   map[string]bool // ids in the list `order`
	order []string        // ids of the signals that the run accepted, without the forgotten ones, the oldest first
	last  int32           // Signal.Number of the newest signal that the run accepted; 0 = none
	ahead int32           // largest Signal.Number that was taken before its signal was in the list; 0 = none
	bytes int64           // estimated memory of the early signals, in bytes
	known int64           // estimated memory of the ids, in bytes
}

// signalBytes returns an estimate of the memory for an early signal, in bytes.
func signalBytes(x *signal) int64 {
	return int64(len(x.Payload.JSON())+len(x.Name)+len(x.Fail)+len(x.Reason)+len(x.By)) + signalCost
}

// knows reports whether the run has accepted a signal with this id before, and still remembers the
// id. It returns false if `id` is "".
func (s *signals) knows(id string) bool { return id != "" && s.ids[id] }

// full reports whether the run forgets an id when it accepts a signal with a new one.
func (s *signals) full() bool { return len(s.order) >= maxSignalIDs }

// remember adds the id of an accepted signal. If `forgets` is true, it first removes the oldest ids, so
// that the run remembers at most maxSignalIDs. The record says whether ids are removed, because the
// records of older engines remove none: their journals must give the same state as before.
func (s *signals) remember(id string, forgets bool) {
	if id == "" {
		return
	}
	for forgets && s.full() {
		delete(s.ids, s.order[0])
		s.known -= int64(len(s.order[0])) + signalIDCost
		s.order = s.order[1:]
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
	s.known += int64(len(id)) + signalIDCost
	s.order = append(s.order, id)
}

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
	s.bytes -= signalBytes(&s.list[k])
	s.list = slices.Delete(slices.Clone(s.list), k, k+1)
}

// landed updates s after a record with the event e was applied. If e brings a new signal, landed
// adds the signal to the list, unless a node has taken the signal already.
func (s *signals) landed(e Event) {
	ev, ok := e.(SignalReceived)
	if !ok || s.knows(ev.ID) {
		return
	}
	s.remember(ev.ID, ev.Forgets)
	if s.last++; s.ahead == s.last {
		return
	}
	x := ev.signal(s.last)
	s.bytes += signalBytes(&x)
	s.list = append(slices.Clip(s.list), x)
}

// signal returns the signal that the event brings, with the given number.
func (e SignalReceived) signal(number int32) signal {
	return signal{Number: number, Name: e.Name, Payload: e.Payload, Fail: e.Fail, Reason: e.Reason, By: e.By}
}

func (s *signals) clone() signals {
	c := *s
	c.list, c.ids, c.order = slices.Clone(s.list), maps.Clone(s.ids), slices.Clone(s.order)
	return c
}

// restoredSignals returns the signals that a snapshot contains.
func restoredSignals(im model.Image) signals {
	s := signals{list: im.Signals, last: im.LastSignal}
	if len(im.SignalIDs) > 0 {
		s.ids = make(map[string]bool, len(im.SignalIDs))
	}
	for _, id := range im.SignalIDs {
		s.remember(id, false)
	}
	for k := range s.list {
		s.bytes += signalBytes(&s.list[k])
	}
	return s
}
