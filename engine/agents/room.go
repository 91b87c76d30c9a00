package agents

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxProcesses is how many agent processes an engine runs at the same time. One
// process takes about 17 MiB.
const DefaultMaxProcesses = 64

// A crowd counts and limits the processes of all agents of a pool.
type crowd struct {
	most   int
	wanted atomic.Bool // an agent waits for a place
	making atomic.Bool // a goroutine is looking for a process that can be ended

	mu      sync.Mutex // protects following fields; no other lock is taken while it is held
	running int
	waiting []*agent // agents that found no place since the last place became free
}

// enter takes a place for a process. further is true if the agent has a process already.
// All further processes together may take half of the places. The other half is kept for
// agents without a process, so that many instances of one agent cannot stop the others.
func (c *crowd) enter(further bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running >= c.most || further && c.running >= max(1, c.most/2) {
		return false
	}
	c.running++
	return true
}

// leave gives a place back, and returns the agents that wait for one.
func (c *crowd) leave() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	waiting := c.waiting
	c.waiting = nil
	c.wanted.Store(false)
	return waiting
}

// full reports whether there is no place for an agent without a process. If so, the agent
// is notified when a place becomes free.
func (c *crowd) full(a *agent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running < c.most {
		return false
	}
	if !slices.Contains(c.waiting, a) {
		c.waiting = append(c.waiting, a)
	}
	c.wanted.Store(true)
	return true
}

// A crowdedError says that an agent has no process because the engine runs the largest
// allowed number. It says nothing about the agent.
type crowdedError struct{ most int }

func (e *crowdedError) Error() string {
	return fmt.Sprintf("the engine runs %d agent processes, as many as it may", e.most)
}

// crowdedPause is how long an instance that found no place waits before it tries again.
const crowdedPause = time.Second

// wantRoom ends a process without calls if an agent waits for a place. It may be called
// while an agent's lock is held.
func (p *Pool) wantRoom() {
	if p.crowd.wanted.Load() && !p.crowd.making.Swap(true) && !p.run(p.makeRoom) {
		p.crowd.making.Store(false)
	}
}

// makeRoom ends the processes of the agent that has been idle for the longest time.
func (p *Pool) makeRoom() {
	defer p.crowd.making.Store(false)
	var idlest *agent
	var since time.Time
	for _, a := range p.known() {
		a.mu.Lock()
		if a.restsLocked() && (idlest == nil || a.lastCall.Before(since)) {
			idlest, since = a, a.lastCall
		}
		a.mu.Unlock()
	}
	if idlest == nil {
		p.opts.Logger.Debug("an agent waits for a process to end", "processes", p.crowd.most)
		return
	}
	idlest.mu.Lock()
	defer idlest.mu.Unlock()
	if !idlest.restsLocked() {
		return // it got a call meanwhile
	}
	for _, i := range idlest.instances {
		if i.life.takesLocked() && i.life.calls == 0 {
			i.life.retireLocked()
		}
	}
}

// known returns all agents.
func (p *Pool) known() []*agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	agents := make([]*agent, 0, len(p.agents))
	for _, a := range p.agents {
		agents = append(agents, a)
	}
	return agents
}

// restsLocked reports whether the agent has a process but no call.
func (a *agent) restsLocked() bool {
	return a.reserved == 0 && a.calls == 0 && a.leastBusyLocked() != nil
}

// left gives the place of a process back. The instances that wait for a place try again.
func (p *Pool) left() {
	for _, a := range p.crowd.leave() {
		a.mu.Lock()
		for _, i := range a.instances {
			if _, crowded := i.why.(*crowdedError); crowded && i.state == stateIdle {
				i.notBefore, i.why = time.Time{}, nil
			}
		}
		a.changedLocked()
		a.mu.Unlock()
		a.free()
	}
}
