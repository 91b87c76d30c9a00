package storekit

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Rotation helps a store that returns a list of runs page by page. After a full page, the
// next page continues behind it. So each run has its turn, however many runs come before it
// (Tick.Inbox). The zero value is ready to use. It is safe for concurrent use.
type Rotation struct {
	mu    sync.Mutex // protects following field
	after map[store.EngineID]status.RunID
}

// After returns the run behind which the next page of an engine begins; 0 = the first page.
func (r *Rotation) After(engine store.EngineID) status.RunID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.after[engine]
}

// Shown records the page that an engine has received. The page is ascending and has at most
// limit runs.
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
