package engine

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/internal/wait"
)

// wakePause is the shortest pause between two wake-ups because of ticks.
const wakePause = time.Second

// A quiet knows from ticks whether the store has work that starts runs or delivers replies (see
// store.Tick). While there is none, the goroutines that look for such work make no queries of their
// own. So an idle engine sends only its ticks.
type quiet struct {
	most time.Duration // how long the answer of a tick counts

	mu     sync.Mutex // protects following fields
	told   time.Time  // time of the last tick that has found nothing; zero = the last one has found work
	woken  time.Time  // time of the last wake-up
	wakers []func()   // wake the goroutines that look for work
}

// looked notes what a tick has found. If there is work, it wakes the goroutines that look for it.
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
		return // if they have left work, the next tick wakes them again
	}
	q.woken = now
	for _, wake := range q.wakers {
		wake()
	}
}

// is reports whether a tick has found nothing a short time ago.
func (q *quiet) is() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.told.IsZero() && time.Since(q.told) < q.most
}

// wakes adds what looked wakes.
func (q *quiet) wakes(all ...func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakers = append(q.wakers, all...)
}

// waker returns a function that sends a hint to a channel.
func waker(c chan struct{}) func() { return func() { wait.Wake(c) } }
