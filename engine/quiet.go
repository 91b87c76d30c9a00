package engine

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
)

// wakePause is the shortest pause between two wake-ups because of ticks.
const wakePause = time.Second

// The type quiet remembers whether ticks find work. A tick renews the lease, and also looks for work
// that starts runs or delivers replies (store.Tick). While ticks find none, the goroutines for such
// work make no queries of their own. So an idle engine sends only its ticks.
type quiet struct {
	most time.Duration // how long the finding of a tick is valid

	mu     sync.Mutex // protects the fields below
	told   time.Time  // time of the last tick, if it found no work; otherwise zero
	woken  time.Time  // time of the last wake-up
	wakers []func()   // wake the goroutines that look for work
}

// looked notes whether a tick has found work. If so, it wakes the goroutines that do this work.
func (q *quiet) looked(found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if !found {
		q.told = now
		return
	}
	q.told = time.Time{}
	if now.Sub(q.woken) < wakePause {
		return // they were woken just before; if work is left, the next tick wakes them again
	}
	q.woken = now
	for _, wake := range q.wakers {
		wake()
	}
}

// is reports whether the last tick found no work, and this finding is still valid.
func (q *quiet) is() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.told.IsZero() && time.Since(q.told) < q.most
}

// wakes adds functions that the method `looked` calls to wake goroutines.
func (q *quiet) wakes(all ...func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakers = append(q.wakers, all...)
}

// waker returns a function that sends a hint to a channel.
func waker(c chan struct{}) func() { return func() { wait.Wake(c) } }
