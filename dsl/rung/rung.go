package rung

// A Rung is one thing that follows an attempt whose outcome is unknown.
type Rung string

// The rungs, in the order in which they are tried.
const (
	Ask       Rung = "ask"             // the action is asked what became of the call
	Repeat    Rung = "repeat"          // the call is repeated under its key
	UndoFirst Rung = "undo_and_repeat" // what may have been done is undone, then the step starts anew
	Catch     Rung = "catch"           // the step is caught, its effect stays in doubt
	Fail      Rung = "fail"            // an ordinary failure: the step is never undone
	UndoByKey Rung = "undo_by_key"     // the undo is called with the key of the call
	Undo      Rung = "undo"            // the undo is called, which needs no output
	Learn     Rung = "learn_and_undo"  // the call is repeated once for its output, then undone
	Park      Rung = "park"            // a person has to find out
)
