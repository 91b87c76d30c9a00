package sim

import (
	"context"
	"slices"
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
		{"is cut off from agents", w.conditions.freezeAgents, w.agentGates},
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
					open = append(open, w.frozen[i].close(), w.agentGates[i].close())
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

// widow kills, at random times, the engine of a child run, the engine of its parent, or both.
func (k *kin) widow(ctx context.Context) {
	if k == nil {
		return
	}
	w := k.w
	w.wg.Go(func() {
		for wait.For(ctx, time.Duration(500+w.draw(4000))*time.Millisecond) == nil && !w.isHealed() {
			which, nodes := k.couple()
			for _, n := range nodes {
				if e := n.get(); e != nil {
					n.setWorks(false)
					k.hit("kill", n)
					w.trace("e%d is killed: %s", n.n, which)
					e.StopNow()
				}
			}
		}
	})
}

// couple chooses an open child run, and the engines to kill: the owner of the child run, the owner
// of the parent, or both.
func (k *kin) couple() (which string, nodes []*node) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	var open []*runLog
	for _, s := range w.order {
		if s.kin.parent != 0 && !s.state.Status().Final() && w.stories[s.kin.parent] != nil {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return "", nil
	}
	s := open[w.rng.IntN(len(open))]
	child, parent := k.home[s.row.Owner], k.home[w.stories[s.kin.parent].row.Owner]
	which = []string{"engine of a child", "engine of a parent", "engines of both"}[w.rng.IntN(3)]
	apart := " in one engine"
	if child != parent {
		apart = " in two engines"
	}
	switch which {
	case "engine of a child":
		nodes = append(nodes, child)
	case "engine of a parent":
		nodes = append(nodes, parent)
	default:
		nodes = append(nodes, child)
		if parent != child {
			nodes = append(nodes, parent)
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n *node) bool { return n == nil || n == w.client })
	if len(nodes) > 0 {
		k.hits[which+apart+" dies"]++
	}
	return which, nodes
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

// heal ends all faults, with one exception: an engine that runs now still ends at the time that the
// method `lifetime` has chosen for it.
func (w *world) heal() {
	w.remote.heal()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healedAt = time.Now()
	w.traceLocked("all is well from now on")
}
