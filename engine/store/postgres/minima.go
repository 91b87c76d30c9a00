package postgres

import (
	"database/sql"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// The index run_active keeps the entries of ended runs until vacuum removes them. Vacuum cannot
// remove them while any session has an older transaction open. A whole scan begins at the first
// entry of the index, so it visits every such entry. With 500,000 entries that takes 30 to 250 ms
// of the server's time, five times a second. So most scans begin later: at the earliest of three
// times. These are a minute before the last scan, the earliest next_check that the last scan found,
// and the earliest next_check that was committed since then. No next_check is missed: only the
// writers of a run's owner commit the next_check of the run, and the method `lower` records it.
// Every tenth scan is a whole scan. But while a transaction stays open for long, whole scans become
// slow. Then they are made less often, so that they take at most a twentieth of the time
// (wholeShare).
const (
	minimumTrail = time.Minute
	minimumSkips = 10
	wholeShare   = 20
)

// A minima holds, for each engine of a store, where the engine's next scan begins.
type minima struct {
	mu sync.Mutex // protects the field below
	of map[store.EngineID]minimum
}

// The type minimum says where the next scan of one engine begins. It also holds the values from
// which the beginning is computed.
type minimum struct {
	at      time.Time // next scan begins after this next_check; zero = at the first entry
	lowered time.Time // just before the earliest next_check sent since the last scan; zero = none
	scans   int       // number of scans since the last scan that began at the first entry
	costly  time.Time // no whole scan is made before this time, by this process's clock
}

// next returns a next_check: the engine's next scan reads only entries of the index with a later
// one. If the result is not valid (NULL), the scan reads the whole index.
func (l *minima) next(id store.EngineID) sql.NullTime {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[id]
	if !m.lowered.IsZero() && m.lowered.Before(m.at) {
		m.at = m.lowered
	}
	m.lowered = time.Time{}
	l.set(id, m)
	if m.at.IsZero() || m.scans+1 >= minimumSkips && !time.Now().Before(m.costly) {
		return sql.NullTime{}
	}
	return sql.NullTime{Time: m.at, Valid: true}
}

// took computes when the next whole scan may be made. The parameter `d` is the duration of the scan
// that has ended. The parameter `from` is what the method `next` returned for that scan. If `from`
// is valid, that scan was not whole, and took does nothing.
func (l *minima) took(id store.EngineID, from sql.NullTime, d time.Duration) {
	if from.Valid {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[id]
	m.costly = time.Now().Add(wholeShare * d)
	l.set(id, m)
}

// lower records the earliest next_check that an engine's writer has sent in a batch. If the batch
// is committed during a scan, the next scan begins before this value.
func (l *minima) lower(id store.EngineID, items []store.Transition) {
	var first time.Time
	for i := range items {
		if t := items[i].NextCheck; !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if first.IsZero() {
		return
	}
	first = below(first)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.of[id]; m.lowered.IsZero() || first.Before(m.lowered) {
		m.lowered = first
		l.set(id, m)
	}
}

func (l *minima) set(id store.EngineID, m minimum) {
	if l.of == nil {
		l.of = make(map[store.EngineID]minimum)
	}
	l.of[id] = m
}

// scanned notes that a scan of an engine was committed, and computes where the next scan
// begins. The parameter `due` holds the runs that the scan found, sorted by next_check.
func (l *minima) scanned(id store.EngineID, from sql.NullTime, now time.Time, due []store.DueRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[id]
	if from.Valid {
		m.scans++
	} else {
		m.scans = 0
	}
	m.at = now.Add(-minimumTrail)
	if len(due) > 0 && due[0].NextCheck.Before(m.at) {
		m.at = below(due[0].NextCheck)
	}
	l.set(id, m)
}

// below returns the latest time before t that the server can store; the server stores whole
// microseconds.
func below(t time.Time) time.Time { return t.Truncate(time.Microsecond).Add(-time.Microsecond) }

// forget removes the data about an engine that has ended.
func (l *minima) forget(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, id)
}

// A whole scan for runs without an owner begins at the first entry of the index. It visits the
// entries of all runs that were claimed before, until vacuum removes these entries (see the comment
// on minimumTrail). So most scans begin later: at the earlier of two times. These are the
// next_check of the first run that the last scan found, and the time headTrail before the last
// scan. Any engine or program may add runs to the queue, so the store does not know which runs were
// added since then. But the next_check of a new run is at most 10 minutes before the time at which
// the run was accepted (with priority 100), and the commit follows within the time that a statement
// may take. A run that an engine has given back may have an earlier next_check. To find such runs,
// a whole scan is made every headWhole. If whole scans are slow, they are made less often
// (wholeShare).
//
// While a transaction stays open for long, the index may contain hundreds of thousands of entries
// of claimed runs for the last headTrail alone. Suppose that headSlow scans, one after the other,
// visit all these entries, and that each of them takes headCostly or longer. Then the next scans
// begin later: at the first run that the scan before them has found. This ends when a scan finds no
// run, or after wholeShare times the duration of the last slow scan. During this time, a new run
// waits if its priority is higher than the priority of every run in the queue.
const (
	headTrail  = 12 * time.Minute
	headWhole  = 5 * time.Second
	headCostly = 20 * time.Millisecond
	headSlow   = 5
)

// A queueHead holds where the next scan for runs without an owner begins. Times of runs are by the
// store's clock, and times of scans by this process's clock.
type queueHead struct {
	mu    sync.Mutex // protects the fields below
	at    time.Time  // next_check at which the next scan begins; zero = at the first entry
	whole time.Time  // time of the next scan that begins at the first entry
	// A time just before the next_check of the first run that the last scan found.
	near time.Time
	// Until the time in the field `costly`, a scan begins at `near` or at `at`: at the later one.
	costly time.Time
	// Number of slow scans, one after the other. Only scans that began at `at` or earlier count.
	slow int
}

// next returns the next_check at which the next scan begins. If the result is not valid (NULL), the
// scan reads the whole index. The parameter `now` is the time by this process's clock.
func (q *queueHead) next(now time.Time) sql.NullTime {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.at.IsZero() || !now.Before(q.whole):
		return sql.NullTime{}
	case now.Before(q.costly) && q.near.After(q.at):
		return sql.NullTime{Time: q.near, Valid: true}
	}
	return sql.NullTime{Time: q.at, Valid: true}
}

// scanned notes that a scan was committed. The parameter `began` is the time at which the scan
// began, by this process's clock. The parameter `at` is the same time by the store's clock. The
// parameter `took` is the duration of the scan. The parameter `found` holds the runs that the scan
// found, sorted by next_check.
func (q *queueHead) scanned(began time.Time, took time.Duration, from sql.NullTime, at time.Time, found []store.DueRun) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !from.Valid {
		q.whole = began.Add(max(headWhole, wholeShare*took))
	}
	q.at = at.Add(-headTrail)
	wide := !from.Valid || !from.Time.After(q.at)
	if len(found) == 0 {
		q.costly, q.slow = time.Time{}, 0
		return
	}
	q.near = below(found[0].NextCheck)
	if !wide {
		return
	}
	if q.slow++; took < headCostly {
		q.slow = 0
	}
	if q.slow >= headSlow {
		q.costly = began.Add(wholeShare * took)
	}
	if q.near.Before(q.at) {
		q.at = q.near
	}
}
