// Package storekit holds code that stores share: the encoding of the rows that views show,
// the allowed changes of a run's state, and the kinds of filters. Only stores use this
// package.
//
// The package helps all stores to enforce two rules. A final state does not change, with one
// exception (CanBecome). No filter makes a store read all runs (KindOf). The rules in package
// storetest use HoldsKey.
package storekit

import (
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// CanBecome reports whether one journal row may change the state of a run from `from` to `to`.
// Final states do not change, with one exception: a parent may undo a child that has succeeded. The
// row that begins this undo may hold further decisions, so it may also pause the child, or end the
// undo. No run returns to the queue (S53).
func CanBecome(from, to status.RunState) bool {
	switch {
	case from == to:
		return true
	case from.Final():
		switch to {
		case status.RunCompensating, status.RunPaused, status.RunCompensationFailed, status.RunFailed, status.RunCompensated:
			return from == status.RunSucceeded
		}
		return false
	}
	return to != status.RunQueued
}

// HoldsKey reports whether a run in this state holds its unique key: the run is open, needs a
// person, or has succeeded (language.md, Uniqueness). The answer is right for the scope
// naming.ScopeGoal without Retain, if the goal was not reset. For all other scopes, see
// naming.KeyScope.Holds.
func HoldsKey(s status.RunState) bool {
	return s != status.RunFailed && s != status.RunCompensated && s != status.RunCancelled
}

// ValidateBatch returns an error if a batch breaks the rules of Writer.Commit. The batch
// must be sorted by run, and must have at most one transition of each run. With two
// transitions of one run, the store might refuse the first as stale and commit the second.
func ValidateBatch(batch []store.Transition) error {
	for i := 1; i < len(batch); i++ {
		if batch[i].Run <= batch[i-1].Run {
			return fmt.Errorf("engine: batch is not sorted by run, or holds run %d twice", batch[i].Run)
		}
	}
	return nil
}

// Damaged returns an error with the text of err, for which errors.Is(…, store.ErrDamaged)
// is true.
func Damaged(err error) error { return damaged{err} }

type damaged struct{ error }

// Is reports whether `target` is store.ErrDamaged.
func (damaged) Is(target error) bool { return target == store.ErrDamaged }

// Unwrap returns the cause.
func (d damaged) Unwrap() error { return d.error }

// maxIDs is the largest number of ids in store.RunFilter.IDs.
const maxIDs = 1000

// A Kind is the kind of a filter. The kind determines which index a store uses, and in
// which order the store returns the runs.
type Kind uint8

// The kinds of filters: see store.RunFilter.
const (
	KindList      Kind = iota // list for people, newest run first
	KindName                  // the run with the given name
	KindOrphans               // runs without a live owner, ascending by id
	KindAddressed             // runs of dead members with waiting messages, oldest message first
	KindOverdue               // overdue runs of the other live members, most overdue first
	KindIDs                   // the runs with the given ids, ascending by id
	KindChildren              // the child runs of a run, ascending by id
)

var errFilter = errors.New("engine: no index serves this filter of runs: it mixes questions, or its fields do not go together")

// KindOf returns the kind of a filter. It returns an error if no store has an index for the filter.
func KindOf(f store.RunFilter) (Kind, error) {
	listed := len(f.States) > 0 || f.Workflow != "" || f.Key != "" || f.Digest != "" || len(f.Triggers) > 0 || !f.Since.IsZero() || f.Before != 0
	foreign := f.Owners != 0 || f.After != 0 || f.Waiting || f.Asking != 0 || f.Overdue != 0
	if len(f.IDs) > 0 || f.Parent != 0 {
		return familyKind(f, listed)
	}
	switch {
	case f.Limit < 0, f.Name != "" && (listed || foreign), listed && foreign:
		return 0, errFilter
	case f.Name != "":
		return KindName, nil
	case !foreign:
		return KindList, nil
	}
	return foreignKind(f)
}

// familyKind returns the kind of a filter with IDs or Parent. It returns an error if no store has
// an index for the filter. The parameter `listed` is true if the filter also sets a field of the
// lists for people, such as States.
func familyKind(f store.RunFilter, listed bool) (Kind, error) {
	foreign := f.Owners != 0 || f.Waiting || f.Asking != 0 || f.Overdue != 0
	switch {
	case listed, foreign, f.Name != "", f.Limit < 0, len(f.IDs) > maxIDs:
		return 0, errFilter
	case f.Parent == 0 && f.After == 0 && f.Limit == 0:
		return KindIDs, nil
	case f.Parent != 0 && len(f.IDs) == 0:
		return KindChildren, nil
	}
	return 0, errFilter
}

// foreignKind returns the kind of a filter with which an engine searches for runs that it
// does not own.
func foreignKind(f store.RunFilter) (Kind, error) {
	other := f.Asking != 0 || f.Overdue != 0
	switch f.Owners {
	case store.OwnerDead:
		switch {
		case other, f.Waiting && f.After != 0:
			return 0, errFilter
		case f.Waiting:
			return KindAddressed, nil
		}
		return KindOrphans, nil
	case store.OwnerDead | store.OwnerNone:
		if !other && !f.Waiting {
			return KindOrphans, nil
		}
	case store.OwnerOther:
		if !f.Waiting && f.After == 0 {
			return KindOverdue, nil
		}
	}
	return 0, errFilter
}

// AlertKind returns the present name of the kind of a stored alert. Older engines have stored the
// kind `quarantined` as set_aside. A store does not change such rows, but shows the present name.
func AlertKind(stored string) string {
	if stored == "set_aside" {
		return "quarantined"
	}
	return stored
}
