package noun

import (
	"slices"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/rung"
)

// AfterUnknown returns the reactions to an attempt whose outcome is unknown. The engine tries them
// in the order of the result, until one of them succeeds. For a read-only action AfterUnknown
// returns nil, because an unknown outcome of such an action counts as a failure.
func (w *Workflow) AfterUnknown(s *Step, r Retry) []rung.Rung {
	if s.Do.ReadOnly {
		return nil
	}
	var out []rung.Rung
	if s.Do.Lookup {
		out = append(out, rung.Ask)
	}
	switch {
	case r.MaxAttempts == 1 && r.OnExhausted != ExhaustedCoolDown:
	case s.Do.Idempotent:
		out = append(out, rung.Repeat)
	case s.OnRerun == RerunUndoFirst && s.undoneBlindly():
		out = append(out, rung.UndoFirst)
	}
	return append(out, w.lastRung(s))
}

func (w *Workflow) lastRung(s *Step) rung.Rung {
	switch {
	case s.caughtAlways():
		return rung.Catch
	case w.CompensationMode == ModeManual, w.pivotOrLater(s):
		return rung.Park
	case s.NoUndo, s.Undo == nil:
		return rung.Fail
	case s.Undo.Do.ByKey:
		return rung.UndoByKey
	case !s.Undo.UsesSelf:
		return rung.Undo
	case s.Do.Idempotent:
		return rung.Learn
	}
	return rung.Park
}

// undoneBlindly reports whether the step has an undo that needs no output of the step.
func (s *Step) undoneBlindly() bool {
	return s.Undo != nil && (s.Undo.Do.ByKey || !s.Undo.UsesSelf)
}

func (s *Step) caughtAlways() bool {
	if s.Catch == nil {
		return false
	}
	codes, err := s.Catch.Errors(&eval.Scope{})
	return err == nil && slices.Contains(codes, AllCodes)
}

// pivotOrLater reports whether s is the pivot or runs after the pivot. If the outcome of such a
// step is unknown, the pivot may have succeeded, so the engine must not undo the run. All other
// steps end before the pivot begins.
func (w *Workflow) pivotOrLater(s *Step) bool {
	if w.Pivot < 0 {
		return false
	}
	seen := make([]bool, len(w.Steps)) // visit each step only once, because the number of paths may grow exponentially
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
