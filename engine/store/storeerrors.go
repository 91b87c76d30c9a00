package store

import (
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Conditions that callers branch on.
var (
	ErrNotFound = errors.New("engine: not found")
	ErrExists   = errors.New("engine: exists already")
	ErrStale    = errors.New("engine: run was changed by another engine")
	ErrFenced   = errors.New("engine: this engine was declared dead")
	ErrLapsed   = errors.New("engine: lease has lapsed")
	// ErrDamaged says that what a store holds cannot be read any more: reading it
	// again does not help.
	ErrDamaged = errors.New("engine: the store is damaged")
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

// A LossError says that a store went back behind what it had confirmed: a
// standby that lagged was promoted, or a backup was restored. What was committed
// in between is gone, and calls that followed from it were made. Commit and Tick
// return it from then on; the outcome of a batch they were called with is open.
// No engine may continue without a person: it stops claiming and raises an alert.
type LossError struct {
	Store    string // "postgres"
	From, To int64  // timelines before and after; equal if a backup was restored
	Known    string // position up to which From was confirmed
	Switch   string // position from which To goes on; "" = not known
	Run      int64  // internal id of a run that lost rows (Known, Switch: rows known, rows there); 0 = none is known
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
