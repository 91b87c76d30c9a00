package model

import "github.com/saga-engine/engine/dsl"

// A Taker is a wait step that can still take early signals: a step of a run, or a step in a group that has
// not started.
type Taker struct {
	Step *dsl.Step
	Room int // how many signals the step can take; Unlimited = no bound is known
}

// Unlimited is the Room of a wait step that may take any number of signals, such as a step with `repeat`.
const Unlimited = 1 << 30

// TakersInside returns the wait steps in a group, at every depth, of a run of the group that has not
// started. It returns nil if the step is no group. The parameter `room` is how many signals each of them
// can take.
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

// Takers gives signals to wait steps, each to the first one that can take it and has room.
type Takers []Taker

// Take gives the signal to a Taker, and lowers its Room. It returns the index of the Taker; -1 = no Taker
// takes the signal.
func (t Takers) Take(s *Signal) int {
	for i := range t {
		if x := &t[i]; x.Room > 0 && x.Step.Awaits(s.Name) && s.Fits(x.Step.Wait) == nil {
			x.Room--
			return i
		}
	}
	return -1
}

// GroupBegun reports whether the run that node n of a group starts next may exist already. Then this run
// has got its signals.
func GroupBegun(n *Node) bool {
	return n.Open() || !n.Handed.Absent && n.Calls > 0 && n.Handed.Gen == n.Gen
}
