package memory

import (
	"cmp"
	"container/heap"
	"time"
)

// A queue holds the open runs of one owner, the run with the earliest next_check first. So
// a tick reads only runs that are due, not all runs.
type queue struct {
	runs []*run // a heap; run.place is the index of a run
}

// before reports whether a run is due before another one.
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
	q.runs[i].place, q.runs[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(r any) {
	r.(*run).place = len(q.runs)
	q.runs = append(q.runs, r.(*run))
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	n := len(q.runs) - 1
	r := q.runs[n]
	q.runs[n], q.runs = nil, q.runs[:n]
	return r
}

// due returns up to limit runs whose next_check has passed at the time at, in order. They
// stay in the queue.
func (q *queue) due(at time.Time, limit int) []*run {
	if q == nil {
		return nil
	}
	var out []*run
	// In a heap, a run can only be due if its parent is due.
	next := &places{q: q}
	next.look(0, at)
	for len(out) < limit && next.Len() > 0 {
		i := heap.Pop(next).(int)
		out = append(out, q.runs[i])
		next.look(2*i+1, at)
		next.look(2*i+2, at)
	}
	return out
}

// places is a heap of indexes in a queue, used to visit the queue in order.
type places struct {
	q  *queue
	at []int
}

// look adds the index i of a run in the queue, if this run is due at the time at.
func (p *places) look(i int, at time.Time) {
	if i < len(p.q.runs) && !p.q.runs[i].head.NextCheck.After(at) {
		heap.Push(p, i)
	}
}

// Len implements heap.Interface.
func (p *places) Len() int { return len(p.at) }

// Less implements heap.Interface.
func (p *places) Less(i, j int) bool { return p.q.runs[p.at[i]].before(p.q.runs[p.at[j]]) }

// Swap implements heap.Interface.
func (p *places) Swap(i, j int) { p.at[i], p.at[j] = p.at[j], p.at[i] }

// Push implements heap.Interface.
func (p *places) Push(i any) { p.at = append(p.at, i.(int)) }

// Pop implements heap.Interface.
func (p *places) Pop() any {
	n := len(p.at) - 1
	i := p.at[n]
	p.at = p.at[:n]
	return i
}

// queueLocked puts a run into the queue of its present owner, at the place of its present
// next_check. A run that has ended is in no queue.
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
		heap.Fix(q, r.place)
		return
	case r.queue != nil:
		s.unqueueLocked(r)
	}
	if q != nil {
		heap.Push(q, r)
		r.queue, r.owner = q, r.head.Owner
	}
}

// unqueueLocked removes a run from its queue.
func (s *state) unqueueLocked(r *run) {
	heap.Remove(r.queue, r.place)
	if r.queue.Len() == 0 {
		delete(s.open, r.owner)
	}
	r.queue = nil
}
