package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// attemptOf is "attempt 2/5", or "attempt 2" where there is no limit.
func attemptOf(f machine.Fact) string {
	what := "attempt"
	switch {
	case f.Lookup:
		return "lookup"
	case f.Undo:
		what = "undo attempt"
	}
	switch {
	case f.Attempt <= 0:
		return what
	case f.Of > 0:
		return fmt.Sprintf("%s %d/%d", what, f.Attempt, f.Of)
	}
	return fmt.Sprintf("%s %d", what, f.Attempt)
}

// Sentence tells one fact in one line, without time and run. exit is the exit
// code of a fact that ends the command, or negative.
func Sentence(f machine.Fact, exit int) string {
	s := sentence(f)
	if f.Step != "" && aboutStep(f.Kind) {
		s = Clean(f.Step) + ": " + s
	}
	if exit >= 0 {
		s += fmt.Sprintf(" (exit %d)", exit)
	}
	return s
}

// aboutStep reports whether the step of a fact is its subject.
func aboutStep(k machine.FactKind) bool {
	switch k {
	case machine.FactRunCreated, machine.FactRunTurned, machine.FactRunParked, machine.FactRunFinished,
		machine.FactRunTakenOver, machine.FactVerb:
		return false
	}
	return true
}

func sentence(f machine.Fact) string {
	why := reason(f.Code, f.Message)
	switch f.Kind {
	case machine.FactRunCreated:
		if f.RunBy.IsZero() {
			return "run accepted"
		}
		return "run accepted, deadline " + Clock(f.RunBy, f.At)
	case machine.FactStepHeld:
		return "held" + prefixed(": ", why) + untilText(" until ", f.Until, f.At)
	case machine.FactAttemptStarted:
		return attemptOf(f) + " started" + prefixed(", ", Clean(f.Agent)) + untilText(", complete by ", f.CompleteBy, f.At)
	case machine.FactAttemptProgress:
		return "progress" + prefixed(": ", Clean(f.Message))
	case machine.FactAttemptFinished:
		return attemptOf(f) + " " + attemptEnd(f, why)
	case machine.FactRetryScheduled:
		if f.Until.IsZero() {
			return "retry"
		}
		return "retry in " + Took(f.Until.Sub(f.At))
	case machine.FactStepFinished:
		return stepEnd(f, why)
	case machine.FactUndoStarted:
		return "undo started" + prefixed(", ", Clean(f.Agent))
	case machine.FactUndoFinished:
		return undoEnd(f, why)
	}
	return runSentence(f, why)
}

func runSentence(f machine.Fact, why string) string {
	switch f.Kind {
	case machine.FactRunTurned:
		return "run turns back" + prefixed(": ", blame(f, why))
	case machine.FactRunParked:
		return "run " + orText(f.Status, "parked") + prefixed(": ", blame(f, why)) + "; it needs a human"
	case machine.FactRunTakenOver:
		return "run taken over from an engine that is gone"
	case machine.FactVerb:
		if f.Status == "overdue" {
			return "run is overdue: " + Clean(f.Message)
		}
		return Clean(orText(f.Status, "operator")) + prefixed(" by ", Clean(f.By)) + prefixed(": ", why)
	case machine.FactRunFinished:
		s := "run " + Clean(f.Status)
		if f.Status == machine.RunSucceeded.String() {
			return s
		}
		s += prefixed(": ", blame(f, why))
		if f.Status != machine.RunFailed.String() {
			s += fmt.Sprintf("; %d undone, %d left", f.Undone, f.LeftAsIs)
		}
		if f.Undeclared > 0 {
			s += fmt.Sprintf(", %d not undone by declaration", f.Undeclared)
		}
		return s
	}
	return strings.ReplaceAll(string(f.Kind), "_", " ") + prefixed(": ", why)
}

// blame is "book failed: no_carrier", or only the reason where no step is to
// blame.
func blame(f machine.Fact, why string) string {
	if f.Step == "" {
		return why
	}
	return Clean(f.Step) + " failed" + prefixed(": ", why)
}

func attemptEnd(f machine.Fact, why string) string {
	switch f.Status {
	case "ok":
		return "ok in " + Took(f.Took)
	case "unknown":
		return "ended with unknown outcome after " + Took(f.Took) + prefixed(": ", why)
	case "needless":
		return "is not needed any more"
	case "not_done":
		return "answered after " + Took(f.Took) + ": it never took effect"
	case "not_sent":
		return "not sent" + prefixed(": ", why)
	}
	return Clean(orText(f.Status, "failed")) + " in " + Took(f.Took) + prefixed(": ", why)
}

func stepEnd(f machine.Fact, why string) string {
	switch f.Status {
	case machine.StepSucceeded.String():
		return "succeeded in " + Took(f.Took) + tries(f.Attempt)
	case machine.StepFailed.String(), machine.StepCaught.String():
		return f.Status + prefixed(": ", why) + tries(f.Attempt)
	}
	return Clean(f.Status) + prefixed(": ", why)
}

func undoEnd(f machine.Fact, why string) string {
	switch f.Status {
	case machine.StepUndone.String():
		return "undone in " + Took(f.Took) + tries(f.Attempt)
	case machine.StepUndoFailed.String():
		return "undo failed" + prefixed(": ", why) + tries(f.Attempt)
	}
	return Clean(f.Status) + prefixed(": ", why)
}

func tries(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d tries)", n)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func untilText(prefix string, t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return prefix + Clock(t, now)
}

func orText(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
