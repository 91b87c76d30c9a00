package owner

import (
	"container/heap"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Timers holds, for each run in memory, the time at which the run is due, or an earlier
// time. The Supervisor uses it to wake at the exact time. A run that is missing here is
// found by the Supervisor's scan of the store.
type Timers struct {
	Poke chan struct{} // receives a hint when the earliest time has become earlier; a hint may be lost

	mu    sync.Mutex // protects following fields
	items timerHeap
	byRun map[status.RunID]*timer
}

type timer struct {
	run   status.RunID
	at    time.Time // time at which the run is woken; never later than the time at which it is due
	index int
}

func newTimers() *Timers {
	return &Timers{Poke: make(chan struct{}, 1), byRun: map[status.RunID]*timer{}}
}

// set records the time at which the run is due next. If due is false, it removes the run's
// time. It ignores a time that is later than the recorded one, which saves work: then the
// run is woken too early, and its shard calls set again.
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
		due = false // the new time is not earlier than the recorded one, so it is ignored
	}
	first := due && len(a.items) > 0 && a.items[0].run == run
	a.mu.Unlock()
	if first {
		wait.Wake(a.Poke)
	}
}

// Take removes and returns the runs that are due at now. It also returns how late the
// earliest of them is. The shard that handles a run records its next time, so no run is
// returned twice for the same time.
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

// Has reports whether a time is recorded for the run.
func (a *Timers) Has(run status.RunID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byRun[run] != nil
}

// Next returns the earliest recorded time.
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
	if lists.Roomy(cap(old), len(*h)) { // most of the memory was for timers that are gone
		*h = append(timerHeap(nil), *h...)
	}
	return it
}
