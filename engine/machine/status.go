package machine

import "github.com/saga-engine/engine/engine/machine/status"

// The names of states are those of package status, which documents them: the data of a
// run and the rules use the same ones.
type (
	RunID     = status.RunID     // a run's internal id
	RunState  = status.RunState  // the state of a run
	StepState = status.StepState // the state of a step or of one of its instances
	Effect    = status.Effect    // what a step may have left behind
)

// The states of a run; those from RunSucceeded on are final.
const (
	RunInvalid            = status.RunInvalid
	RunQueued             = status.RunQueued
	RunRunning            = status.RunRunning
	RunWaiting            = status.RunWaiting
	RunPaused             = status.RunPaused
	RunCompensating       = status.RunCompensating
	RunParked             = status.RunParked
	RunCompensationFailed = status.RunCompensationFailed
	RunSucceeded          = status.RunSucceeded
	RunFailed             = status.RunFailed
	RunCompensated        = status.RunCompensated
	RunCancelled          = status.RunCancelled
)

// The states of a step.
const (
	StepInvalid    = status.StepInvalid
	StepPending    = status.StepPending
	StepRunning    = status.StepRunning
	StepHeld       = status.StepHeld
	StepBackoff    = status.StepBackoff
	StepWaiting    = status.StepWaiting
	StepSucceeded  = status.StepSucceeded
	StepSkipped    = status.StepSkipped
	StepCaught     = status.StepCaught
	StepFailed     = status.StepFailed
	StepCancelled  = status.StepCancelled
	StepUndoing    = status.StepUndoing
	StepUndone     = status.StepUndone
	StepUndoFailed = status.StepUndoFailed
)

// The effects.
const (
	EffectNone  = status.EffectNone
	EffectMaybe = status.EffectMaybe
	EffectDone  = status.EffectDone
)

// ParseRunState returns the state with the given name.
func ParseRunState(name string) (RunState, bool) { return status.ParseRunState(name) }
