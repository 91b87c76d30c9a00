package owner

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// MaxLeft is the largest number of runs in a backoff set. A full set is emptied before
// another run is added. Then scans consider all runs again.
const MaxLeft = 100000

// A backoffSet holds runs that this engine has found and cannot continue: an agent is
// missing, a newer version wrote them, or they wait for a person. This engine skips them in
// its scans for a while; other engines still consider them. It is safe for concurrent use.
type backoffSet struct {
	// restFor is the longest time for which scans skip a run that waits for a person. Later
	// they look at it again, because a hint about a message may be lost. 0 = scans skip such a
	// run until it is due.
	restFor time.Duration

	mu    sync.Mutex // protects following fields
	runs  map[status.RunID]backoff
	wakes uint64 // how many times WakeResting was called
}

type backoff struct {
	until time.Time // end of the backoff, on the store's clock
	pause time.Duration
	rests bool // the run only waits for a person: nothing is wrong with it
	// others is true if the run is in the set only because this engine claims no runs on its
	// own (Options.Alone). This engine skips messages to the run, but may take the run over.
	others bool
	since  time.Time // time at which the run was added, by this process's clock; only set if rests is true
	// unstaffed is true if the agents of the run are missing here. Messages to the run can
	// be decided without them, but this engine skips the messages until ignoredUntil.
	unstaffed    bool
	ignoredUntil time.Time // store time; zero = messages are not skipped
	reported     int       // number of journal rows at the last alert about the run; 0 = no alert
}

// Add puts a run into the backoff set. The first time it stays there for pause; each
// further time it stays twice as long as the last time, up to 20 times pause.
func (s *backoffSet) Add(run status.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := min(max(pause, 2*s.runs[run].pause), 20*pause)
	s.putLocked(run, backoff{until: now.Add(d), pause: d})
}

// addForOthers puts a run into the backoff set because this engine claims no runs on its
// own (Options.Alone).
func (s *backoffSet) addForOthers(run status.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(run, backoff{until: now.Add(pause), others: true})
}

// AddUnstaffed adds a run whose agents are missing here. The backoff is as long as with
// Add, but it ends at the time tell if that is earlier: an alert or a decision about the
// run is due then. This engine still decides messages to the run. If vain is true, it has
// just tried to decide them, and skips them for the duration pause.
func (s *backoffSet) AddUnstaffed(run status.RunID, now time.Time, pause time.Duration, tell time.Time, vain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.runs[run]
	d := min(max(pause, 2*old.pause), 20*pause)
	e := backoff{until: now.Add(d), pause: d, unstaffed: true, reported: old.reported}
	if tell.After(now) && tell.Before(e.until) {
		e.until = tell
	}
	if vain {
		e.ignoredUntil = now.Add(pause)
	}
	s.putLocked(run, e)
}

// Reported records the number of journal rows that a run had at the latest alert about it. It
// does nothing if the run is not in the backoff set.
func (s *backoffSet) Reported(run status.RunID, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.runs[run]; ok {
		e.reported = rows
		s.runs[run] = e
	}
}

// ReportedAt returns the number of journal rows that a run had at the latest alert about
// it; 0 if no alert is known.
func (s *backoffSet) ReportedAt(run status.RunID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[run].reported
}

// IgnoresMessages reports whether this engine skips messages to a run at store time now.
func (s *backoffSet) IgnoresMessages(run status.RunID, now time.Time) bool {
	s.mu.Lock()
	e := s.runs[run]
	s.mu.Unlock()
	if e.unstaffed {
		return now.Before(e.ignoredUntil)
	}
	return s.Has(run, now)
}

// Woken returns how many times WakeResting was called.
func (s *backoffSet) Woken() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wakes
}

// Rest puts a run that waits for a person into the backoff set, until the run is due or
// restFor has passed. The number woken is the result of Woken before the run was read. If
// WakeResting was called since then, Rest does nothing: a new message may have arrived.
func (s *backoffSet) Rest(run status.RunID, until time.Time, woken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakes != woken {
		return
	}
	s.putLocked(run, backoff{until: until, rests: true, since: time.Now()})
}

func (s *backoffSet) putLocked(run status.RunID, e backoff) {
	if s.runs == nil || len(s.runs) >= MaxLeft {
		s.runs = map[status.RunID]backoff{}
	}
	s.runs[run] = e
}

// Has reports whether a run is in the backoff set at store time now.
func (s *backoffSet) Has(run status.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasLocked(s.runs[run], now)
}

// Stops reports whether a takeover must skip a run at store time now.
func (s *backoffSet) Stops(run status.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	return !e.others && s.hasLocked(e, now)
}

func (s *backoffSet) hasLocked(e backoff, now time.Time) bool {
	return now.Before(e.until) && (!e.rests || s.restFor == 0 || time.Since(e.since) < s.restFor)
}

// Size returns the number of runs in the set.
func (s *backoffSet) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// NewFirst returns the runs in a new order: first those that are not in the set, then the
// others.
func (s *backoffSet) NewFirst(runs []status.RunID) []status.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh, known []status.RunID
	for _, run := range runs {
		if _, ok := s.runs[run]; ok {
			known = append(known, run)
		} else {
			fresh = append(fresh, run)
		}
	}
	return append(fresh, known...)
}

// Take removes a run from the backoff set.
func (s *backoffSet) Take(run status.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, run)
}

// WakeResting removes the runs that wait for a person from the backoff set, because a
// person may have sent one of them a message.
func (s *backoffSet) WakeResting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes++
	for run, e := range s.runs {
		if e.rests {
			delete(s.runs, run)
		}
	}
}

// A Claimset is a set of runs, safe for concurrent use. With it, only one goroutine at a
// time works on a run.
type Claimset struct {
	mu   sync.Mutex // protects following field
	runs map[status.RunID]bool
}

// begin puts the run into the set. It reports false if the run is already there.
func (c *Claimset) begin(run status.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[run] {
		return false
	}
	if c.runs == nil {
		c.runs = map[status.RunID]bool{}
	}
	c.runs[run] = true
	return true
}

// Has reports whether the run is in the set.
func (c *Claimset) Has(run status.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

func (c *Claimset) end(run status.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, run)
}
