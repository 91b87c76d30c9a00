package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
)

// Quarantine remembers runs that cannot be worked on here.
type Quarantine struct {
	mu   sync.Mutex // protects following field
	runs map[status.RunID]error
}

// Note remembers why a run is left alone, and reports whether that is news.
func (t *Quarantine) Note(run status.RunID, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == nil {
		t.runs = map[status.RunID]error{}
	}
	old := t.runs[run]
	t.runs[run] = err
	return old == nil || old.Error() != err.Error()
}

// Gone forgets a run that is over.
func (t *Quarantine) Gone(run status.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, run)
}

// All returns the runs with the reasons.
func (t *Quarantine) All() map[status.RunID]error {
	t.mu.Lock()
	defer t.mu.Unlock()
	runs := make(map[status.RunID]error, len(t.runs))
	for run, err := range t.runs {
		runs[run] = err
	}
	return runs
}

// Count returns how many runs are left alone.
func (t *Quarantine) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.runs)
}
