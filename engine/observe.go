package engine

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// An Observer receives what happens, after it is durable. Methods are called
// from the engine's goroutines, in order for each run, and must not block.
type Observer interface {
	// Facts reports a run's new facts, all that became durable at once; first is
	// the number of the first of them in the run's story, counted from 1, whether
	// or not its kind was chosen (FactChooser). The list is the engine's: copy the
	// facts that you keep.
	Facts(run status.RunID, first int, facts []story.Fact)
	// LateReply reports a reply that came too late to count (S28).
	LateReply(run status.RunID, attempt machine.AttemptID)
	// Pass reports a pass of the Supervisor (S47).
	Pass(p PassStats)
	// Fenced reports that this engine lost its lease or was fenced off, and
	// begins anew under another number.
	Fenced()
}

// A FactChooser is an Observer that needs facts of some kinds only. The others
// are not made, unless another observer needs them.
type FactChooser interface {
	FactKinds() story.FactKinds
}

// factsFor returns the kinds of facts that an observer takes.
func factsFor(o Observer) story.FactKinds {
	switch o := o.(type) {
	case NoObserver:
		return story.FactKinds{}
	case FactChooser:
		return o.FactKinds()
	}
	return story.AllFactKinds()
}

// PassStats is what one pass of the Supervisor found and cost.
type PassStats struct {
	Took    time.Duration // of the scan and of what it delivered
	Due     int           // own runs that were told that time has passed
	Lag     time.Duration // how long what was most overdue had been due; 0 = nothing was
	Foreign bool          // others' runs were looked at too
	Taken   int           // runs taken over or claimed
}

// NoObserver ignores everything.
type NoObserver struct{}

// Facts does nothing.
func (NoObserver) Facts(status.RunID, int, []story.Fact) {}

// LateReply does nothing.
func (NoObserver) LateReply(status.RunID, machine.AttemptID) {}

// Pass does nothing.
func (NoObserver) Pass(PassStats) {}

// Fenced does nothing.
func (NoObserver) Fenced() {}

var _ Observer = NoObserver{}

// A RetentionObserver is an Observer that is also told what retention removed.
type RetentionObserver interface {
	// Retained reports what went in one pass. It is called from one of the
	// engine's goroutines and must not block.
	Retained(s store.RetainStats)
}

// AlertAgentMissing is the code of an alert of kind overdue that says that no
// engine goes on with a run, because its agents are missing.
const AlertAgentMissing = cluster.AlertAgentMissing

// AlertSlow is the kind of the alert that a run's decision took long.
const AlertSlow = owner.AlertSlow
