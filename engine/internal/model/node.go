package model

import (
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Node is a step or one instance of a for_each step. Fields that most nodes never use
// lie behind a pointer (More).
type Node struct {
	Key  string
	Each Held // each.value

	Input    Held
	Output   Held // of the action
	Attempts []Attempt

	Fwd   Track
	Quiet Instant // before it an attempt that nobody waits for may still be running
	Queue Instant // when it began to wait for its agent; 0 = it does not
	*More

	Step  int32
	Deps  int32 // dependencies that have ended well
	Back  int32 // dependents whose undo has passed
	Doubt int32 // attempts sent that were not answered by a definite failure
	Calls int32
	Gen   int32 // raised by retry --new-key
	Hold  int32 // place in Run.Holds plus one; 0 = it waits for no agent

	State     status.StepState // forward
	Undo      UndoState
	Item      bool // an instance
	Expanded  bool // a for_each step whose instances are nodes
	Prepared  bool // input and keys are evaluated
	Known     bool // output is the action's result
	Done      bool // there was a result
	TimedOut  bool
	Clearing  bool // its undo is called before another attempt; Undo says how far that is
	UndoReady bool // undo input is evaluated
}

// An UndoState says how far the undo of a node has come.
type UndoState uint8

// The states of an undo. Numbers are persisted.
const (
	UndoNone     UndoState = 0 // the run goes forward
	UndoPending  UndoState = 1 // waits for its dependents, or for its own attempts to end
	UndoActive   UndoState = 2
	UndoDone     UndoState = 3
	UndoFailed   UndoState = 4
	UndoLeft     UndoState = 5 // an operator left the effect in place
	UndoDeclared UndoState = 6 // compensation = "none"
	UndoNothing  UndoState = 7 // no effect
)

// A More holds the fields that most nodes never use. It is never nil. Nodes and records
// share it; only a draft changes its own copy, or a state that nothing else refers to.
type More struct {
	// A for_each step only: its instances are nodes first to first+count-1.
	First  int
	Count  int
	Next   int // instances begun
	Active int // instances begun and not ended
	Over   int // instances ended
	Bad    int // instances failed
	Past   int // instances whose undo has passed

	Data   Held   // what the agent sent with the last failure
	Caught Held   // substitute output of catch
	BizKey string // idempotency_key, if stated
	Manual string // who settled or skipped it last, for people
	Stated Statement
	Signal Reception
	Point  int // last checkpoint
	Blob   []byte

	Und       Track
	UndoInput Held
	UndoDoubt int // undo attempts with an unknown outcome
	UndoPoint int // last checkpoint of the undo
	UndoBlob  []byte
}

// A Reception says for which signals a wait waits, and which one has ended it.
type Reception struct {
	Awaits string // names, one a line; "" = the step does not wait
	Name   string // of the signal that has ended the wait; "" = none has
	Number int32  // of that signal, in the order in which the run took signals, from 1; 0 = none
}

// A Statement says what followed from a settlement that can still be corrected.
// Numbers are persisted.
type Statement uint8

// The statements.
const (
	StatedNothing Statement = 0 // no settlement, or a call was made since
	StatedEffect  Statement = 1 // it says what is left behind, no more
	StatedEnd     Statement = 2 // the step ended by it, or waits for a person
)

func forwardEnded(s status.StepState) bool {
	return s >= status.StepSucceeded && s <= status.StepCancelled
}
