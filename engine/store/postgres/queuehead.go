package postgres

import (
	"database/sql"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A scan for runs without an owner visits the entries of all runs that were claimed before, until
// vacuum removes them, and longer while any session holds a snapshot (see minima). So a scan does not
// begin at the first entry. It begins at the earlier of two times: the first run that the last scan
// found, and headTrail before the last scan. Any engine or program may add runs to the queue, so the
// store does not know what was added since then. But the place of a new run in the queue is at most 10
// minutes before its acceptance (the priority 100), and its commit follows within the time that a
// statement may take. For runs that an engine has given back, and that have an earlier place, a whole
// scan is made every headWhole.
const (
	headTrail = 12 * time.Minute
	headWhole = 5 * time.Second
)

// A queueHead holds where the next scan for runs without an owner begins.
type queueHead struct {
	mu    sync.Mutex // protects following fields
	at    time.Time  // next_check at which the next scan begins, by the store's clock; zero = at the first entry
	whole time.Time  // time of the last scan that began at the first entry, by this process's clock
}

// next returns the next_check at which the coming scan begins. If the result is not valid (NULL), the
// scan reads the whole index. The parameter now is the time of this process.
func (q *queueHead) next(now time.Time) sql.NullTime {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at.IsZero() || now.Sub(q.whole) >= headWhole {
		return sql.NullTime{}
	}
	return sql.NullTime{Time: q.at, Valid: true}
}

// scanned notes that a scan was committed. The parameter now is the time of this process, and at is
// the store's time of the scan. The parameter found holds the runs that the scan found, sorted by
// next_check.
func (q *queueHead) scanned(now time.Time, from sql.NullTime, at time.Time, found []store.DueRun) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !from.Valid {
		q.whole = now
	}
	q.at = at.Add(-headTrail)
	if len(found) > 0 && found[0].NextCheck.Before(q.at) {
		q.at = below(found[0].NextCheck)
	}
}
