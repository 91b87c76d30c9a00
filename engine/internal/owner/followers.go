package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Followers wakes the goroutines of this process that follow a run. Then they read the
// changes of the run from the store at once, and not only after a pause.
type Followers struct {
	mu    sync.Mutex // protects the field below
	hints map[status.RunID]map[chan struct{}]bool
}

// Follow returns a channel that receives a hint after this engine has committed decisions on the
// run. A row of another engine, or a row without decisions, gives no hint. Several hints may be
// merged into one. The caller must call the returned function when the caller stops following the
// run.
func (f *Followers) Follow(run status.RunID) (<-chan struct{}, func()) {
	hint := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hints == nil {
		f.hints = map[status.RunID]map[chan struct{}]bool{}
	}
	if f.hints[run] == nil {
		f.hints[run] = map[chan struct{}]bool{}
	}
	f.hints[run][hint] = true
	return hint, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.hints[run], hint)
		if len(f.hints[run]) == 0 {
			delete(f.hints, run)
		}
	}
}

// Notify sends a hint to all followers of the run.
func (f *Followers) Notify(run status.RunID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for hint := range f.hints[run] {
		wait.Wake(hint)
	}
}
