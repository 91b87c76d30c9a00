package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// badAgent is the name of the agent that the poisonous run calls. The poisonous run ends or
// hangs every engine that decides it.
const badAgent = "bad"

// poisonName is the name of the poisonous run.
const poisonName = "poison"

// poisonSource is the source text of the poisonous run's workflow. Simulate appends it to the
// source of the generated workflow.
const poisonSource = `
agent "bad" {
  plugin = "far"
}
workflow "poison" {
  deadline = "30m"
  step "a" {
    action = agent.bad.do
    input { name = "poison-a" }
  }
  step "b" {
    action     = agent.bad.do
    depends_on = [step.a]
    input { name = "poison-b" }
  }
}
`

// A venom says how a poisonous run harms the engine that decides it.
type venom int

const (
	harmless venom = iota // there is no poisonous run
	deadly                // the engine ends in the middle of the decision
	numbing               // the decision never returns: the shard hangs
)

// bite is called when an engine decides the poisonous run. It ends the engine or lets its shard
// hang. It returns only at the end of the simulation.
func (n *node) bite() {
	w := n.w
	w.mu.Lock()
	w.bites++
	w.traceLocked("e%d is bitten: %d", n.n, w.bites)
	w.mu.Unlock()
	if w.conditions.venom == deadly {
		if node := n.get(); node != nil {
			node.StopNow()
		}
	}
	<-w.over
}

// poison submits the poisonous run without an owner. If an engine accepted the run itself, the
// engine would crash or hang before it has stored the run.
func (w judges) poison(ctx context.Context) {
	if w.conditions.venom == harmless {
		return
	}
	flow := w.def.Workflow("poison")
	vars, diags := flow.Bind(nil)
	if diags.HasErrors() {
		w.fault("bind: %v", diags.Err())
		return
	}
	_ = wait.For(ctx, time.Duration(w.draw(4000))*time.Millisecond)
	for ctx.Err() == nil {
		sub, cancel := context.WithTimeout(ctx, 5*time.Second)
		s, err := engine.Enqueue(sub, engine.Config{
			Store: &wire{store.Complete(w.store), w.world, w.client}, Options: engine.Options{Address: "client", Lease: w.conditions.lease, Writers: 1},
		}, engine.Submission{Definition: w.def, Workflow: "poison", Vars: vars, Name: poisonName, By: "sim"})
		cancel()
		w.trace("submit %s: %d %v", poisonName, s.Run, err)
		if err == nil {
			w.mu.Lock()
			w.poisonous = s.Run
			w.mu.Unlock()
			return
		}
		_ = wait.For(ctx, 300*time.Millisecond)
	}
}

// containedLocked reports whether the poisonous run is parked. It also returns true if this
// simulation has no poisonous run.
func (w judges) containedLocked() bool {
	if w.conditions.venom == harmless {
		return true
	}
	s := w.stories[w.poisonous]
	return s != nil && s.state.Run().State.NeedsHuman()
}

// judgePoison checks that the poisonous run was parked, that only a limited number of engines
// decided it, and that no agent was called for it.
func (w judges) judgePoison(ctx context.Context) {
	if w.conditions.venom == harmless {
		return
	}
	told, err := journal.Load(ctx, w.store, nil, definitions(w.world), w.poisonous)
	state := told.State
	switch {
	case err != nil:
		w.fault("%s: it is lost: %v (I1)", poisonName, err)
		return
	case state.Status() != status.RunParked || !state.Run().Lost() || state.Failure().Code != machine.CodeEngineLost:
		w.fault("%s is %v after %d engines were bitten, want parked with code %s", poisonName, state.Status(), w.bites, machine.CodeEngineLost)
	}
	// The limit allows one more decision for each engine. The reason: another engine takes the
	// run over if the owner has sent no sign of life for the duration of a lease.
	if most := store.MaxDeaths + len(w.nodes); w.bites > most {
		w.fault("%s bit %d times, want at most %d", poisonName, w.bites, most)
	}
	w.judgeAlerts(ctx, w.stories[w.poisonous])
	for _, e := range w.remote.keys {
		if e.run == poisonName {
			w.fault("%s called %s", poisonName, e.name)
		}
	}
}

// String returns the name of a venom.
func (v venom) String() string {
	return []string{"harmless", "deadly", "numbing"}[v]
}

var _ fmt.Stringer = venom(0)
