package engine

import (
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// maxLeft bounds how many runs are remembered as left alone. Beyond it all are
// forgotten, and looked at again.
const maxLeft = 100000

// A shelf remembers runs that an engine found and can do nothing for: an agent
// is missing, a newer version wrote them, they wait for a person. They stay
// visible to other engines; this one does not look at them again at every pass.
// It is safe for concurrent use.
type shelf struct {
	// restFor bounds for how long a run that rests is not looked at: hints may
	// be lost, or never come. 0 = until something of it is due.
	restFor time.Duration

	mu    sync.Mutex // protects following fields
	runs  map[machine.RunID]shelved
	wakes uint64 // how often wakeResting was called
}

type shelved struct {
	until time.Time // store time
	pause time.Duration
	rests bool // nothing is wrong with it: it waits for a person
	// others: nothing is wrong with it, and this engine takes up no runs by itself.
	// Ticks do not look at it. A takeover that a person asks for does.
	others bool
	since  time.Time // by this process's clock
	// lacks: its agents are missing, but what is said to it can be decided. Only
	// until deaf, store time, it is not looked at for that either.
	lacks bool
	deaf  time.Time
	told  int // number of its rows when people were told of it; 0 = they were not
}

// leave puts a run on the shelf for pause, or for twice as long as the last
// time, up to 20 times pause.
func (s *shelf) leave(run machine.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := min(max(pause, 2*s.runs[run].pause), 20*pause)
	s.putLocked(run, shelved{until: now.Add(d), pause: d})
}

// leaveToOthers puts a run on the shelf that an engine could work on which takes
// up no runs by itself (Options.Alone).
func (s *shelf) leaveToOthers(run machine.RunID, now time.Time, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(run, shelved{until: now.Add(pause), others: true})
}

// leaveLacking is leave for a run whose agents are missing, but not beyond what
// of it must be told people, if that is ahead. What is said to it is looked at
// all the same, unless that was just done in vain.
func (s *shelf) leaveLacking(run machine.RunID, now time.Time, pause time.Duration, tell time.Time, vain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.runs[run]
	d := min(max(pause, 2*old.pause), 20*pause)
	e := shelved{until: now.Add(d), pause: d, lacks: true, told: old.told}
	if tell.After(now) && tell.Before(e.until) {
		e.until = tell
	}
	if vain {
		e.deaf = now.Add(pause)
	}
	s.putLocked(run, e)
}

// tell notes that people were told of a run with so many rows, as long as it is
// on the shelf.
func (s *shelf) tell(run machine.RunID, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.runs[run]; ok {
		e.told = rows
		s.runs[run] = e
	}
}

// told returns how many rows a run had when people were told of it; 0 = it is
// not known that they were.
func (s *shelf) told(run machine.RunID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[run].told
}

// deaf reports whether what is said to a run need not be looked at, at store
// time now.
func (s *shelf) deaf(run machine.RunID, now time.Time) bool {
	s.mu.Lock()
	e := s.runs[run]
	s.mu.Unlock()
	if e.lacks {
		return now.Before(e.deaf)
	}
	return s.has(run, now)
}

// woken returns how often wakeResting was called.
func (s *shelf) woken() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wakes
}

// rest puts a run on the shelf that waits for a person, until something of it
// is due, or for restFor. It does nothing if what waits was woken since woken
// returned the given number: what was seen of the run may be out of date.
func (s *shelf) rest(run machine.RunID, until time.Time, woken uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wakes != woken {
		return
	}
	s.putLocked(run, shelved{until: until, rests: true, since: time.Now()})
}

func (s *shelf) putLocked(run machine.RunID, e shelved) {
	if s.runs == nil || len(s.runs) >= maxLeft {
		s.runs = map[machine.RunID]shelved{}
	}
	s.runs[run] = e
}

// has reports whether a run is on the shelf at store time now.
func (s *shelf) has(run machine.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasLocked(s.runs[run], now)
}

// stops reports whether a takeover leaves a run out at store time now.
func (s *shelf) stops(run machine.RunID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	return !e.others && s.hasLocked(e, now)
}

func (s *shelf) hasLocked(e shelved, now time.Time) bool {
	return now.Before(e.until) && (!e.rests || s.restFor == 0 || time.Since(e.since) < s.restFor)
}

// size returns how many runs are remembered.
func (s *shelf) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// newFirst returns the runs with those first that are not remembered.
func (s *shelf) newFirst(runs []machine.RunID) []machine.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh, known []machine.RunID
	for _, run := range runs {
		if _, ok := s.runs[run]; ok {
			known = append(known, run)
		} else {
			fresh = append(fresh, run)
		}
	}
	return append(fresh, known...)
}

// take takes a run off the shelf.
func (s *shelf) take(run machine.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, run)
}

// wakeResting takes off the shelf what waits for a person: somebody may have
// said something to it.
func (s *shelf) wakeResting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes++
	for run, e := range s.runs {
		if e.rests {
			delete(s.runs, run)
		}
	}
}

// A claimset lets one goroutine at a time work on a run.
type claimset struct {
	mu   sync.Mutex // protects following field
	runs map[machine.RunID]bool
}

// begin reports whether nobody works on the run, and that from now on the
// caller does.
func (c *claimset) begin(run machine.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[run] {
		return false
	}
	if c.runs == nil {
		c.runs = map[machine.RunID]bool{}
	}
	c.runs[run] = true
	return true
}

// has reports whether somebody works on the run.
func (c *claimset) has(run machine.RunID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

func (c *claimset) end(run machine.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, run)
}
