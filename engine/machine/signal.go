package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// maxSignals is the largest number of early signals that a run keeps. An early signal is one that
// the run has accepted, and that no wait step has taken yet.
const maxSignals = 1000

// maxSignalBytes is the largest size of the early signals of a run together, in bytes. A signal
// counts with its payload, its texts and signalCost.
const maxSignalBytes = 16 << 20

// maxSignalIDs is the largest number of signal ids that a run remembers. A run that remembers so
// many forgets the oldest id when it accepts a signal with a new id. Without this ceiling the
// memory and the snapshots of a long loop would grow with each signal.
const maxSignalIDs = 10_000

const (
	// Estimate of the memory for an early signal without its payload and texts, in bytes.
	signalCost   = 160
	signalIDCost = 96 // estimate of the memory for an id without its text, in bytes
)

// signals holds the early signals of a run. They are computed from the journal: the events say
// which signals the run accepted, and the nodes say which signals ended a wait.
type signals struct {
	list []signal // early signals, the oldest first
	// Early signals that the run has handed over to runs of groups (model.Handover), the oldest
	// first.
	handed []signal

	ids map[string]bool // ids in the list `order`
	// Ids of the signals that the run accepted, without the forgotten ones, the oldest first.
	order []string
	last  int32 // Signal.Number of the newest signal that the run accepted; 0 = none
	// Estimated memory of the early signals, also of those that were handed over, in bytes.
	bytes int64
	known int64 // estimated memory of the ids, in bytes

	moved shift // changes of the record that is being applied; zero between two records
}

// A shift says which signals the nodes of one record take, hand over and give back.
type shift struct {
	taken  []int32 // numbers of signals that ended a wait
	handed []int32 // numbers of signals that belong to the run of a group now
	back   []int32 // numbers of signals that are early signals again, because the group has no run
	gone   []int32 // numbers of signals that belonged to the run of a group, which has ended
}

// signalBytes returns an estimate of the memory for an early signal, in bytes.
func signalBytes(x *signal) int64 {
	return int64(len(x.Payload.JSON())+len(x.Name)+len(x.ID)+len(x.Fail)+len(x.Reason)+len(x.By)) + signalCost
}

// knows reports whether the run has accepted a signal with this id before, and still remembers the
// id. It returns false if `id` is "".
func (s *signals) knows(id string) bool { return id != "" && s.ids[id] }

// full reports whether the run must forget an id when it accepts a signal with a new id.
func (s *signals) full() bool { return len(s.order) >= maxSignalIDs }

// remember adds the id of an accepted signal. If `forgets` is true, it first removes the oldest
// ids, so that the run remembers at most maxSignalIDs. The record says whether ids are removed,
// because the records of older engines remove none: their journals must give the same state as
// before.
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

// change notes which signals a node takes, hands over or gives back with a record. The parameters
// `was` and `now` are the data of the node before and after the record.
func (s *signals) change(was, now *model.More) {
	if now.Signal.Number != was.Signal.Number && now.Signal.Number != 0 {
		s.moved.taken = append(s.moved.taken, now.Signal.Number)
	}
	for _, number := range was.Handed.Signals {
		switch {
		case slices.Contains(now.Handed.Signals, number):
		case now.Handed.Absent:
			s.moved.back = append(s.moved.back, number)
		default:
			s.moved.gone = append(s.moved.gone, number)
		}
	}
	for _, number := range now.Handed.Signals {
		if !slices.Contains(was.Handed.Signals, number) {
			s.moved.handed = append(s.moved.handed, number)
		}
	}
}

// landed updates s after a record with the event e was applied. It adds the signals that e brings.
// Then it moves the signals that the nodes of the record have taken, handed over or given back.
func (s *signals) landed(e Event) {
	s.arrive(e)
	m := s.moved
	if m.taken == nil && m.handed == nil && m.back == nil && m.gone == nil {
		return
	}
	s.moved = shift{}
	list, handed := slices.Clone(s.list), slices.Clone(s.handed)
	handed, _ = s.without(handed, m.gone, true)
	handed, back := s.without(handed, m.back, false)
	list, _ = s.without(inOrder(list, back), m.taken, true)
	list, given := s.without(list, m.handed, false)
	s.list, s.handed = list, inOrder(handed, given)
}

// without removes the signals with these numbers from a list. It returns the shorter list and the
// removed signals. The parameter `forget` is true if the run does not keep the removed signals:
// then they do not count in the field `bytes` any more.
func (s *signals) without(list []signal, numbers []int32, forget bool) (rest, removed []signal) {
	for _, number := range numbers {
		if k, found := find(list, number); found {
			removed = append(removed, list[k])
			if forget {
				s.bytes -= signalBytes(&list[k])
			}
			list = slices.Delete(list, k, k+1)
		}
	}
	return list, removed
}

// find returns the position of the signal with this number in a list that is sorted by number.
func find(list []signal, number int32) (k int, found bool) {
	return slices.BinarySearchFunc(list, number, func(x signal, number int32) int { return cmp.Compare(x.Number, number) })
}

// inOrder adds the signals in the parameter `more` to a list, and returns the list sorted by
// number. It may change the list in the parameter `list`.
func inOrder(list, more []signal) []signal {
	if len(more) == 0 {
		return list
	}
	list = append(list, more...)
	slices.SortFunc(list, func(a, b signal) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// arrive adds the signals that the event e brings to the list: one new signal, or the signals with
// which the run of a group starts. The run around the group has accepted the signals with which the
// run of a group starts. The run of the group remembers their ids, too. So if such a signal is sent
// to the group again, it does not count a second time.
func (s *signals) arrive(e Event) {
	switch ev := e.(type) {
	case Started:
		s.list = numbered(ev.Signals)
		s.last = int32(len(s.list))
		for k := range s.list {
			s.bytes += signalBytes(&s.list[k])
			s.remember(s.list[k].ID, false)
		}
	case SignalReceived:
		if s.knows(ev.ID) {
			return
		}
		s.remember(ev.ID, ev.Forgets)
		s.last++
		x := ev.signal(s.last)
		s.bytes += signalBytes(&x)
		s.list = append(slices.Clip(s.list), x)
	}
}

// numbered returns the signals with which the run of a group starts, with the numbers that they
// have in this run.
func numbered(list []signal) []signal {
	list = slices.Clone(list)
	for k := range list {
		list[k].Number = int32(k) + 1
	}
	return list
}

// signal returns the signal that the event brings, with the given number.
func (e SignalReceived) signal(number int32) signal {
	return signal{Number: number, Name: e.Name, ID: e.ID, Payload: e.Payload, Fail: e.Fail, Reason: e.Reason, By: e.By}
}

func (s *signals) clone() signals {
	c := *s
	c.list, c.handed = slices.Clone(s.list), slices.Clone(s.handed)
	c.ids, c.order = maps.Clone(s.ids), slices.Clone(s.order)
	return c
}

// kept returns all early signals for a snapshot, also those that were handed over. The nodes say
// which signals were handed over.
func (s *signals) kept() []signal {
	if len(s.handed) == 0 {
		return s.list
	}
	return inOrder(slices.Clone(s.list), s.handed)
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
	for _, n := range im.Nodes {
		if len(n.Handed.Signals) > 0 {
			s.change(&model.NoMore, &model.More{Handed: n.Handed})
		}
	}
	s.landed(nil)
	return s
}
