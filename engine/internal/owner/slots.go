package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A SlotQueue holds, for each agent, a queue of runs that wait for a slot. When a slot becomes
// free, the SlotQueue notifies only the first run in the queue. It notifies the next run after the
// first one has decided. So a hundred runs do not compete for one slot.
type SlotQueue struct {
	capacity invoke.Capacity // counts the free slots; nil = there is no limit, so no run waits
	// tell notifies a run that the agent with this AgentSpec.Key may have a free slot.
	tell func(run status.RunID, key string)

	mu    sync.Mutex           // protects following fields
	lines map[string]*waitList // lines of the agents, by AgentSpec.Key
}

// A waitList is the queue of one agent.
type waitList struct {
	spec    invoke.AgentSpec
	runs    []status.RunID        // runs in the queue; the first is notified next
	has     map[status.RunID]bool // set of the runs in the field `runs`
	telling bool                  // a run was notified and has not decided yet
}

func newSlotQueue(capacity invoke.Capacity, tell func(status.RunID, string)) *SlotQueue {
	return &SlotQueue{capacity: capacity, tell: tell, lines: map[string]*waitList{}}
}

// Free notifies the first run in the queue for an agent that a slot is free, and removes the run
// from the queue. It does nothing if the agent has no free slot, because the run would lose its
// position without getting a slot. It also does nothing if a run that was notified before has not
// decided since then. The parameter `key` is the agent's AgentSpec.Key.
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

// dismiss notifies all runs in the queue for an agent, and empties the queue. It is called when no
// call of the agent can start before a known time. Then each run waits for this time, and not for a
// slot.
func (q *SlotQueue) dismiss(key string) {
	q.mu.Lock()
	var runs []status.RunID
	if l := q.lines[key]; l != nil {
		runs, l.runs = l.runs, nil
		clear(l.has)
	}
	q.mu.Unlock()
	for _, run := range runs {
		q.tell(run, key)
	}
}

// told is called after the notified run has decided. If a slot is still free, told notifies the
// next run in the queue.
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

// wait puts a run into the queue for an agent, unless the run is in the queue already. Then it
// notifies the first run in the queue if a slot has become free in the meantime.
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

// ahead returns how many runs are in the queue for an agent. A notified run that has not decided
// yet counts, too.
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

// Waiting returns how many runs are in the queues of all agents together.
func (q *SlotQueue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, l := range q.lines {
		n += len(l.runs)
	}
	return n
}
