package storekit

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Rotation helps a store to show a list of runs of which a page at a time is
// asked for: after a full page the next one goes on behind it, so that each run
// has its turn however many stand before it (Tick.Inbox). Its zero value is
// ready. It is safe for concurrent use.
type Rotation struct {
	mu    sync.Mutex // protects following field
	after map[store.EngineID]status.RunID
}

// After returns the run behind which the next page of an engine begins; 0 = it
// is the first.
func (r *Rotation) After(engine store.EngineID) status.RunID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.after[engine]
}

// Shown notes the page that an engine was shown, ascending, of at most limit
// runs.
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
