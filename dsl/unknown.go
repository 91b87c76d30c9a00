package dsl

import (
	"slices"

	"github.com/saga-engine/engine/dsl/internal/eval"
)

// A Rung is one thing that follows an attempt whose outcome is unknown.
type Rung string

// The rungs, in the order in which they are tried.
const (
	RungAsk       Rung = "ask"             // the action is asked what became of the call
	RungRepeat    Rung = "repeat"          // the call is repeated under its key
	RungUndoFirst Rung = "undo_and_repeat" // what may have been done is undone, then the step starts anew
	RungCatch     Rung = "catch"           // the step is caught, its effect stays in doubt
	RungFail      Rung = "fail"            // an ordinary failure: the step is never undone
	RungUndoByKey Rung = "undo_by_key"     // the undo is called with the key of the call
	RungUndo      Rung = "undo"            // the undo is called, which needs no output
	RungLearn     Rung = "learn_and_undo"  // the call is repeated once for its output, then undone
	RungPark      Rung = "park"            // a person has to find out
)

// AfterUnknown says what follows an attempt of a step whose outcome is unknown:
// each rung is tried where the one before did not help. A read-only action has
// none, because its unknown outcomes are failures.
func (w *Workflow) AfterUnknown(s *Step, r Retry) []Rung {
	if s.Do.ReadOnly {
		return nil
	}
	var out []Rung
	if s.Do.Lookup {
		out = append(out, RungAsk)
	}
	switch {
	case r.MaxAttempts == 1 && r.OnExhausted != ExhaustedCoolDown:
	case s.Do.Idempotent:
		out = append(out, RungRepeat)
	case s.OnRerun == RerunUndoFirst && s.undoneBlindly():
		out = append(out, RungUndoFirst)
	}
	return append(out, w.lastRung(s))
}

func (w *Workflow) lastRung(s *Step) Rung {
	switch {
	case s.caughtAlways():
		return RungCatch
	case w.CompensationMode == ModeManual, w.pivotOrLater(s):
		return RungPark
	case s.NoUndo, s.Undo == nil:
		return RungFail
	case s.Undo.Do.ByKey:
		return RungUndoByKey
	case !s.Undo.UsesSelf:
		return RungUndo
	case s.Do.Idempotent:
		return RungLearn
	}
	return RungPark
}

// undoneBlindly reports whether the undo can be called without the output.
func (s *Step) undoneBlindly() bool {
	return s.Undo != nil && (s.Undo.Do.ByKey || !s.Undo.UsesSelf)
}

func (s *Step) caughtAlways() bool {
	if s.Catch == nil {
		return false
	}
	codes, err := s.Catch.Errors(&eval.Scope{})
	return err == nil && slices.Contains(codes, allCodes)
}

// pivotOrLater reports whether nothing is undone once the step has begun.
// No other step runs at the same time as the pivot.
func (w *Workflow) pivotOrLater(s *Step) bool {
	if w.Pivot < 0 {
		return false
	}
	seen := make([]bool, len(w.Steps)) // the paths between two steps may be more than there are atoms
	for todo := []*Step{s}; len(todo) > 0; {
		s, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if s.Pivot {
			return true
		}
		for _, i := range s.After {
			if !seen[i] {
				seen[i] = true
				todo = append(todo, w.Steps[i])
			}
		}
	}
	return false
}
