package storekit

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Rotation remembers for each engine where the next page of a list of runs begins
// (Tick.Inbox). After a full page, the next page begins after its last run. So each run is
// returned at some time, even if many runs come before it. The zero value is ready to use.
// It is safe for concurrent use.
type Rotation struct {
	mu    sync.Mutex // protects following field
	after map[store.EngineID]status.RunID
}

// After returns the run after which the next page of an engine begins; 0 = begin with the
// first run.
func (r *Rotation) After(engine store.EngineID) status.RunID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.after[engine]
}

// Shown records the page that an engine has received. The runs are ascending, and there are
// at most limit of them.
func (r *Rotation) Shown(engine store.EngineID, page []status.RunID, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(page) == 0 || len(page) < limit {
		delete(r.after, engine)
		return
	}
	if r.after == nil {
		r.after = map[store.EngineID]status.RunID{}
	}
	r.after[engine] = page[len(page)-1]
}
