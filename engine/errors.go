package engine

import (
	"errors"
	"fmt"
)

// Conditions that callers branch on.
var (
	ErrNotFound = errors.New("engine: not found")
	ErrExists   = errors.New("engine: exists already")
	ErrStale    = errors.New("engine: run was changed by another engine")
	ErrFenced   = errors.New("engine: this engine was declared dead")
	ErrLapsed   = errors.New("engine: lease has lapsed")
)

// A SchemaError says that a store's layout does not fit this binary: missing,
// older (Have < Want) or newer (Have > Want).
type SchemaError struct {
	Store string // "postgres" or "sqlite"
	Have  int64  // 0 = no schema at all
	Want  int64
	Hint  string // the command that repairs it
}

// Error describes the mismatch and the remedy.
func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return fmt.Sprintf("%s: the database holds no engine schema: %s", e.Store, e.Hint)
	case e.Have > e.Want:
		return fmt.Sprintf("%s: schema version %d is newer than this binary knows (%d): %s", e.Store, e.Have, e.Want, e.Hint)
	}
	return fmt.Sprintf("%s: schema version %d is older than %d: %s", e.Store, e.Have, e.Want, e.Hint)
}

// A LockedError says that another process holds an embedded store.
type LockedError struct {
	Path   string
	Holder string // what is known of the holder, for people
}

// Error names the file and its holder.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by %s", e.Path, e.Holder)
}
