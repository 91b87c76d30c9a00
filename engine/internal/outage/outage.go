// Package outage logs once that the store does not answer, and once that it answers again. The
// engine reports to this package which calls to the store failed and which succeeded.
package outage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// An Outage logs once that the store does not answer. Later it logs once that the store
// answers again, and how long the outage was. Many loops of an engine may report errors
// during one outage. These errors are logged at debug level.
//
// Three operations show whether the store as a whole answers: joining, renewing the lease
// and committing. The outage is over when all of these operations that failed have
// succeeded again. Any other operation may fail although the store answers. If such an
// operation fails several times in a row, only its first failure is logged as a warning.
type Outage struct {
	log *slog.Logger

	mu      sync.Mutex      // protects the fields below
	since   time.Time       // time at which the outage began; zero = the store answers
	failing map[string]bool // which of the operations Join, Tick and Commit fail at present
	failed  map[string]bool // other operations whose last try failed
	errors  int             // number of errors since the outage began
	last    time.Time       // time of the last failure
}

// The operations that show whether the store as a whole answers.
const (
	Join   = "join"
	Tick   = "renew the lease"
	Commit = "commit"
)

// Names of other operations.
const (
	Inherit   = "take over from the former membership"
	Post      = "hand an answer to the run's owner"
	Unstaffed = "look after a run whose agents are missing"
)

// vouches reports whether an operation shows that the store as a whole answers.
func vouches(doing string) bool {
	return doing == Join || doing == Tick || doing == Commit
}

// New returns an Outage for a store that answers. The Outage logs to log.
func New(log *slog.Logger) *Outage {
	return &Outage{log: log, failing: map[string]bool{}, failed: map[string]bool{}}
}

// Failed records that an operation failed with err. The parameter `doing` is the name of the
// operation. Failed logs a warning if the failure is new, and a line at debug level otherwise. The
// parameter `more` holds further attributes for the line.
func (o *Outage) Failed(doing string, err error, more ...any) {
	attrs := append([]any{"doing", doing, "error", err}, more...)
	if o.note(doing) {
		o.log.Warn("the store does not answer, trying again", attrs...)
		return
	}
	o.log.Debug("the store does not answer", attrs...)
}

// note records that an operation failed. It reports whether this failure is new: there was
// no outage, and the last try of the operation had not failed.
func (o *Outage) note(doing string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := !o.since.IsZero() || o.failed[doing]
	if o.since.IsZero() && (vouches(doing) || !known) {
		o.since, o.errors = time.Now(), 0
		known = known && !vouches(doing)
	}
	o.errors++
	o.last = time.Now()
	if vouches(doing) {
		o.failing[doing] = true
	} else {
		o.failed[doing] = true
	}
	return !known
}

// Worked records that an operation succeeded. The parameter `doing` is the name of the operation,
// and the parameter `began` is the time at which it began. If this success ends an outage, Worked
// logs that the store answers again. An operation that started before the last failure does not end
// an outage.
func (o *Outage) Worked(doing string, began time.Time) {
	o.mu.Lock()
	delete(o.failing, doing)
	delete(o.failed, doing)
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

// Beside logs a failure that does not show whether the store answers. During an outage it logs at
// debug level, because the outage is the likely cause. Otherwise it logs a warning.
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

// Over records that the engine no longer tries an operation. The parameter `doing` is the name of
// the operation. Then the end of the outage does not depend on this operation any more.
func (o *Outage) Over(doing string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failing, doing)
}
