package owner

import (
	"container/heap"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Timers knows for each cached run a time before which nothing of it is due,
// nearly always when it is. It lets the Supervisor
// wake at the exact time for everything this process started itself; what is
// missing here is found by the store's scan.
type Timers struct {
	Poke chan struct{} // tells that the earliest time moved forward; lossy

	mu    sync.Mutex // protects following fields
	items timerHeap
	byRun map[status.RunID]*timer
}

type timer struct {
	run   status.RunID
	at    time.Time // not later than the run is due
	index int
}

func newTimers() *Timers {
	return &Timers{Poke: make(chan struct{}, 1), byRun: map[status.RunID]*timer{}}
}

// set notes when the run is due next, or that it is not if due is false. A later
// time than the one noted is not noted: a run that is woken too early sets it again,
// and most runs have moved on long before.
func (a *Timers) set(run status.RunID, at time.Time, due bool) {
	a.mu.Lock()
	it := a.byRun[run]
	switch {
	case !due && it == nil:
	case !due:
		heap.Remove(&a.items, it.index)
		delete(a.byRun, run)
	case it == nil:
		it = &timer{run: run, at: at}
		a.byRun[run] = it
		heap.Push(&a.items, it)
	case at.Before(it.at):
		it.at = at
		heap.Fix(&a.items, it.index)
	default:
		due = false // it is not earlier than what is known
	}
	first := due && len(a.items) > 0 && a.items[0].run == run
	a.mu.Unlock()
	if first {
		wait.Wake(a.Poke)
	}
}

// Take removes and returns the runs due at now, and for how long the first has
// been. The shard that handles a run notes it again with its next time, so a run is
// not returned twice for one time.
func (a *Timers) Take(now time.Time) ([]status.RunID, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var runs []status.RunID
	var lag time.Duration
	for len(a.items) > 0 && !a.items[0].at.After(now) {
		it := heap.Pop(&a.items).(*timer)
		delete(a.byRun, it.run)
		runs = append(runs, it.run)
		lag = max(lag, now.Sub(it.at))
	}
	return runs, lag
}

// Has reports whether the run's next time is noted.
func (a *Timers) Has(run status.RunID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byRun[run] != nil
}

// Next returns the earliest time noted.
func (a *Timers) Next() (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.items) == 0 {
		return time.Time{}, false
	}
	return a.items[0].at, true
}

type timerHeap []*timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	it := x.(*timer)
	it.index = len(*h)
	*h = append(*h, it)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	if lists.Roomy(cap(old), len(*h)) { // from a burst that is over
		*h = append(timerHeap(nil), *h...)
	}
	return it
}
