package owner

import (
	"container/heap"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/lists"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Timers records when runs in memory are due, so that the Supervisor wakes them at the exact
// time. The recorded time of a run may be too early. A run without a recorded time may be due, too:
// then the Supervisor's scan of the store finds the run.
type Timers struct {
	// Poke receives a hint when the earliest time has become earlier, or when the next tick must
	// come early. A hint may be lost.
	Poke chan struct{}

	mu    sync.Mutex // protects the fields below
	items timerHeap
	byRun map[status.RunID]*timer
}

type timer struct {
	run status.RunID
	// at is the time at which the run is woken. It is later than the run's due time only if the run
	// stays due after a decision.
	at    time.Time
	index int // index of this timer in the heap
}

func newTimers() *Timers {
	return &Timers{Poke: make(chan struct{}, 1), byRun: map[status.RunID]*timer{}}
}

// set records the parameter `at` as the time at which the run is due next. If the parameter `due`
// is false, set removes the recorded time. If the recorded time is earlier, set keeps it, which
// saves work. Then the run is woken too early, and its shard calls the method `set` again.
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
		due = false // the new time is ignored, because it is not earlier than the recorded time
	}
	first := due && len(a.items) > 0 && a.items[0].run == run
	a.mu.Unlock()
	if first {
		wait.Wake(a.Poke)
	}
}

// Take removes and returns the runs that are due at the time in the parameter `now`. It also
// returns how late the first of them is; 0 if no run is due. Later the shard of each run calls the
// method `set` again.
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

// Next returns the earliest recorded time. It returns false if no time is recorded.
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
	if lists.Oversized(cap(old), len(*h)) { // most of the memory was for timers that were removed
		*h = append(timerHeap(nil), *h...)
	}
	return it
}
