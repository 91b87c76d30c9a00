package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// attemptOf returns a text for an attempt, such as "attempt 2/5", or "attempt 2" if there is no
// limit or the limit is not known. For a lookup it returns "lookup".
func attemptOf(f story.Fact) string {
	what, why := "attempt", ""
	switch f.Purpose {
	case story.PurposeLookup:
		return "lookup"
	case story.PurposeLearn:
		why = " to learn the output"
	case story.PurposeUndo:
		what = "undo attempt"
	}
	switch {
	case f.Attempt <= 0:
	case f.Of > 0:
		what = fmt.Sprintf("%s %d/%d", what, f.Attempt, f.Of)
	default:
		what = fmt.Sprintf("%s %d", what, f.Attempt)
	}
	return what + why
}

// Sentence returns one line that describes a fact, without its time and without the name of the
// run. The parameter `exit` is the exit code with which the fact ends the command. It is negative
// if the fact does not end the command.
func Sentence(f story.Fact, exit int) string {
	s := sentence(f)
	if f.Step != "" && aboutStep(f.Kind) {
		s = Clean(f.Step) + ": " + s
	}
	if exit >= 0 {
		s += fmt.Sprintf(" (exit %d)", exit)
	}
	return s
}

// aboutStep reports whether facts of this kind are about a step, and not about the run.
func aboutStep(k story.FactKind) bool {
	switch k {
	case story.FactRunCreated, story.FactRunTurned, story.FactRunParked, story.FactRunFinished,
		story.FactRunTakenOver, story.FactVerb, story.FactSignalReceived, story.FactRunAdmitted:
		return false
	}
	return true
}

func sentence(f story.Fact) string {
	why := reason(f.Code, f.Message)
	switch f.Kind {
	case story.FactRunCreated:
		// The line begins with the unique key, so the text adds the run's id.
		if f.Key != "" && f.Run != "" {
			return "run " + Clean(f.Run) + " accepted, key " + Clean(f.Key) + untilText(", deadline ", f.RunDeadline, f.At)
		}
		return "run accepted" + untilText(", deadline ", f.RunDeadline, f.At)
	case story.FactStepHeld:
		return heldText(f.Agent, why) + untilText(" until ", f.Until, f.At)
	case story.FactAttemptStarted:
		return iterationOf(f) + attemptOf(f) + " started" + prefixed(", ", Clean(f.Action)) + untilText(", complete by ", f.CompleteBy, f.At)
	case story.FactAttemptProgress:
		return "progress" + prefixed(": ", Clean(f.Message))
	case story.FactAttemptFinished:
		return attemptOf(f) + " " + attemptEnd(f, why)
	case story.FactWaitStarted:
		return iterationOf(f) + awaitText(f.Awaits) + untilText(" until ", f.Until, f.At) + untilText(", step by ", f.StepDeadline, f.At)
	case story.FactRetryScheduled:
		return retryText(f) + prefixed(" after ", why)
	case story.FactStepFinished:
		return stepEnd(f, why)
	case story.FactUndoStarted:
		return "undo started" + prefixed(", ", Clean(f.Action))
	case story.FactUndoFinished:
		return undoEnd(f, why)
	}
	return runSentence(f, why)
}

// awaitText returns the words for a step that waits. It names the signals for which the step
// waits. If there are no signals, the step is a timer, and awaitText returns only "waits".
func awaitText(signals []string) string {
	if len(signals) == 0 {
		return "waits"
	}
	return "waits for signal " + Clean(strings.Join(signals, " or "))
}

func runSentence(f story.Fact, why string) string {
	switch f.Kind {
	case story.FactRunTurned:
		return "run turns back" + prefixed(": ", blame(f, why))
	case story.FactRunParked:
		return "run " + orText(f.Status, "parked") + turnText(f, why) + "; it needs a human"
	case story.FactRunTakenOver:
		if f.Unowned {
			return "run claimed by an engine"
		}
		return "run taken over from an engine that is gone"
	case story.FactRunAdmitted:
		return "run admitted: " + orText(f.Message, "there is room in its concurrency limit")
	case story.FactSignalReceived:
		s := "signal " + Clean(f.Signal) + prefixed(" by ", Clean(f.By))
		if f.Known {
			return s + ": already known by its id, so it changes nothing"
		}
		if f.Code != "" {
			return s + " fails its step: " + why
		}
		return s + prefixed(": ", Clean(f.Message))
	case story.FactVerb:
		if f.Status == "overdue" {
			return "run is overdue: " + Clean(f.Message)
		}
		return Clean(orText(f.Status, "operator")) + prefixed(" by ", Clean(f.By)) + prefixed(": ", why)
	case story.FactRunFinished:
		s := "run " + Clean(f.Status)
		switch f.Status {
		case status.RunSucceeded.String():
			if f.LeftAsIs == 0 && f.Undeclared == 0 {
				return s
			}
			s += fmt.Sprintf("; %d left in child runs", f.LeftAsIs)
		case status.RunFailed.String():
			s += prefixed(": ", blame(f, why))
		default:
			s += prefixed(": ", blame(f, why)) + fmt.Sprintf("; %d undone, %d left", f.Undone, f.LeftAsIs)
		}
		if f.Undeclared > 0 {
			s += fmt.Sprintf(", %d not undone by declaration", f.Undeclared)
			if len(f.Kept) > 0 {
				s += " (" + KeptText(f.Kept) + ")"
			}
		}
		return s
	}
	return strings.ReplaceAll(string(f.Kind), "_", " ") + prefixed(": ", why)
}

