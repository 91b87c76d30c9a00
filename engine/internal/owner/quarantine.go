package owner

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
)

// Quarantine holds the runs that this engine does not work on, with the reasons.
type Quarantine struct {
	mu   sync.Mutex // protects the field below
	runs map[status.RunID]error
}

// Note records why a run is quarantined. It reports whether the reason is new.
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

// Gone removes a run from the quarantine.
func (t *Quarantine) Gone(run status.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, run)
}

// All returns the quarantined runs with the reasons.
func (t *Quarantine) All() map[status.RunID]error {
	t.mu.Lock()
	defer t.mu.Unlock()
	runs := make(map[status.RunID]error, len(t.runs))
	for run, err := range t.runs {
		runs[run] = err
	}
	return runs
}

// Count returns the number of quarantined runs.
func (t *Quarantine) Count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.runs)
}
