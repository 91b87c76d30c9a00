package exit

import (
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// Exit codes. They are part of the interface and never change their meaning.
const (
	OK      = 0 // done: run succeeded, or nothing to do, or valid
	Failed  = 1 // command failed: error in a workflow, the flags, the database or I/O
	Changes = 2 // plan --detailed-exitcode: apply would start or continue a run
	Format  = 3 // fmt --check: files would change
	Clean   = 4 // run ended without success, and has undone all that the workflow lets it undo
	Human   = 5 // run needs a human, or a human left effects in place
	Open    = 6 // run still open when the command ended
	Unsure  = 7 // run may have been accepted: the state did not answer
)

// A Code is an error that ends the command with this exit code. The command has
// printed its message before.
type Code int

// Error makes a Code an error. It is never printed.
func (e Code) Error() string { return "exit" }

// OfRun returns the exit code for a run with the status s. The parameter `left` is the number
// of effects of the run that operators decided not to undo.
func OfRun(s status.RunState, left int) int {
	switch {
	case s.NeedsHuman(), left > 0 && s.Final():
		return Human
	case s == status.RunSucceeded:
		return OK
	case s.Final():
		return Clean
	}
	return Open
}

// OfFact returns the exit code with which a fact ends the command; negative = the fact does
// not end it.
func OfFact(f story.Fact) int {
	switch f.Kind {
	case story.FactRunFinished, story.FactRunParked:
		s, ok := status.ParseRunState(f.Status)
		if !ok {
			return Human
		}
		return OfRun(s, f.LeftAsIs)
	}
	return -1
}