// mostKept is the highest number of steps that KeptText names.
const mostKept = 10

// KeptText returns the names of the steps whose effects stay, because the workflow declares that
// they are not undone. It names at most mostKept steps and counts the others.
func KeptText(steps []string) string {
	shown := steps[:min(len(steps), mostKept)]
	names := make([]string, len(shown))
	for i, s := range shown {
		names[i] = Clean(s)
	}
	text := strings.Join(names, ", ")
	if more := len(steps) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// retryText returns a text that says what the engine does after a pause, and when.
func retryText(f story.Fact) string {
	what := "retry"
	switch {
	case f.Iteration > 0:
		what = story.IterationText(f.Iteration, f.Iterations)
	case f.Purpose == story.PurposeLookup:
		what = "looking up what became of it"
	case f.CoolDown:
		return "cooling down" + untilText(" until ", f.Until, f.At)
	}
	if f.Until.IsZero() {
		return what
	}
	return what + " in " + Took(f.Until.Sub(f.At))
}

// iterationOf returns the beginning of a sentence about a step with a repeat block, such as
// "iteration 7 of at most 80, ". It returns "" if the step has no such block.
func iterationOf(f story.Fact) string {
	if f.Iteration == 0 {
		return ""
	}
	return story.IterationText(f.Iteration, f.Iterations) + ", "
}

// heldText returns a text that says why a step is held. The parameter `why` is the reason; "" = the
// reason is not known. The text also names the agent for which the step waits, if it is known.
func heldText(agent, why string) string {
	agent = Clean(agent)
	switch {
	case why == "full", why == "" && agent != "":
		return "held: waiting for a free slot of agent " + orText(agent, "unknown")
	case agent == "" || strings.Contains(why, agent):
		return "held" + prefixed(": ", why)
	}
	return "held: agent " + agent + ": " + why
}

// turnText returns the part of a sentence that says why a run is parked. The parameter `why` is the
// reason for which the run was parked or turned back; "" = not known. If undos have failed, the
// text first names these undos, and then `why` as the reason for which the engine had begun to undo
// the run.
func turnText(f story.Fact, why string) string {
	undo := undoBlame(f)
	if undo == "" {
		return prefixed(": ", blame(f, why))
	}
	return ": " + undo + prefixed("; it turned back because ", blame(f, why))
}

// undoBlame returns a text that names the first undos that failed, and counts the others. It
// returns "" if no undo has failed.
func undoBlame(f story.Fact) string {
	const most = 3
	if len(f.UndoFailures) == 0 {
		return ""
	}
	var names []string
	for _, u := range f.UndoFailures[:min(most, len(f.UndoFailures))] {
		names = append(names, Clean(u.Step)+prefixed(": ", reason(u.Code, u.Message)))
	}
	s := "undo failed of " + strings.Join(names, ", of ")
	if more := len(f.UndoFailures) - most; more > 0 {
		s += fmt.Sprintf(" and of %d more", more)
	}
	s += fmt.Sprintf("; %d undone, %d failed, %d blocked", f.Undone, len(f.UndoFailures), f.UndoBlocked)
	if f.LeftAsIs > 0 {
		s += fmt.Sprintf(", %d left", f.LeftAsIs)
	}
	return s
}

// blame returns a text such as "book failed: no_carrier", where no_carrier is the parameter `why`.
// If the fact names no step, blame returns only `why`.
func blame(f story.Fact, why string) string {
	if f.Step == "" {
		return why
	}
	return Clean(f.Step) + " failed" + prefixed(": ", why)
}

func attemptEnd(f story.Fact, why string) string {
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

func stepEnd(f story.Fact, why string) string {
	switch f.Status {
	case status.StepSucceeded.String():
		return "succeeded in " + Took(f.Took) + tries(f.Attempt)
	case status.StepFailed.String(), status.StepCaught.String():
		return f.Status + prefixed(": ", why) + tries(f.Attempt) + prefixed("; not repeated, because ", f.NotRepeated.Because(Clean(f.Action)))
	}
	return Clean(f.Status) + prefixed(": ", why)
}

func undoEnd(f story.Fact, why string) string {
	switch f.Status {
	case status.StepUndone.String():
		return "undone in " + Took(f.Took) + tries(f.Attempt)
	case status.StepUndoFailed.String():
		return "undo failed" + prefixed(": ", why) + tries(f.Attempt)
	}
	return undoneText(f.Status) + prefixed(": ", why)
}

// undoneText returns a text that says why the effect of a step was not undone. If it has no text
// for a `status`, it returns the status itself, without control characters.
func undoneText(status string) string {
	switch status {
	case "left_as_is":
		return "its effect is left in place, by an operator"
	case "not_undone_by_declaration":
		return `its effect stays: compensation = "none"`
	}
	return Clean(status)
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
