package model

import "github.com/saga-engine/engine/dsl"

// A Taker is a wait step that can still take early signals: a step of a run, or a step in a group
// that has not started.
type Taker struct {
	Step *dsl.Step
	Room int // how many signals the step can take; Unlimited = no bound is known
}

// Unlimited is the Room of a wait step that may take any number of signals, such as a step with
// `repeat`.
const Unlimited = 1 << 30

// TakersInside returns the wait steps in a group, at every depth. It returns nil if the step
// `group` is no group. The group has not started, so its steps have taken no signals. The parameter
// `room` is how many signals each wait step can take. But with `repeat` or for_each, a step can
// take any number.
func TakersInside(group *dsl.Step, room int) (list Takers) {
	if group.Child == nil || !group.Child.Group {
		return nil
	}
	for _, x := range group.Child.Workflow.Steps {
		most := room
		if x.Repeat != nil || x.ForEach != nil {
			most = Unlimited
		}
		if x.Wait != nil {
			list = append(list, Taker{Step: x, Room: most})
		}
		list = append(list, TakersInside(x, most)...)
	}
	return list
}

// Takers is a list of wait steps. The method Take gives a signal to the first step in the list that
// can take the signal and has room.
type Takers []Taker

// Take gives the signal to the first Taker that can take it, and lowers the Room of this Taker. It
// returns the index of the Taker; -1 = no Taker takes the signal.
func (t Takers) Take(s *Signal) int {
	for i := range t {
		if x := &t[i]; x.Room > 0 && x.Step.Awaits(s.Name) && s.Fits(x.Step.Wait) == nil {
			x.Room--
			return i
		}
	}
	return -1
}

// GroupBegun reports whether the run of a group, which the next call of node n would start, may
// exist already. If the run exists, it has got its signals with its start.
func GroupBegun(n *Node) bool {
	return n.Open() || !n.Handed.Absent && n.Calls > 0 && n.Handed.Gen == n.Gen
}
