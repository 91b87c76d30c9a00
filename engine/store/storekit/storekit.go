// Package storekit holds what stores share: the stored form of the rows that views
// show, the rules by which states follow each other, and the kinds of filters. It is for
// authors of stores; an engine needs nothing of it.
//
// It keeps these invariants: a final state absorbs, a key is held as long as its run may
// have left something behind, and no filter walks all runs.
package storekit

import (
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// CanBecome reports whether a run in state from may turn to state to: final
// states absorb, except that a succeeded child may be undone by its parent,
// and no run returns to the queue (S53).
func CanBecome(from, to status.RunState) bool {
	switch {
	case from == to:
		return true
	case from.Final():
		return from == status.RunSucceeded && to == status.RunCompensating
	}
	return to != status.RunQueued
}

// HoldsKey reports whether a run in this state keeps its unique key from
// others: open, needing a human or succeeded (language.md, Uniqueness).
func HoldsKey(s status.RunState) bool {
	return s != status.RunFailed && s != status.RunCompensated && s != status.RunCancelled
}

// ValidateBatch reports a batch that breaks the rules of Writer.Commit: sorted
// by run, one transition of a run. (Two rows of one run in one statement
// corrupt the history when the first is stale.)
func ValidateBatch(batch []store.Transition) error {
	for i := 1; i < len(batch); i++ {
		if batch[i].Run <= batch[i-1].Run {
			return fmt.Errorf("engine: batch is not sorted by run, or holds run %d twice", batch[i].Run)
		}
	}
	return nil
}

// Damaged returns err as one that is store.ErrDamaged too, for stores. Its text stays.
func Damaged(err error) error { return damaged{err} }

type damaged struct{ error }

// Is reports whether target is store.ErrDamaged.
func (damaged) Is(target error) bool { return target == store.ErrDamaged }

// Unwrap returns the cause.
func (d damaged) Unwrap() error { return d.error }

// A Kind of a filter says which index serves it, and in which order the runs come.
type Kind uint8

// The kinds of filters: see store.RunFilter.
const (
	KindList      Kind = iota // for people, newest first
	KindName                  // one run
	KindOrphans               // without a live owner, ascending by id
	KindAddressed             // of dead members, those of the oldest messages first
	KindOverdue               // of other live members, most overdue first
)

var errFilter = errors.New("engine: no index serves this filter of runs: it mixes questions, or its fields do not go together")

// KindOf returns the kind of a filter, or an error if no index serves it.
func KindOf(f store.RunFilter) (Kind, error) {
	listed := len(f.States) > 0 || f.Workflow != "" || f.Key != "" || f.Digest != "" || !f.Since.IsZero() || f.Before != 0
	foreign := f.Owners != 0 || f.After != 0 || f.Waiting || f.Asking != 0 || f.Overdue != 0
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

// foreignKind returns the kind of a filter with which an engine looks for runs of others.
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
