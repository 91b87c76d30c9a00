package serving

import (
	"log/slog"
	"sync/atomic"

	"github.com/saga-engine/engine/cmd/engine/internal/alerts"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// observers is a list of observers. It passes each notification of the engine to all of them.
type observers []engine.Observer

var _ engine.Observer = observers{}

// FactKinds returns the kinds of facts that at least one observer needs.
func (all observers) FactKinds() story.FactKinds {
	var kinds story.FactKinds
	for _, o := range all {
		c, ok := o.(engine.FactChooser)
		if !ok {
			return story.AllFactKinds()
		}
		kinds = kinds.With(c.FactKinds())
	}
	return kinds
}

// Facts passes a run's new facts to all observers.
func (all observers) Facts(run status.RunID, first int, facts []story.Fact) {
	for _, o := range all {
		o.Facts(run, first, facts)
	}
}

// LateReply passes a late reply to all observers.
func (all observers) LateReply(run status.RunID, attempt machine.AttemptID) {
	for _, o := range all {
		o.LateReply(run, attempt)
	}
}

// Pass passes the results of one scan of the Supervisor to all observers.
func (all observers) Pass(p engine.PassStats) {
	for _, o := range all {
		o.Pass(p)
	}
}

// Retained notifies the observers about the rows that retention removed.
func (all observers) Retained(s store.RetainStats) {
	for _, o := range all {
		if r, ok := o.(engine.RetentionObserver); ok {
			r.Retained(s)
		}
	}
}

// Fenced notifies each observer that the engine has lost its lease.
func (all observers) Fenced() {
	for _, o := range all {
		o.Fenced()
	}
}

// An alertWatch is an Observer that wakes a hook when this engine has raised an alert because a run
// needs a person, or because of a late reply. Other alerts, such as overdue, and alerts of other
// engines do not wake the hook: the hook finds them when it next reads the store.
type alertWatch struct {
	engine.NoObserver
	hook *alerts.Hook // nil = alerts are not pushed
}

// FactKinds returns the kinds of facts that wake the hook.
func (w alertWatch) FactKinds() story.FactKinds { return story.NewFactKinds(story.FactRunParked) }

// Facts wakes the hook if one of the facts says that the run needs a person.
func (w alertWatch) Facts(_ status.RunID, _ int, facts []story.Fact) {
	for i := range facts {
		if facts[i].Kind == story.FactRunParked {
			w.hook.Wake()
			return
		}
	}
}

// LateReply wakes the hook, because a late reply raises an alert.
func (w alertWatch) LateReply(status.RunID, machine.AttemptID) { w.hook.Wake() }

// agentEvents is an Observer that logs changes of circuits, and starts and ends of agent
// processes.
type agentEvents struct {
	log *slog.Logger
	// If `stopping` is true, the engine is stopping, so the end of an agent process is no warning.
	stopping *atomic.Bool
}

var _ agents.Observer = agentEvents{}

// CircuitChanged logs the new state of an agent's circuit.
func (e agentEvents) CircuitChanged(c agents.CircuitChange) {
	if c.To == agents.CircuitOpen {
		e.log.Warn("circuit open: calls of this agent wait", "agent", c.Agent, "failures", c.Failures, "until", words.Stamp(c.Until))
		return
	}
	e.log.Info("circuit "+string(c.To), "agent", c.Agent)
}

// ProcessStarted logs that an agent process is ready.
func (e agentEvents) ProcessStarted(p agents.ProcessInfo) {
	e.log.Info("agent started", "agent", p.Agent, "instance", p.Instance, "pid", p.Pid)
}

// ProcessEnded logs that an agent process has ended.
func (e agentEvents) ProcessEnded(p agents.ProcessInfo, err error) {
	if err != nil && !e.stopping.Load() {
		e.log.Warn("agent ended", "agent", p.Agent, "instance", p.Instance, "pid", p.Pid, "error", err)
		return
	}
	e.log.Info("agent ended", "agent", p.Agent, "instance", p.Instance, "pid", p.Pid)
}
