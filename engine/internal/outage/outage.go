// Package outage tells people once that the store is away, and once that it is back.
//
// In come the failures and successes of all that an engine asks of its store; out go
// log lines.
package outage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// An Outage tells people once that the store is gone, and once that it is back and
// for how long it was away, however many loops of an engine notice both. What each
// of them meets meanwhile is logged at debug level.
//
// Some of what an engine asks of a store vouches for the whole of it: joining,
// renewing the lease and committing. The store is back when what failed of these
// works again. Anything else may fail for a reason of its own: it is told once,
// until it works again.
type Outage struct {
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
	Join   = "join"
	Tick   = "renew the lease"
	Commit = "commit"
)

// What else several loops ask of it.
const (
	Inherit = "take over from the former membership"
	Post    = "hand an answer to the run's owner"
	Bystand = "look after a run whose agents are missing"
)

// vouches reports whether a store that does this is there.
func vouches(doing string) bool {
	return doing == Join || doing == Tick || doing == Commit
}

// New returns an Outage of a store that answers. It logs to log.
func New(log *slog.Logger) *Outage {
	return &Outage{log: log, failing: map[string]bool{}, told: map[string]bool{}}
}

// Failed notes that the store did not do something, and tells it if that is news.
func (o *Outage) Failed(doing string, err error, more ...any) {
	attrs := append([]any{"doing", doing, "error", err}, more...)
	if o.note(doing) {
		o.log.Warn("the store does not answer, trying again", attrs...)
		return
	}
	o.log.Debug("the store does not answer", attrs...)
}

// note reports whether a failure is news.
func (o *Outage) note(doing string) bool {
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

// Worked notes that the store did something that began at a time, and tells that
// it is back if it was away. What began before the last failure says nothing.
func (o *Outage) Worked(doing string, began time.Time) {
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

// Beside tells of a failure that is no sign of an outage, unless there is one: then
// it has its cause there.
func (o *Outage) Beside(doing string, err error) {
	o.mu.Lock()
	away := !o.since.IsZero()
	o.mu.Unlock()
	level := slog.LevelWarn
	if away {
		level = slog.LevelDebug
	}
	o.log.Log(context.Background(), level, doing, "error", err) // a log line belongs to no request
}

// Over notes that this is not tried any more.
func (o *Outage) Over(doing string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failing, doing)
}
