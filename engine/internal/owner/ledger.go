package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
)

// A ledger is the Capacity of one membership. It knows which slots the runs of the
// membership have taken. A shard that hangs does not give its slots back. So the ledger
// gives them back at the end of the membership; otherwise the next membership could make no
// call.
type ledger struct {
	invoke.Capacity

	mu    sync.Mutex // protects following fields
	taken map[string]*takings
	over  bool
}

// A takings is the number of slots that are taken from one agent.
type takings struct {
	spec invoke.AgentSpec
	n    int
}

// newLedger returns the Capacity for a membership; nil if there is no limit.
func newLedger(of invoke.Capacity) invoke.Capacity {
	if of == nil {
		return nil
	}
	return &ledger{Capacity: of, taken: map[string]*takings{}}
}

// Reserve takes n slots, or none if fewer are free.
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

// Release gives n slots back. After close it does nothing, because close has given all
// slots back.
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

// close gives all slots back. Calls of the membership that are still in flight then have no
// slot; each agent still limits them itself.
func (l *ledger) close() {
	l.mu.Lock()
	taken := l.taken
	l.taken, l.over = map[string]*takings{}, true
	l.mu.Unlock()
	for _, e := range taken {
		l.Capacity.Release(e.spec, e.n)
	}
}
