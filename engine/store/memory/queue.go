package memory

import (
	"cmp"
	"container/heap"
	"time"
)

// A queue holds the open runs of one owner as a heap: the run with the earliest next_check
// is the first. So a tick reads only the runs that are due, and not all runs.
type queue struct {
	runs []*run // the heap; run.index is the index of a run in this list
}

// before reports whether the run r must come earlier in a queue than the run in the parameter
// `other`: r has an earlier next_check, or the same next_check and a smaller id.
func (r *run) before(other *run) bool {
	return cmp.Or(r.head.NextCheck.Compare(other.head.NextCheck), cmp.Compare(r.head.Run, other.head.Run)) < 0
}

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.runs) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool { return q.runs[i].before(q.runs[j]) }

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	q.runs[i], q.runs[j] = q.runs[j], q.runs[i]
	q.runs[i].index, q.runs[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(r any) {
	r.(*run).index = len(q.runs)
	q.runs = append(q.runs, r.(*run))
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	n := len(q.runs) - 1
	r := q.runs[n]
	q.runs[n], q.runs = nil, q.runs[:n]
	return r
}

// due returns the runs whose next_check is not later than the parameter `at`, earliest first.
// The parameter `limit` is the largest number of runs. The runs stay in the queue.
func (q *queue) due(at time.Time, limit int) []*run {
	if q == nil {
		return nil
	}
	var out []*run
	// A run can be due only if its parent in the heap is due, because the parent's
	// next_check is not later.
	next := &dueHeap{q: q}
	next.add(0, at)
	for len(out) < limit && next.Len() > 0 {
		i := heap.Pop(next).(int)
		out = append(out, q.runs[i])
		next.add(2*i+1, at)
		next.add(2*i+2, at)
	}
	return out
}

// dueHeap is a heap of indexes of runs in a queue. The method `due` uses it to visit runs in
// the order of their next_check.
type dueHeap struct {
	q  *queue
	at []int
}

// add adds the index i to the heap of indexes. It does nothing if the queue has no run with this
// index, or if the next_check of this run is later than the parameter `at`.
func (p *dueHeap) add(i int, at time.Time) {
	if i < len(p.q.runs) && !p.q.runs[i].head.NextCheck.After(at) {
		heap.Push(p, i)
	}
}

// Len implements heap.Interface.
func (p *dueHeap) Len() int { return len(p.at) }

// Less implements heap.Interface.
func (p *dueHeap) Less(i, j int) bool { return p.q.runs[p.at[i]].before(p.q.runs[p.at[j]]) }

// Swap implements heap.Interface.
func (p *dueHeap) Swap(i, j int) { p.at[i], p.at[j] = p.at[j], p.at[i] }

// Push implements heap.Interface.
func (p *dueHeap) Push(i any) { p.at = append(p.at, i.(int)) }

// Pop implements heap.Interface.
func (p *dueHeap) Pop() any {
	n := len(p.at) - 1
	i := p.at[n]
	p.at = p.at[:n]
	return i
}

// queueLocked puts a run into the queue of its present owner, at the position of its present
// next_check. If the run has ended, queueLocked removes the run from its queue.
func (s *state) queueLocked(r *run) {
	var q *queue
	if !r.head.State.Final() {
		if q = s.open[r.head.Owner]; q == nil {
			q = new(queue)
			s.open[r.head.Owner] = q
		}
	}
	switch {
	case r.queue == q && q != nil:
		heap.Fix(q, r.index)
		return
	case r.queue != nil:
		s.unqueueLocked(r)
	}
	if q != nil {
		heap.Push(q, r)
		r.queue, r.owner = q, r.head.Owner
	}
}

func (s *state) unqueueLocked(r *run) {
	heap.Remove(r.queue, r.index)
	if r.queue.Len() == 0 {
		delete(s.open, r.owner)
	}
	r.queue = nil
}
