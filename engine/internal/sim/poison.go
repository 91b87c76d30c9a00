package sim

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/store"
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

// poison submits the poisonous run without an owner. If an engine submitted the run as its owner,
// the engine would crash or hang before the run is stored.
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
