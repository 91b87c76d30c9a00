package postgres

import (
	"database/sql"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// The entries of runs that have ended stay in run_active until vacuum removes
// them, or for as long as any session holds a snapshot open. A scan of all bounds
// that have passed visits every one of them: 500,000 take it 30 to 250 ms of the
// server's time, five times a second. So a scan begins a minute before the
// newest one, or at what that one found, or at the earliest bound committed
// since: only the owner's writers commit bounds of its runs. Every tenth scan
// begins at the first bound all the same.
const (
	lowTrail = time.Minute
	lowSkips = 10
)

// minima are where the scans of a store's engines begin.
type minima struct {
	mu sync.Mutex // protects following field
	of map[store.EngineID]low
}

// A low is where the next scan of one engine begins.
type low struct {
	at      time.Time // zero = at the first bound
	lowered time.Time // the earliest bound committed since the last scan began; zero = none was
	scans   int       // since the last one that began at the first bound
}

// next returns where an engine's next scan begins; not valid = at the first
// bound.
func (l *minima) next(id store.EngineID) sql.NullTime {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[id]
	if !m.lowered.IsZero() && m.lowered.Before(m.at) {
		m.at = m.lowered
	}
	m.lowered = time.Time{}
	l.set(id, m)
	if m.at.IsZero() || m.scans+1 >= lowSkips {
		return sql.NullTime{}
	}
	return sql.NullTime{Time: m.at, Valid: true}
}

// lower notes the bounds that an engine's writer has sent. What lands while a
// scan is under way counts for the next one.
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

func (l *minima) set(id store.EngineID, m low) {
	if l.of == nil {
		l.of = make(map[store.EngineID]low)
	}
	l.of[id] = m
}

// scanned notes that an engine's scan has been committed, and what it found, the
// earliest first.
func (l *minima) scanned(id store.EngineID, from sql.NullTime, now time.Time, due []store.DueRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.of[id]
	if from.Valid {
		m.scans++
	} else {
		m.scans = 0
	}
	m.at = now.Add(-lowTrail)
	if len(due) > 0 && due[0].NextCheck.Before(m.at) {
		m.at = below(due[0].NextCheck)
	}
	l.set(id, m)
}

// below is the last moment before t that the server knows.
func below(t time.Time) time.Time { return t.Truncate(time.Microsecond).Add(-time.Microsecond) }

// forget drops what is known of an engine that is no more.
func (l *minima) forget(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, id)
}
