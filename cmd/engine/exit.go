package main

import (
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// Exit codes. They are part of the interface and never change their meaning.
const (
	exitOK      = 0 // done: run succeeded, or nothing to do, or valid
	exitFailed  = 1 // could not do it: diagnostics, database, usage, I/O
	exitChanges = 2 // plan --detailed-exitcode: there is work
	exitFormat  = 3 // fmt --check: files would change
	exitClean   = 4 // run ended not succeeded; at most effects with compensation = "none" are left
	exitHuman   = 5 // run needs a human, or a human left effects in place
	exitOpen    = 6 // run still open when the command ended
	exitUnsure  = 7 // run may have been accepted: the state did not answer
)

// exitRun is the exit code of a run in a state, with left effects that
// operators left in place.
func exitRun(s status.RunState, left int) int {
	switch {
	case s.NeedsHuman(), left > 0 && s.Final():
		return exitHuman
	case s == status.RunSucceeded:
		return exitOK
	case s.Final():
		return exitClean
	}
	return exitOpen
}

// exitOfFact is the exit code that a fact leads to, or negative if the fact
// does not end the command.
func exitOfFact(f story.Fact) int {
	switch f.Kind {
	case story.FactRunFinished, story.FactRunParked:
		s, ok := status.ParseRunState(f.Status)
		if !ok {
			return exitHuman
		}
		return exitRun(s, f.LeftAsIs)
	}
	return -1
}

// An exitError ends the command with a code; everything that was to be said
// has been said.
type exitError int

// Error exists for the interface; nobody prints it.
func (e exitError) Error() string { return "exit" }
