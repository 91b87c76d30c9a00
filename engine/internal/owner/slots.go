package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A SlotQueue keeps, for each agent, the runs that wait for a slot. The first to wait is
// the first to get one. When a slot becomes free, only the first run is notified. The next
// run is notified after that run has decided, so that a hundred runs do not compete for one
// slot.
type SlotQueue struct {
	capacity invoke.Capacity // counts the free slots; nil = there is no limit, so no run waits
	tell     func(run status.RunID, key string)

	mu    sync.Mutex // protects following fields
	lines map[string]*waitList
}

type waitList struct {
	spec    invoke.AgentSpec
	runs    []status.RunID
	has     map[status.RunID]bool
	telling bool // a run was notified and has not decided yet
}

func newSlotQueue(capacity invoke.Capacity, tell func(status.RunID, string)) *SlotQueue {
	return &SlotQueue{capacity: capacity, tell: tell, lines: map[string]*waitList{}}
}

// Free notifies the first run in line for the agent that a slot is free. It does so only if
// the agent has a free slot and no other notified run is still deciding, because a run that
// is notified and finds no slot loses its place.
func (q *SlotQueue) Free(key string) {
	q.mu.Lock()
	l := q.lines[key]
	idle := l == nil || l.telling || len(l.runs) == 0
	q.mu.Unlock()
	if idle || q.capacity.Slot(l.spec).Free <= 0 {
		return
	}
	q.mu.Lock()
	if l.telling || len(l.runs) == 0 {
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

// told is called after the notified run has decided. It notifies the next run in line if a
// slot is still free.
func (q *SlotQueue) told(key string) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil {
		q.mu.Unlock()
		return
	}
	l.telling = false
	if len(l.runs) == 0 { // the next run that waits starts a new line
		delete(q.lines, key)
	}
	q.mu.Unlock()
	q.Free(key)
}

// wait puts a run in line for the agent, unless it is in line already. It then checks
// whether a slot became free since the run's decision.
func (q *SlotQueue) wait(run status.RunID, spec invoke.AgentSpec) {
	q.mu.Lock()
	l := q.lines[spec.Key]
	if l == nil {
		l = &waitList{spec: spec, has: map[status.RunID]bool{}}
		q.lines[spec.Key] = l
	}
	if l.has[run] {
		q.mu.Unlock()
		return
	}
	l.has[run] = true
	l.runs = append(l.runs, run)
	q.mu.Unlock()
	q.Free(spec.Key)
}

// ahead returns how many runs are in line for the agent.
func (q *SlotQueue) ahead(key string) int {
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

// Waiting returns how many runs are in line, for all agents together.
func (q *SlotQueue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, l := range q.lines {
		n += len(l.runs)
	}
	return n
}
