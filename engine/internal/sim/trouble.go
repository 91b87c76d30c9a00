package sim

import (
	"context"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
)

// strikes starts the goroutines that cause faults at random times: frozen engines, frozen
// Supervisors, and engines without a connection to agents.
func (w *world) strikes(ctx context.Context) {
	for _, m := range []struct {
		name  string
		on    bool
		gates []gate
	}{
		{"stands still", w.conditions.freeze, nil},
		{"has no Supervisor", w.conditions.freezeMembers, w.still},
		{"is cut off from agents", w.conditions.freezeAgents, w.held},
	} {
		if !m.on {
			continue
		}
		w.wg.Go(func() {
			for wait.For(ctx, time.Duration(500+w.draw(5000))*time.Millisecond) == nil && !w.isHealed() {
				i := w.draw(len(w.nodes))
				var open []func()
				if m.gates != nil {
					open = append(open, m.gates[i].close())
				} else { // the complete engine freezes: its connections to the store and to agents
					open = append(open, w.frozen[i].close(), w.held[i].close())
				}
				w.kin.hit(m.name, w.nodes[i])
				w.trace("e%d %s", i, m.name)
				_ = wait.For(ctx, time.Duration(w.draw(int(3*w.conditions.lease/time.Millisecond)))*time.Millisecond)
				for _, f := range open {
					f()
				}
				w.trace("e%d %s no more", i, m.name)
			}
		})
	}
}

// latency returns by how much the next message to or from the store is delayed; 0 = not at all.
func (w *world) latency() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stepLocked()
	if !w.conditions.slow || !w.healedAt.IsZero() || w.rng.IntN(3) > 0 {
		return 0
	}
	return time.Duration(w.rng.IntN(40)) * time.Millisecond
}

// lifetime returns how long an engine runs; 0 = until the end of the simulation. The second
// result is true if the engine is killed after that time, and false if it is asked to stop.
func (w *world) lifetime() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.healedAt.IsZero() || !w.conditions.crash && !w.conditions.drain {
		return 0, false
	}
	kill := w.conditions.crash && (!w.conditions.drain || w.rng.IntN(2) == 0)
	return time.Duration(500+w.rng.IntN(8000)) * time.Millisecond, kill
}

func (w *world) isHealed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.healedAt.IsZero()
}

// heal ends all faults. An engine that runs now still ends at the time that lifetime has chosen
// for it.
func (w *world) heal() {
	w.remote.heal()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healedAt = time.Now()
	w.traceLocked("all is well from now on")
}
