package engine

import "github.com/saga-engine/engine/engine/machine"

// An Observer receives what happens, after it is durable. Methods are called
// from the engine's goroutines, in order for each run, and must not block.
type Observer interface {
	// Facts reports a run's new facts; first is the number of facts[0] in the
	// run's story, counted from 1.
	Facts(run machine.RunID, first int, facts []machine.Fact)
	// LateReply reports a reply that came too late to count (S28).
	LateReply(run machine.RunID, attempt machine.AttemptID)
}

// NoObserver ignores everything.
type NoObserver struct{}

// Facts does nothing.
func (NoObserver) Facts(machine.RunID, int, []machine.Fact) {}

// LateReply does nothing.
func (NoObserver) LateReply(machine.RunID, machine.AttemptID) {}

var _ Observer = NoObserver{}
