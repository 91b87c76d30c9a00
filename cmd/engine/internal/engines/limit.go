package engines

import (
	"fmt"
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
)

// A callLimit limits the calls in flight of all agents together (--concurrency).
type callLimit struct {
	inner invoke.Capacity
	most  int // largest number of calls in flight; 0 = no limit

	mu      sync.Mutex // protects the fields `used`, `refused` and `onFree`
	used    int
	refused map[string]bool // pool keys of the agents that got no slot because of this limit
	onFree  []func(key string)
}

var _ invoke.Capacity = (*callLimit)(nil)

// LimitCalls returns a capacity that keeps all limits of the capacity in the parameter `inner`, and
// in addition limits the calls of all agents together. The parameter `most` is the largest number
// of calls in flight; 0 = no limit.
func LimitCalls(inner invoke.Capacity, most int) *callLimit {
	return &callLimit{inner: inner, most: most, refused: map[string]bool{}}
}

// Slot returns the free slots of the agent, at most as many as the limit still allows.
func (l *callLimit) Slot(spec invoke.AgentSpec) machine.Slot {
	s := l.inner.Slot(spec)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most == 0 || s.Free <= l.most-l.used {
		return s
	}
	s.Free = max(0, l.most-l.used)
	if s.Free == 0 {
		l.refused[spec.Key] = true
		s.Why = fmt.Sprintf("%d calls are in flight, as many as --concurrency allows", l.used)
	}
	return s
}

// Reserve takes n slots of the agent. It takes none and returns false if fewer than n are free.
func (l *callLimit) Reserve(spec invoke.AgentSpec, n int) bool {
	l.mu.Lock()
	if l.most > 0 && l.used+n > l.most {
		l.refused[spec.Key] = true
		l.mu.Unlock()
		return false
	}
	l.used += n
	l.mu.Unlock()
	if l.inner.Reserve(spec, n) {
		return true
	}
	l.back(n)
	return false
}

// Release frees n slots of the agent.
func (l *callLimit) Release(spec invoke.AgentSpec, n int) {
	l.mu.Lock()
	// Subtract before inner.Release is called. That call notifies the listeners, and the listeners
	// must find the free slots.
	l.used -= n
	l.mu.Unlock()
	l.inner.Release(spec, n)
	l.back(0)
}

// back subtracts n from the number of calls in flight. Then it notifies the listeners about each
// agent that got no slot because of this limit.
func (l *callLimit) back(n int) {
	l.mu.Lock()
	l.used -= n
	if len(l.refused) == 0 {
		l.mu.Unlock()
		return
	}
	keys, fns := l.refused, l.onFree
	l.refused = map[string]bool{}
	l.mu.Unlock()
	for key := range keys {
		for _, fn := range fns {
			fn(key)
		}
	}
}

// OnFree registers fn. When a slot of an agent may have become free, fn is called with the key
// of the agent in the pool.
func (l *callLimit) OnFree(fn func(key string)) {
	l.mu.Lock()
	l.onFree = append(l.onFree, fn)
	l.mu.Unlock()
	l.inner.OnFree(fn)
}
