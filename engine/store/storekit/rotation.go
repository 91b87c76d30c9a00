package storekit

import (
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Rotation remembers, for each engine, where the engine's next page of a list of runs
// begins (Tick.Inbox). After a full page, the next page begins after the last run of the
// full page. So an engine gets each run at some time, even if the list is much longer than
// a page. The zero value is ready to use. A Rotation is safe for concurrent use.
type Rotation struct {
	mu    sync.Mutex // protects the field below
	after map[store.EngineID]status.RunID
}

// After returns the last run of the engine's most recent page, if that page was full. The next page
// begins after this run. If After returns 0, the next page begins with the first run of the list.
func (r *Rotation) After(engine store.EngineID) status.RunID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.after[engine]
}

// Shown records that an engine has received a page. The runs of the page must be sorted by
// id. The parameter `limit` is the number of runs in a full page. After a page with fewer runs,
// the engine's next page begins with the first run of the list.
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
