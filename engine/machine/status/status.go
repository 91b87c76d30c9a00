package status

import "fmt"

// RunID is a run's internal id: a positive, time-ordered number minted by the
// engine that accepts the run.
type RunID int64

// RunState is the state of a run. Numbers are persisted; states below 10 are
// not final.
type RunState uint8

// The states of a run.
const (
	RunInvalid            RunState = 0
	RunQueued             RunState = 1 // accepted, nothing started
	RunRunning            RunState = 2
	RunWaiting            RunState = 3 // nothing to do until a signal, a timer or a child
	RunPaused             RunState = 4
	RunCompensating       RunState = 5
	RunParked             RunState = 6 // needs a human
	RunCompensationFailed RunState = 7 // needs a human
	RunSucceeded          RunState = 10
	RunFailed             RunState = 11 // a failure with nothing to undo
	RunCompensated        RunState = 12 // a failure and everything undone
	RunCancelled          RunState = 13
)

// Final reports whether the run has ended.
func (s RunState) Final() bool { return s >= RunSucceeded }

// NeedsHuman reports whether only a person can move the run on.
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

// ParseRunState returns the state with the given name.
func ParseRunState(name string) (RunState, bool) {
	for s, n := range runStates {
		if n == name {
			return s, true
		}
	}
	return RunInvalid, false
}

// StepState is the state of a step or of one of its instances. Numbers are
// persisted.
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
	StepInvalid    StepState = 0
	StepPending    StepState = 1
	StepRunning    StepState = 2
	StepHeld       StepState = 3 // ready, but no slot, an open circuit, a missing secret
	StepBackoff    StepState = 4
	StepWaiting    StepState = 5
	StepSucceeded  StepState = 6
	StepSkipped    StepState = 7
	StepCaught     StepState = 8
	StepFailed     StepState = 9
	StepCancelled  StepState = 10 // not started, or stopped before an attempt
	StepUndoing    StepState = 11
	StepUndone     StepState = 12
	StepUndoFailed StepState = 13
)

var stepStates = map[StepState]string{
	StepPending: "pending", StepRunning: "running", StepHeld: "held", StepBackoff: "backoff", StepWaiting: "waiting",
	StepSucceeded: "succeeded", StepSkipped: "skipped", StepCaught: "caught", StepFailed: "failed",
	StepCancelled: "cancelled", StepUndoing: "undoing", StepUndone: "undone", StepUndoFailed: "undo_failed",
}

// Effect says what a step may have left behind. Undo looks at it only.
type Effect uint8

// The effects.
const (
	EffectNone  Effect = 0
	EffectMaybe Effect = 1 // an attempt was sent and did not end in a definite failure
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
