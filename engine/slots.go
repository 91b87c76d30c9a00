package engine

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine"
)

// A queue keeps, for each agent, the runs that wait for a slot, first come,
// first served. When a slot frees one run is told, and the next only after that
// one has decided: a hundred runs do not rush for one slot.
type queue struct {
	capacity Capacity // nil = nobody ever waits
	tell     func(run machine.RunID, key string)

	mu    sync.Mutex // protects following fields
	lines map[string]*line
}

type line struct {
	spec    AgentSpec
	runs    []machine.RunID
	has     map[machine.RunID]bool
	telling bool // a run was told and has not decided yet
}

func newQueue(capacity Capacity, tell func(machine.RunID, string)) *queue {
	return &queue{capacity: capacity, tell: tell, lines: map[string]*line{}}
}

// free tells the first run in line for the agent, if there is one and no other
// is being told.
func (q *queue) free(key string) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil || l.telling || len(l.runs) == 0 {
		q.mu.Unlock()
		return
	}
	run := l.runs[0]
	l.runs = l.runs[1:]
	delete(l.has, run)
	l.telling = true
	q.mu.Unlock()
	q.tell(run, key)
}

// told says that the run that was told has decided. The next one is told if
// there is still room.
func (q *queue) told(key string) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil {
		q.mu.Unlock()
		return
	}
	l.telling = false
	q.mu.Unlock()
	if q.capacity.Slot(l.spec).Free > 0 {
		q.free(key)
	}
}

// wait puts a run in line for the agent, unless it stands there. A slot that
// freed between the run's decision and now is not missed.
func (q *queue) wait(run machine.RunID, spec AgentSpec) {
	q.mu.Lock()
	l := q.lines[spec.Key]
	if l == nil {
		l = &line{spec: spec, has: map[machine.RunID]bool{}}
		q.lines[spec.Key] = l
	}
	if l.has[run] {
		q.mu.Unlock()
		return
	}
	l.has[run] = true
	l.runs = append(l.runs, run)
	q.mu.Unlock()
	if q.capacity.Slot(spec).Free > 0 {
		q.free(spec.Key)
	}
}

// ahead returns how many runs stand in line for the agent.
func (q *queue) ahead(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	switch {
	case l == nil:
		return 0
	case l.telling:
		return len(l.runs) + 1
	}
	return len(l.runs)
}
