package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A waker hints to engines that something may be waiting for them.
type waker struct {
	*file
	wakeMu sync.Mutex // protects wakes
	wakes  []chan struct{}
}

// wakePoll is how often a listener looks for what other processes wrote.
const wakePoll = 100 * time.Millisecond

// dataVersion changes for a connection when another one has committed, and
// never by its own commits.
const dataVersion = `PRAGMA data_version`

// Wakes returns a channel that receives a hint for every message and every run
// of nobody: at once for what this process wrote, within about 100 ms for what
// another did. The file is looked at only while an engine listens. A store that
// is not the file's writer gives no hints.
func (s *waker) Wakes(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	s.wakeMu.Lock()
	s.wakes = append(s.wakes, hints)
	s.wakeMu.Unlock()
	last := s.version() // what others write from now on is news
	go func() {
		s.watch(ctx, last)
		s.wakeMu.Lock()
		defer s.wakeMu.Unlock()
		s.wakes = slices.DeleteFunc(s.wakes, func(c chan struct{}) bool { return c == hints })
		close(hints)
	}()
	return hints
}

// watch gives a hint when another process has written since version last, until ctx ends.
func (s *waker) watch(ctx context.Context, last int64) {
	tick := time.NewTicker(wakePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Not seen is only a hint lost: the listener also looks on its own.
		if v := s.version(); v != last && v != 0 {
			if last != 0 {
				s.hint()
			}
			last = v
		}
	}
}

// version returns what the writing connection sees of others' commits; 0 =
// cannot tell.
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

// hint tells all who listen.
func (s *waker) hint() {
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	for _, c := range s.wakes {
		select {
		case c <- struct{}{}:
		default: // one is waiting there already
		}
	}
}
