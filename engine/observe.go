package engine

import (
	"time"

	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/internal/notify"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// An Observer is notified of each fact of a run (story.Fact) after the commit of that fact. It is
// also notified of events of the engine. The engine's goroutines call the methods. For one run, the
// calls have the order of the run's facts. The methods must not block.
type Observer interface {
	// Facts reports the new facts of a run that were committed together. All facts of a run are
	// numbered from 1. The parameter `first` is the number of the first fact in the list. If the
	// observer has not chosen all kinds of facts (FactChooser), the facts of the other kinds are
	// numbered, too. After the call, the engine uses the slice `facts` again: copy the facts that
	// you keep.
	Facts(run status.RunID, first int, facts []story.Fact)
	// LateReply reports a reply that is kept only as evidence (S28): it was too late to count, or
	// it could not be delivered to its run.
	LateReply(run status.RunID, attempt machine.AttemptID)
	// Pass reports a scan of the Supervisor (S47).
	Pass(p PassStats)
	// Fenced reports that this engine lost its lease or was declared dead. The engine then
	// joins again with a new membership.
	Fenced()
}

// A FactChooser is an Observer that needs only some kinds of facts. The engine does not compute
// facts of other kinds for it.
type FactChooser interface {
	// FactKinds returns the kinds of facts that the observer needs.
	FactKinds() story.FactKinds
}

// factsFor returns the kinds of facts that an observer needs.
func factsFor(o Observer) story.FactKinds {
	switch o := o.(type) {
	case NoObserver:
		return story.FactKinds{}
	case FactChooser:
		return o.FactKinds()
	}
	return story.AllFactKinds()
}

// PassStats holds the results and the cost of one scan of the Supervisor.
type PassStats struct {
	Took time.Duration // duration of the scan, with the delivery of events to runs and the takeovers
	// Number of runs of this engine that got the event TimePassed from the scan. In the result of
	// SuperviseOnce, it is equal to Taken.
	Due     int
	Lag     time.Duration // largest delay of the due runs; 0 = no run was late
	Foreign bool          // true = the scan has also examined runs of other engines
	Taken   int           // number of runs taken over or claimed
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

// A RetentionObserver is an Observer that is also notified when retention has removed runs.
type RetentionObserver interface {
	// Retained reports how many runs and partitions one scan removed. A goroutine of the
	// engine calls Retained, which must not block.
	Retained(s store.RetainStats)
}

// TriggerNotify is the trigger of a notification: a run that announces a state of another run.
const TriggerNotify = notify.Trigger

// AlertAgentMissing is the code of an alert of kind overdue. The alert says that no engine
// continues a run because the run's agents are missing.
const AlertAgentMissing = cluster.AlertAgentMissing

// AlertSlow is the kind of the alert about a decision that took long.
const AlertSlow = owner.AlertSlow
