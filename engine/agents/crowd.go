package agents

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// A crowdedError says that an instance has no process because the method crowd.enter has refused
// it: the engine runs too many processes already. The field `most` is the largest allowed number of
// processes. If the agent had a process already, the field `further` is the number of processes from
// which on such an agent gets no further one; otherwise it is 0. The error says nothing about the
// agent itself.
type crowdedError struct{ most, further int }

func (e *crowdedError) Error() string {
	if e.further > 0 {
		return fmt.Sprintf("the engine runs %d agent processes or more, and from this number on it starts only the first process of an agent; its limit is %d", e.further, e.most)
	}
	return fmt.Sprintf("the engine runs %d agent processes already, and this is its limit", e.most)
}

// crowdedPause is how long an instance waits before it tries again to start its process, if the
// method crowd.enter has refused the process.
const crowdedPause = time.Second

// wantProcess starts the method `endIdle` in the background if an agent waits until it may start a
// process. If endIdle is running already, or the pool is closed, wantProcess does nothing.
// wantProcess may be called while an agent's lock is held.
func (p *Pool) wantProcess() {
	if p.crowd.wanted.Load() && !p.crowd.making.Swap(true) && !p.run(p.endIdle) {
		p.crowd.making.Store(false)
	}
}

// endIdle ends the processes of one agent that has no call and no reserved slot, so that other
// agents may start processes. If there are several such agents, it chooses the one that has had no
// call for the longest time. If there is none, it does nothing. A process that still works on a
// cut-off call does not end.
func (p *Pool) endIdle() {
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
		return // the agent got a call meanwhile
	}
	for _, i := range idlest.instances {
		if i.life.takesLocked() && i.life.calls == 0 {
			i.life.retireLocked()
		}
	}
}

// processEnded is called when a process has ended, or when its start has failed. Then the agents in
// the list crowd.waiting may try again to start their processes.
func (p *Pool) processEnded() {
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

// unlimited is the number of free slots that an agent without max_concurrency reports.
const unlimited = 1 << 30

// slot returns how many calls the agent can take now.
func (a *agent) slot() machine.Slot {
	probes, until, limited := a.breaker.allowed()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.slotLocked(probes, until, limited)
}

func (a *agent) slotLocked(probes int, until time.Time, limited bool) machine.Slot {
	if limited && !until.IsZero() {
		return machine.Slot{Until: until, Why: "circuit open"}
	}
	if a.idleLocked() {
		if a.pool.crowd.full(a) {
			a.pool.wantProcess()
			return machine.Slot{Why: (&crowdedError{most: a.pool.crowd.most}).Error()}
		}
		if until, why := a.downLocked(time.Now()); why != nil {
			return machine.Slot{Until: until, Why: why.Error(), Down: true}
		}
	}
	free := unlimited
	if a.spec.MaxConcurrency > 0 {
		free = max(0, a.spec.MaxConcurrency-max(a.reserved, a.calls))
	}
	why := "full"
	if limited {
		// waiting is the number of calls that have reserved a slot, but have not asked the breaker
		// yet.
		waiting := max(0, a.reserved-a.calls)
		if left := max(0, probes-waiting); left < free {
			free, why = left, "circuit half-open, probe under way"
		}
	}
	if free > 0 {
		why = ""
	}
	return machine.Slot{Free: free, Why: why}
}

// downLocked returns why the agent has no process, and the earliest time at which the agent may
// start a process. If a process is running or starting, or may start now, the error is nil and the
// time is zero. If several instances give a reason, the reason is the one of the instance that may
// start first. But a crowdedError says nothing about the agent, so it is the reason only if no
// instance gives another one.
func (a *agent) downLocked(now time.Time) (time.Time, error) {
	sooner := func(x, y *instance) int { return x.notBefore.Compare(y.notBefore) }
	first := slices.MinFunc(a.instances, sooner)
	for _, i := range a.instances {
		if i.state != stateIdle || !now.Before(i.notBefore) {
			return time.Time{}, nil
		}
	}
	giver := slices.MinFunc(a.instances, func(x, y *instance) int {
		return cmp.Or(cmp.Compare(x.saysLocked(), y.saysLocked()), sooner(x, y))
	})
	return first.notBefore, cmp.Or(giver.why, errNoReason)
}

// saysLocked returns a number that is smaller if the instance says more about the agent: 0 if it
// says why a process of the agent ended or did not start, 1 if it gives no reason, and 2 if only the
// limit of processes prevents the start.
func (i *instance) saysLocked() int {
	if _, crowded := i.why.(*crowdedError); crowded {
		return 2
	}
	if i.why == nil {
		return 1
	}
	return 0
}

var errNoReason = errors.New("the agent's process has ended")

func (a *agent) reserve(n int) bool {
	probes, until, limited := a.breaker.allowed()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slotLocked(probes, until, limited).Free < n {
		return false
	}
	a.reserved += n
	return true
}

func (a *agent) release(n int) {
	a.mu.Lock()
	a.reserved = max(0, a.reserved-n)
	a.mu.Unlock()
	a.freed()
}

// freed is called after a call or a reservation has ended. It notifies the runs that wait for a
// slot, if a slot is free. Without max_concurrency and with a closed circuit, no run waits for a
// slot, so freed notifies no run. If an agent waits until it may start a process, freed also starts
// endIdle.
func (a *agent) freed() {
	if a.spec.MaxConcurrency > 0 || a.breaker.limits.Load() {
		a.free()
	}
	a.pool.wantProcess()
}

// free notifies the runs that wait for a slot of this agent, if a slot is free.
func (a *agent) free() {
	if a.slot().Free > 0 {
		a.pool.free(a.spec.Key)
	}
}

// free calls the functions that OnFree has registered. They notify the runs that wait for a slot
// of the agent with this key. After Close, free does nothing.
func (p *Pool) free(key string) {
	p.mu.Lock()
	fns := p.onFree
	if p.closed {
		fns = nil
	}
	p.mu.Unlock()
	for _, fn := range fns {
		fn(key)
	}
}
