package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// An outage tells people once that the store is gone, and once that it is back and
// for how long it was away, however many loops of an engine notice both. What each
// of them meets meanwhile is logged at debug level.
//
// Some of what an engine asks of a store vouches for the whole of it: joining,
// renewing the lease and committing. The store is back when what failed of these
// works again. Anything else may fail for a reason of its own: it is told once,
// until it works again.
type outage struct {
	log *slog.Logger

	mu      sync.Mutex      // protects following fields
	since   time.Time       // zero = the store answers
	failing map[string]bool // what fails of all that vouches for the store
	told    map[string]bool // what else failed last time
	errors  int             // since then
	last    time.Time       // when something failed last
}

// What vouches for the whole store.
const (
	doingJoin   = "join"
	doingTick   = "renew the lease"
	doingCommit = "commit"
)

// What else several loops ask of it.
const (
	doingInherit = "take over from the former incarnation"
	doingPost    = "hand an answer to the run's owner"
	doingBystand = "look after a run whose agents are missing"
)

// vouches reports whether a store that does this is there.
func vouches(doing string) bool {
	return doing == doingJoin || doing == doingTick || doing == doingCommit
}

func newOutage(log *slog.Logger) *outage {
	return &outage{log: log, failing: map[string]bool{}, told: map[string]bool{}}
}

// failed notes that the store did not do something, and tells it if that is news.
func (o *outage) failed(doing string, err error, more ...any) {
	attrs := append([]any{"doing", doing, "error", err}, more...)
	if o.note(doing) {
		o.log.Warn("the store does not answer, trying again", attrs...)
		return
	}
	o.log.Debug("the store does not answer", attrs...)
}

// note reports whether a failure is news.
func (o *outage) note(doing string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := !o.since.IsZero() || o.told[doing]
	if o.since.IsZero() && (vouches(doing) || !known) {
		o.since, o.errors = time.Now(), 0
		known = known && !vouches(doing)
	}
	o.errors++
	o.last = time.Now()
	if vouches(doing) {
		o.failing[doing] = true
	} else {
		o.told[doing] = true
	}
	return !known
}

// worked notes that the store did something that began at a time, and tells that
// it is back if it was away. What began before the last failure says nothing.
func (o *outage) worked(doing string, began time.Time) {
	o.mu.Lock()
	delete(o.failing, doing)
	delete(o.told, doing)
	since, errors := o.since, o.errors
	back := !since.IsZero() && vouches(doing) && len(o.failing) == 0 && !began.Before(o.last)
	if back {
		o.since = time.Time{}
	}
	o.mu.Unlock()
	if back {
		o.log.Info("the store answers again", "after", time.Since(since).Round(time.Millisecond), "since", since.UTC(), "errors", errors)
	}
}

// beside tells of a failure that is no sign of an outage, unless there is one: then
// it has its cause there.
func (o *outage) beside(doing string, err error) {
	o.mu.Lock()
	away := !o.since.IsZero()
	o.mu.Unlock()
	level := slog.LevelWarn
	if away {
		level = slog.LevelDebug
	}
	o.log.Log(context.Background(), level, doing, "error", err) // a log line belongs to no request
}

// over notes that this is not tried any more.
func (o *outage) over(doing string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failing, doing)
}
