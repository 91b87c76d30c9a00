package owner

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// MaxLeft is the largest number of runs in a backoff set. A full set is emptied before a run is put
// into it. Then scans consider all other runs again. The cluster package uses the same limit for
// the runs that an engine leaves to others.
const MaxLeft = 100000

// A backoffSet holds runs that this engine cannot continue now. For example, an agent is
// missing, an engine of a newer version wrote the run, or the run waits for a person. For a
// while, the scans of this engine skip these runs. Other engines still consider them. A
// backoffSet is safe for concurrent use.
type backoffSet struct {
	// restFor is the longest time for which scans skip a run that waits for a person. After this
	// time, scans consider the run again, because a hint about a message may be lost. 0 = scans
	// skip the run until its backoff ends.
	restFor time.Duration

	mu    sync.Mutex // protects the fields below
	runs  map[status.RunID]backoff
	wakes uint64 // how many times WakeResting was called
}

// A backoff is the entry of one run in a backoffSet.
type backoff struct {
	until time.Time // end of the backoff, on the store's clock
	// pause is the length of the backoff. The next backoff is twice as long, up to a limit. 0 = the
	// next backoff has the shortest length.
	pause time.Duration
	rests bool // the method Rest has put the run into the set
	// others is true if the run is in the set only because this engine claims no runs without
	// an owner (Shared.Claims). Then this engine skips messages to the run. But a takeover by
	// this engine does not skip the run.
	others bool
	since  time.Time // time at which the run was added, by this process's clock; only set if rests is true
	// unstaffed is true if the agents of the run are missing in this engine; other engines may have
	// them. This engine can decide messages to the run even without the agents. But it skips
	// messages until ignoredUntil.
	unstaffed    bool
	ignoredUntil time.Time // store time until which messages are skipped; zero = none are skipped
	reported     int       // number of journal rows at the last alert about the run; 0 = no alert
}

// Add puts a run into the backoff set. The parameter `now` is the present store time. The first
// backoff of the run is as long as the parameter `pause`. While the run stays in the set, each
// later backoff is twice as long as the backoff before it. It is at least as long as `pause`, and
// at most 20 times as long as `pause`.
func (s *backoffSet) Add(run status.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := min(max(pause, 2*s.runs[run].pause), 20*pause)
	s.putLocked(run, backoff{until: now.Add(d), pause: d})
}

// addForOthers puts a run into the backoff set because this engine claims no runs without an owner
// (Shared.Claims). The parameter `now` is the start of the backoff, in store time. The parameter
// `pause` is its length.
func (s *backoffSet) addForOthers(run status.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(run, backoff{until: now.Add(pause), others: true})
}

// AddUnstaffed puts a run into the backoff set because its agents are missing here. The backoff has
// the same length as in the method Add. But it ends at the store time in the parameter `due` if
// that time is in the future and comes first, because an alert or a decision about the run is due
// then. During the backoff, this engine still decides messages to the run. The parameter `vain` is
// true if the engine has just tried to decide messages, without success. Then the engine skips
// messages for the duration in the parameter `pause`. The parameter `now` is the present store
// time.
func (s *backoffSet) AddUnstaffed(run status.RunID, now time.Time, pause time.Duration, due time.Time, vain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.runs[run]
	d := min(max(pause, 2*old.pause), 20*pause)
	e := backoff{until: now.Add(d), pause: d, unstaffed: true, reported: old.reported}
	if due.After(now) && due.Before(e.until) {
		e.until = due
	}
	if vain {
		e.ignoredUntil = now.Add(pause)
	}
	s.putLocked(run, e)
}

// Reported records that an alert about a run was raised. The parameter `rows` is the number of
// journal rows that the run had then. If the run is not in the backoff set, Reported does nothing.
func (s *backoffSet) Reported(run status.RunID, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.runs[run]; ok {
		e.reported = rows
		s.runs[run] = e
	}
}

// ReportedAt returns the number of journal rows that a run had at the latest alert about
// the run. It returns 0 if this engine knows no such alert.
func (s *backoffSet) ReportedAt(run status.RunID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[run].reported
}

// IgnoresMessages reports whether this engine skips messages to a run at present. The parameter
// `now` is the present store time.
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

// Rest puts a run into the backoff set, because the run waits for a person or because its messages
// cannot be decided here. The backoff ends at the store time in the parameter `until`. But if the
// field `restFor` is not 0, the backoff lasts at most for the duration in `restFor`. The parameter
// `woken` is the number that the method Woken returned before the run was read. If WakeResting was
// called since then, Rest does nothing, because a new message may have arrived.
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

// Has reports whether a run is in the backoff set and its backoff has not ended. The parameter
// `now` is the present store time.
func (s *backoffSet) Has(run status.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasLocked(s.runs[run], now)
}

// Stops reports whether a takeover must skip a run now. It is like Has, but it returns false for
// runs that addForOthers added. The parameter `now` is the present store time.
func (s *backoffSet) Stops(run status.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	return !e.others && s.hasLocked(e, now)
}

func (s *backoffSet) hasLocked(e backoff, now time.Time) bool {
	return now.Before(e.until) && (!e.rests || s.restFor == 0 || time.Since(e.since) < s.restFor)
}

// Size returns the number of runs in the set. It includes runs whose backoff has ended.
func (s *backoffSet) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// NewFirst returns the given runs in another order: first the runs that are not in the backoff
// set, then the runs that are in it.
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

// WakeResting removes from the backoff set all runs that the method Rest added, because a
// new message for one of these runs may have arrived.
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

// A runSet is a set of runs, for example of the runs that an engine has quarantined. It is safe for
// concurrent use.
type runSet struct {
	mu   sync.Mutex // protects the field below
	runs map[status.RunID]bool
}

// begin puts a run into the runSet and returns true. If the runSet already contains the run,
// begin returns false.
func (c *runSet) begin(run status.RunID) bool {
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

// Has reports whether the runSet contains the run.
func (c *runSet) Has(run status.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

func (c *runSet) end(run status.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, run)
}
