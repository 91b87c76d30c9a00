package owner

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A SlotQueue holds, for each agent, a queue of runs that wait for a slot. When a slot becomes
// free, the SlotQueue notifies only the first run in the queue. This run decides whether it uses
// the slot. Only then does the SlotQueue notify the next run, so that a hundred runs do not compete
// for one slot. The order in the queue follows from the priority of the first waiting step of each
// run, and from how long this step has waited.
type SlotQueue struct {
	capacity invoke.Capacity // counts the free slots; nil = there is no limit, so no run waits
	// notify notifies a run that the agent with this AgentSpec.Key may have a free slot.
	notify func(run status.RunID, key string)
	// waiting is the number of waiters in the queues of all agents. A run in two queues counts
	// twice.
	waiting atomic.Int64

	mu     sync.Mutex           // protects the fields below
	lines  map[string]*waitList // queues of the agents, by AgentSpec.Key
	joined uint64               // number of times that a run has joined a queue
}

// A waitList is the queue of one agent. It is a heap: the first waiter is notified next.
type waitList struct {
	spec       invoke.AgentSpec
	line       []*waiter
	of         map[status.RunID]*waiter // the waiters in the field `line`, by run
	priorities map[int]int              // number of waiters with each priority
	notified   bool                     // a run was notified and has not decided yet
}

// A waiter is a run in the queue.
type waiter struct {
	run status.RunID
	urgency
	joined uint64 // value of SlotQueue.joined when the run joined; orders waiters with the same rank
	at     int    // position in waitList.line
}

// An urgency determines the position of a run in the queue of an agent. Of all steps of the run
// that wait for this agent, the first one determines the urgency.
type urgency struct {
	rank     time.Time // the run with the earliest rank is first in the queue (line.Line.Rank)
	priority int       // priority of the step, from 0 to 100, without what it has gained by waiting
}

// Len is a method of heap.Interface.
func (l *waitList) Len() int { return len(l.line) }

// Less is a method of heap.Interface.
func (l *waitList) Less(i, j int) bool {
	a, b := l.line[i], l.line[j]
	if c := a.rank.Compare(b.rank); c != 0 {
		return c < 0
	}
	return a.joined < b.joined
}

// Swap is a method of heap.Interface.
func (l *waitList) Swap(i, j int) {
	l.line[i], l.line[j] = l.line[j], l.line[i]
	l.line[i].at, l.line[j].at = i, j
}

// Push is a method of heap.Interface.
func (l *waitList) Push(x any) {
	w := x.(*waiter)
	w.at = len(l.line)
	l.line = append(l.line, w)
}

// Pop is a method of heap.Interface.
func (l *waitList) Pop() any {
	last := len(l.line) - 1
	w := l.line[last]
	l.line[last] = nil
	l.line = l.line[:last]
	return w
}

// first removes the first run in the queue, and returns it.
func (l *waitList) first() status.RunID {
	w := heap.Pop(l).(*waiter)
	delete(l.of, w.run)
	l.count(w.priority, -1)
	return w.run
}

// count changes the number of waiters with a priority.
func (l *waitList) count(priority, by int) {
	if l.priorities[priority] += by; l.priorities[priority] == 0 {
		delete(l.priorities, priority)
	}
}

func newSlotQueue(capacity invoke.Capacity, notify func(status.RunID, string)) *SlotQueue {
	return &SlotQueue{capacity: capacity, notify: notify, lines: map[string]*waitList{}}
}

// Free notifies the first run in the queue for an agent that a slot is free, and removes the run
// from the queue. The parameter `key` is the agent's AgentSpec.Key. Free does nothing if the agent
// has no free slot, because the run would lose its position without getting a slot. Free also does
// nothing while a run that was notified earlier has not decided yet.
func (q *SlotQueue) Free(key string) {
	q.mu.Lock()
	l := q.lines[key]
	idle := l == nil || l.notified || len(l.line) == 0
	q.mu.Unlock()
	if idle || q.capacity.Slot(l.spec).Free <= 0 {
		return
	}
	q.mu.Lock()
	if l.notified || len(l.line) == 0 {
		q.mu.Unlock()
		return
	}
	run := l.first()
	q.waiting.Add(-1)
	l.notified = true
	q.mu.Unlock()
	q.notify(run, key)
}

// dismiss notifies all runs in the queue for an agent, and empties the queue. It is called if no
// call of the agent can start before a known time. Then the runs wait for this time, and not for a
// slot.
func (q *SlotQueue) dismiss(key string) {
	q.mu.Lock()
	var runs []status.RunID
	if l := q.lines[key]; l != nil {
		q.waiting.Add(-int64(len(l.line)))
		for len(l.line) > 0 {
			runs = append(runs, l.first())
		}
	}
	q.mu.Unlock()
	for _, run := range runs {
		q.notify(run, key)
	}
}

// decided is called after the notified run has decided. If a slot is still free, decided notifies
// the next run in the queue.
func (q *SlotQueue) decided(key string) {
	q.mu.Lock()
	l := q.lines[key]
	if l == nil {
		q.mu.Unlock()
		return
	}
	l.notified = false
	if len(l.line) == 0 { // the next run that waits makes a new queue
		delete(q.lines, key)
	}
	q.mu.Unlock()
	q.Free(key)
}

// wait puts a run into the queue for an agent, and notifies the first run in the queue if a slot
// has become free in the meantime. If the run is in the queue already, wait only moves it to the
// position that fits its urgency.
func (q *SlotQueue) wait(run status.RunID, spec invoke.AgentSpec, u urgency) {
	q.mu.Lock()
	l := q.lines[spec.Key]
	if l == nil {
		l = &waitList{spec: spec, of: map[status.RunID]*waiter{}, priorities: map[int]int{}}
		q.lines[spec.Key] = l
	}
	if w := l.of[run]; w != nil {
		if w.urgency != u {
			l.count(w.priority, -1)
			l.count(u.priority, 1)
			w.urgency = u
			heap.Fix(l, w.at)
		}
		q.mu.Unlock()
		return
	}
	q.joined++
	w := &waiter{run: run, urgency: u, joined: q.joined}
	l.of[run] = w
	l.count(u.priority, 1)
	heap.Push(l, w)
	q.waiting.Add(1)
	q.mu.Unlock()
	q.Free(spec.Key)
}

// highest returns the highest priority of the runs in the queue for an agent; 0 if no run is in the
// queue. It takes no lock while no run waits for any agent.
func (q *SlotQueue) highest(key string) int {
	if q.waiting.Load() == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	most := 0
	if l := q.lines[key]; l != nil {
		for p := range l.priorities {
			most = max(most, p)
		}
	}
	return most
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
	case l.notified:
		return len(l.line) + 1
	}
	return len(l.line)
}

// Waiting returns how many runs are in the queues of all agents together. A run that waits for
// several agents counts once for each of them.
func (q *SlotQueue) Waiting() int { return int(q.waiting.Load()) }
