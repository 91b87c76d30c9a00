package model

import (
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Node is a step or one instance of a for_each step. Fields that most nodes never use are
// behind a pointer (More).
type Node struct {
	Key  string
	Each Held // each.value of an instance

	Input    Held
	Output   Held // output of the action
	Attempts []Attempt

	Fwd   Track
	Quiet Instant // until this time a closed attempt may still be running
	Queue Instant // time at which the node began to wait for its agent; 0 = it does not wait
	*More

	Step  int32
	Deps  int32 // number of dependencies that have ended well
	Back  int32 // number of dependents whose undo has ended or was not needed
	Doubt int32 // number of attempts sent that did not end in a definite failure
	Calls int32
	Gen   int32 // generation of the idempotency key; retry --new-key and an undo raise it
	Hold  int32 // index in Run.Holds plus one; 0 = the node waits for no agent

	State     status.StepState // state of the forward part
	Undo      UndoState
	Item      bool // the node is an instance
	Expanded  bool // the node is a for_each step whose instances were created
	Prepared  bool // the input and the keys were evaluated
	Known     bool // Output holds the action's output, from a call or from a person
	Done      bool // the effect exists: a call succeeded, or a person stated it
	TimedOut  bool
	Clearing  bool // the node is being undone before its next attempt; Undo says how far that has come
	UndoReady bool // the input of the undo was evaluated
}

// An UndoState says how far the undo of a node has come.
type UndoState uint8

// The states of an undo. The numbers are persisted.
const (
	UndoNone     UndoState = 0 // the run goes forward
	UndoPending  UndoState = 1 // waits for the undo of its dependents, or for the end of its own attempts
	UndoActive   UndoState = 2
	UndoDone     UndoState = 3
	UndoFailed   UndoState = 4
	UndoLeft     UndoState = 5 // an operator left the effect in place
	UndoDeclared UndoState = 6 // the step declares no undo
	UndoNothing  UndoState = 7 // there is no effect to undo
)

// A More holds the fields of a node that most nodes never use. Node.More is never nil.
// Nodes and records share a More. Only a draft may change it, on its own copy. A state may
// also change it if its nodes are private.
type More struct {
	// Only for a for_each step: its instances are the nodes First to First+Count-1.
	First  int
	Count  int
	Next   int // number of instances that have begun
	Active int // number of instances that have begun and not ended
	Over   int // number of instances that have ended
	Bad    int // number of instances that have failed
	Past   int // number of instances whose undo has ended or was not needed

	Data   Held   // data that the agent sent with the last failure
	Caught Held   // output that catch gives to a failed step
	BizKey string // idempotency_key of the step, if it states one
	Manual string // the person who last settled or skipped the step
	Stated Statement
	Signal Reception // of a wait
	Point  int       // number of the last checkpoint
	Blob   []byte

	Und       Track
	UndoInput Held
	UndoDoubt int // number of attempts of the undo with unknown outcome
	UndoPoint int // number of the last checkpoint of the undo
	UndoBlob  []byte
}

// A Reception says for which signals a wait waits, and which one has ended it.
type Reception struct {
	Awaits string // names, one a line; "" = the step does not wait
	Name   string // of the signal that has ended the wait; "" = none has
	Number int32  // of that signal, in the order in which the run took signals, from 1; 0 = none
}

// A Statement says what relies on a settlement that can still be corrected. The numbers are
// persisted.
type Statement uint8

// Values of Statement.
const (
	StatedNothing Statement = 0 // there is no settlement, or it cannot be corrected any more
	StatedEffect  Statement = 1 // the settlement decided only the effect
	StatedEnd     Statement = 2 // the settlement decided the end of the step as well
)

func forwardEnded(s status.StepState) bool {
	return s >= status.StepSucceeded && s <= status.StepCancelled
}
