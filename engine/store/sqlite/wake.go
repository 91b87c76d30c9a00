package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waker is the part of a Store that notifies engines when work may wait for them.
type waker struct {
	*file
	wakeMu sync.Mutex // protects wakes
	wakes  []chan struct{}
}

// wakePoll is the pause between two checks whether other processes have written to the file.
const wakePoll = 100 * time.Millisecond

// dataVersion returns a number that changes when another connection has committed. Commits
// of the connection that asks do not change it.
const dataVersion = `PRAGMA data_version`

// Wakes returns a channel that receives a hint when there may be new work, for example when a
// message or a run without an owner is added. For writes of this Store the hint is sent at once,
// for all commits of other processes within about 100 ms. The file is checked only while an engine
// listens. A store that does not have the lock gives no hints about other processes.
func (s *waker) Wakes(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	s.wakeMu.Lock()
	s.wakes = append(s.wakes, hints)
	s.wakeMu.Unlock()
	last := s.version() // if it is not 0, every later write of another process gives a hint
	go func() {
		s.watch(ctx, last)
		s.wakeMu.Lock()
		defer s.wakeMu.Unlock()
		s.wakes = slices.DeleteFunc(s.wakes, func(c chan struct{}) bool { return c == hints })
		close(hints)
	}()
	return hints
}

// watch runs until ctx ends. When another process has written to the file, watch sends a hint to
// all listeners. The parameter `last` is the version of the file that the caller has seen.
func (s *waker) watch(ctx context.Context, last int64) {
	tick := time.NewTicker(wakePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// If a change is missed, only a hint is lost: the listener also scans regularly.
		if v := s.version(); v != last && v != 0 {
			if last != 0 {
				s.hint()
			}
			last = v
		}
	}
}

// version returns a number that changes with commits of other processes; 0 = not known.
func (s *waker) version() (v int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return 0
	}
	if err := (&tx{s: s.file}).row(dataVersion).Scan(&v); err != nil {
		return 0
	}
	return v
}

// hint sends a hint to all listeners.
func (s *waker) hint() {
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	for _, c := range s.wakes {
		select {
		case c <- struct{}{}:
		default: // a hint is waiting already
		}
	}
}
