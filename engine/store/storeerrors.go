package store

import (
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Errors that callers may test for.
var (
	ErrNotFound = errors.New("engine: not found")
	ErrExists   = errors.New("engine: exists already")
	ErrStale    = errors.New("engine: run was changed by another engine")
	ErrFenced   = errors.New("engine: this engine was declared dead")
	ErrLapsed   = errors.New("engine: lease has lapsed")
	// ErrDamaged says that the stored data cannot be read any more. Reading it again does
	// not help.
	ErrDamaged = errors.New("engine: the store is damaged")
)

// A SchemaError says that the schema of a store does not fit this binary: it is missing,
// older (Have < Want) or newer (Have > Want).
type SchemaError struct {
	Store string // kind of the store: "postgres" or "sqlite"
	Have  int64  // version of the schema; 0 = there is no schema
	Want  int64
	Hint  string // command that repairs the schema
}

// Error says what does not fit and what to do.
func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return fmt.Sprintf("%s: the database holds no engine schema: %s", e.Store, e.Hint)
	case e.Have > e.Want:
		return fmt.Sprintf("%s: schema version %d is newer than this binary knows (%d): %s", e.Store, e.Have, e.Want, e.Hint)
	}
	return fmt.Sprintf("%s: schema version %d is older than %d: %s", e.Store, e.Have, e.Want, e.Hint)
}

// A LossError says that a store has lost commits that it had confirmed. The reason may be
// that a standby without the last commits became the primary, or that a backup was
// restored. Engines may have called agents because of the lost commits. After the loss was
// found, Commit and Tick return this error; the outcome of the batch is not known. An engine
// must not continue until a person has acted: it stops claiming runs and raises an alert.
type LossError struct {
	Store string // kind of the store: "postgres"; "" if Run is not 0
	// PostgreSQL timelines before and after the loss; equal if a backup was restored.
	From, To int64
	// Position in the database's log up to which commits were confirmed on timeline From. If a
	// confirmed row of a journal is missing, Known may name this row instead.
	Known string
	// Position in the database's log at which the server switched to timeline To; "" = not known.
	// If From and To are equal, Switch is the end of the log when the loss was found.
	Switch string
	// Internal id of a run that has lost journal rows; 0 = the error is about the whole database.
	// If Run is not 0, Known and Switch are not positions but numbers of journal rows of this run,
	// and From and To are not set.
	Run int64
}

// Error says what is lost and what to do.
func (e *LossError) Error() string {
	if e.Run != 0 {
		return fmt.Sprintf("the store lost committed rows of run %s: it holds %s where %s had been committed", naming.RunName(status.RunID(e.Run)), e.Switch, e.Known)
	}
	at := e.Switch
	if at == "" {
		at = "before that"
	}
	return fmt.Sprintf("%s: committed history is lost: timeline %d was confirmed up to %s, and timeline %d goes on from %s "+
		"(a standby that lagged was promoted, or a backup restored): find out which runs and effects are missing, then start the engines again",
		e.Store, e.From, e.Known, e.To, at)
}
