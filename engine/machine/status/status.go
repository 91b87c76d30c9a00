package status

import "fmt"

// RunID is the internal id of a run: a positive number that rises with time. The engine
// that accepts the run chooses it.
type RunID int64

// RunState is the state of a run. The numbers are persisted. Numbers below 10 are states of
// runs that have not ended.
type RunState uint8

// The states of a run.
const (
	RunInvalid RunState = 0
	RunQueued  RunState = 1 // accepted; nothing has started
	RunRunning RunState = 2
	// No agent works for the run: each open step waits for a time or a signal. A run that waits for
	// its place or key also has this state, if it is not queued any more, for example after a pause.
	RunWaiting            RunState = 3
	RunPaused             RunState = 4
	RunCompensating       RunState = 5
	RunParked             RunState = 6 // the run waits for a person
	RunCompensationFailed RunState = 7 // an undo has failed, and the run waits for a person
	RunSucceeded          RunState = 10
	RunFailed             RunState = 11 // the run turned back, and no effect had to be undone
	RunCompensated        RunState = 12 // the run turned back; its effects were undone or left
	RunCancelled          RunState = 13
)

// Overdue is the word for a run whose deadline has passed, but which is not undone. Overdue is not
// a state of a run, but a notify block can announce it like a state.
const Overdue = "overdue"

// Final reports whether the run has ended.
func (s RunState) Final() bool { return s >= RunSucceeded }

// NeedsHuman reports whether the run waits for a person, because it cannot continue alone. It
// returns false for a paused run, because a person asked for the pause.
func (s RunState) NeedsHuman() bool { return s == RunParked || s == RunCompensationFailed }

// String returns the state's name as users see it.
func (s RunState) String() string {
	if n, ok := runStates[s]; ok {
		return n
	}
	return fmt.Sprintf("RunState(%d)", uint8(s))
}

var runStates = map[RunState]string{
	RunQueued: "queued", RunRunning: "running", RunWaiting: "waiting", RunPaused: "paused",
	RunCompensating: "compensating", RunParked: "parked", RunCompensationFailed: "compensation_failed",
	RunSucceeded: "succeeded", RunFailed: "failed", RunCompensated: "compensated", RunCancelled: "cancelled",
}

// ParseRunState returns the state with the given name, and true. It returns false if no state
// has this name.
func ParseRunState(name string) (RunState, bool) {
	for s, n := range runStates {
		if n == name {
			return s, true
		}
	}
	return RunInvalid, false
}

// StepState is the state of a step or of one of its instances. The numbers are persisted.
type StepState uint8

// String returns the state's name as users see it.
func (s StepState) String() string {
	if n, ok := stepStates[s]; ok {
		return n
	}
	return fmt.Sprintf("StepState(%d)", uint8(s))
}

// The states of a step.
const (
	StepInvalid StepState = 0
	StepPending StepState = 1
	StepRunning StepState = 2
	// The step could start, but its agent takes no call now: for example, no slot is free, a secret
	// is missing, or the circuit is open. The same state means that the run may start no call,
	// because it is paused or parked.
	StepHeld StepState = 3
	// The step is in a pause before its next attempt or iteration, or it is undone before its next
	// attempt.
	StepBackoff    StepState = 4
	StepWaiting    StepState = 5 // the step waits for a time, a signal or its instances
	StepSucceeded  StepState = 6
	StepSkipped    StepState = 7
	StepCaught     StepState = 8
	StepFailed     StepState = 9
	StepCancelled  StepState = 10 // the run turned back before the step ended
	StepUndoing    StepState = 11
	StepUndone     StepState = 12
	StepUndoFailed StepState = 13
)

var stepStates = map[StepState]string{
	StepPending: "pending", StepRunning: "running", StepHeld: "held", StepBackoff: "backoff", StepWaiting: "waiting",
	StepSucceeded: "succeeded", StepSkipped: "skipped", StepCaught: "caught", StepFailed: "failed",
	StepCancelled: "cancelled", StepUndoing: "undoing", StepUndone: "undone", StepUndoFailed: "undo_failed",
}

// Effect says whether a step has changed something in the remote service: no (EffectNone), maybe
// (EffectMaybe) or yes (EffectDone). The undo of a run depends on effects only, not on the states
// of steps.
type Effect uint8

// Values of Effect.
const (
	EffectNone Effect = 0
	// An attempt was started, and it did not end in a definite failure, or a checkpoint is recorded.
	EffectMaybe Effect = 1
	EffectDone  Effect = 2
)

// String returns the effect's name.
func (e Effect) String() string {
	switch e {
	case EffectNone:
		return "none"
	case EffectMaybe:
		return "maybe"
	case EffectDone:
		return "done"
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}
