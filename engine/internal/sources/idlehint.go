package sources

import (
	"sync"
	"time"
)

// wakePause is the shortest pause between two wake-ups because of ticks.
const wakePause = time.Second

// An IdleHint remembers whether ticks find work. A tick renews the lease, and also looks for work
// that starts runs or delivers replies (store.Tick). While ticks find none, the goroutines for such
// work make no queries of their own. So an idle engine sends only its ticks.
type IdleHint struct {
	most time.Duration // how long the finding of a tick is valid

	mu        sync.Mutex // protects the fields below
	foundNone time.Time  // time of the last tick, if it found no work; otherwise zero
	woken     time.Time  // time of the last wake-up
	wakers    []func()   // wake the goroutines that look for work
}

// NewIdleHint returns an IdleHint. The parameter `most` says how long the finding of a tick is
// valid.
func NewIdleHint(most time.Duration) *IdleHint { return &IdleHint{most: most} }

// Looked notes whether a tick has found work. If so, it wakes the goroutines that do this work.
func (h *IdleHint) Looked(found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !found {
		h.foundNone = now
		return
	}
	h.foundNone = time.Time{}
	if now.Sub(h.woken) < wakePause {
		return // they were woken just before; if work is left, the next tick wakes them again
	}
	h.woken = now
	for _, wake := range h.wakers {
		wake()
	}
}

// NoWork reports whether the last tick found no work, and this finding is still valid.
func (h *IdleHint) NoWork() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.foundNone.IsZero() && time.Since(h.foundNone) < h.most
}

// Wakes adds functions that the method Looked calls to wake goroutines.
func (h *IdleHint) Wakes(all ...func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakers = append(h.wakers, all...)
}
