package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
)

// A ledger is the Capacity of one membership. It counts the slots that the runs of the membership
// have taken. A shard that hangs does not give its slots back. In this case the method `close`
// gives back all slots of the membership, because the next membership could make no call without
// slots.
type ledger struct {
	invoke.Capacity

	mu    sync.Mutex          // protects the fields below
	taken map[string]*takings // slots of each agent, by AgentSpec.Key
	over  bool                // the method `close` was called
}

// A takings counts the slots that the membership has taken, for one agent.
type takings struct {
	spec invoke.AgentSpec
	n    int
}

// newLedger returns a Capacity for one membership. The parameter `of` is the Capacity of the whole
// node, in which the ledger reserves the slots. If `of` is nil, the number of calls has no limit,
// and newLedger returns nil, too.
func newLedger(of invoke.Capacity) invoke.Capacity {
	if of == nil {
		return nil
	}
	return &ledger{Capacity: of, taken: map[string]*takings{}}
}

// Reserve takes n slots of an agent and returns true. If fewer slots are free, or if close
// was called, it takes none and returns false.
func (l *ledger) Reserve(spec invoke.AgentSpec, n int) bool {
	if !l.Capacity.Reserve(spec, n) {
		return false
	}
	l.mu.Lock()
	over := l.over
	if !over {
		e := l.taken[spec.Key]
		if e == nil {
			e = &takings{spec: spec}
			l.taken[spec.Key] = e
		}
		e.n += n
	}
	l.mu.Unlock()
	if over {
		l.Capacity.Release(spec, n)
	}
	return !over
}

// Release gives back n slots of an agent. After the method `close` was called, Release gives back
// nothing, because close has given back all slots.
func (l *ledger) Release(spec invoke.AgentSpec, n int) {
	l.mu.Lock()
	over := l.over
	if e := l.taken[spec.Key]; e != nil {
		if e.n -= n; e.n == 0 {
			delete(l.taken, spec.Key)
		}
	}
	l.mu.Unlock()
	if !over {
		l.Capacity.Release(spec, n)
	}
}

// close gives back all slots of the membership, also the slots of calls in flight. So for a while,
// there may be more calls in flight than slots. This does little harm, because each agent also
// limits its calls itself.
func (l *ledger) close() {
	l.mu.Lock()
	taken := l.taken
	l.taken, l.over = map[string]*takings{}, true
	l.mu.Unlock()
	for _, e := range taken {
		l.Capacity.Release(e.spec, e.n)
	}
}
