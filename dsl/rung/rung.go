package rung

// A Rung is one reaction of the engine to an attempt whose outcome is unknown.
type Rung string

// The rungs, in the order in which the engine tries them. For one step, only some of the rungs
// are possible.
const (
	Ask       Rung = "ask"             // the engine asks the agent whether the call had its effect
	Repeat    Rung = "repeat"          // the engine repeats the call with the same idempotency key
	UndoFirst Rung = "undo_and_repeat" // the engine undoes the possible effect, then starts the step again
	Catch     Rung = "catch"           // the failure counts as caught; whether the call had an effect stays unknown
	Fail      Rung = "fail"            // the step counts as failed; its possible effect stays, because it has no undo
	UndoByKey Rung = "undo_by_key"     // the engine calls the undo with the idempotency key of the call
	Undo      Rung = "undo"            // the engine calls the undo, which does not need the output of the call
	Learn     Rung = "learn_and_undo"  // the engine repeats the call once to get its output, then calls the undo
	Park      Rung = "park"            // the run parks: a person has to find out how the call ended
)
