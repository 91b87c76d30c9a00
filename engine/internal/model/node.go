package model

import (
	"slices"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Node is a step or one instance of a for_each step. The struct More holds the fields that
// most nodes never use.
type Node struct {
	Key  string      // each.key of an instance; "" for a step
	Each StoredValue // each.value of an instance; zero for a step

	Input    StoredValue
	Output   StoredValue // output of the action
	Attempts []Attempt

	Fwd Track
	// Time until which the agent may still work on a closed attempt; 0 = there is no such time.
	MayWorkUntil Instant
	// Queue orders the nodes that wait for an agent: the node with the earliest Queue starts first.
	// Queue is the time at which the node began to wait; 0 = the node does not wait. If the step
	// has a higher priority than the run, Queue is earlier by line.PerPoint for each point of the
	// difference. If the step has a lower priority, Queue is later by the same amount.
	Queue Instant
	*More

	Step  int32
	Deps  int32 // number of dependencies that ended as succeeded, skipped or caught
	Back  int32 // number of dependent steps whose undo has ended or was not needed
	Doubt int32 // number of sent attempts without a definite failure: each may have had an effect
	Calls int32 // number of calls made so far; the next call gets the next number
	// Number of times that the node has got a new idempotency key, for example by
	// `retry --new-key` or by an undo before the next attempt.
	Gen  int32
	Hold int32 // index in Run.Holds of the awaited agent, plus one; 0 = the node waits for no agent

	State    status.StepState // state of the forward work
	Undo     UndoState        // state of the undo
	Item     bool             // the node is an instance of a for_each step
	Expanded bool             // the node is a for_each step whose instances were created
	Prepared bool             // the input and idempotency_key were evaluated
	Known    bool             // the field Output holds the output, from a call or from a person
	Done     bool             // the effect exists: a call succeeded, or a person stated that it did
	// True in two cases. First, an attempt has timed out, and no later attempt has succeeded.
	// Second, the deadline of a wait step has passed.
	TimedOut bool
	// The node is being undone before its next attempt. The field Undo holds the state of this
	// undo.
	Clearing  bool
	UndoReady bool // the input of the undo was evaluated
}

// An UndoState says how far the undo of a node has come.
type UndoState uint8

// The states of an undo. The numbers are persisted.
const (
	UndoNone UndoState = 0 // the run goes forward, and this node is not being undone
	// The undo waits for the undo of dependent steps, or for the end of the node's own
	// attempts.
	UndoPending  UndoState = 1
	UndoActive   UndoState = 2
	UndoDone     UndoState = 3
	UndoFailed   UndoState = 4
	UndoLeft     UndoState = 5 // an operator left the effect in place
	UndoDeclared UndoState = 6 // no undo is made, because the step declares no undo
	UndoNothing  UndoState = 7 // there is no effect to undo
)

// A More holds the fields of a node that most nodes never use. Node.More is never nil. Several
// nodes and records may point to the same More. A decision changes only its own copy. A state
// changes a More only if nothing else points to it.
type More struct {
	// The fields from First to Past are only for a for_each step. Its instances are the nodes
	// First to First+Count-1.
	First  int
	Count  int
	Next   int // number of the instance to begin next, counted from 0 within the step
	Active int // number of instances that have begun, but have not ended
	Over   int // number of instances that have ended
	Bad    int // number of instances that have failed
	Past   int // number of instances whose undo has ended or was not needed

	Data   StoredValue // data of the last failure (error.data); null = no data
	Caught StoredValue // output that the catch block gave to a failed step
	BizKey string      // value of idempotency_key; "" = the step does not set it
	// The person who last used `engine settle` for the step, or who repeated or skipped its
	// failed undo; "" = no person did.
	Manual string
	// Last decision of a person with `engine settle`; StatedNothing = there was no decision, or no
	// person can correct it any more.
	Stated Statement
	Signal Reception // signals of a wait step; zero = the step has not begun to wait for a signal
	Point  int       // number of the last checkpoint of the action, as the agent gave it
	Blob   []byte    // data of the last checkpoint of the action; empty = no data

	Loop Loop // present iteration of a repeat step
	// Arguments that the step gave to a declared action, for self.input. Only a repeat step whose
	// arguments use self.previous or self.collected stores them, because these values change after
	// the call. Any other step can compute its arguments again. Null = not stored.
	Given     StoredValue
	Last      StoredValue // output of the previous iteration; null = this is the first iteration
	Collected *Collected  // values that a repeat step has collected

	// Says which effects of the node's child runs remain after these runs have ended. The undo of
	// this node cannot remove such effects. So no element of Kept is ever removed.
	Kept   status.Kept
	Handed Handover // early signals for the run of a group; zero = none

	Und       Track
	UndoInput StoredValue
	UndoDoubt int    // number of undo attempts whose outcome is unknown
	UndoPoint int    // number of the last checkpoint of the undo, as the agent gave it
	UndoBlob  []byte // data of the last checkpoint of the undo; empty = no data
}

// A Reception says for which signals a step waits or waited, and which signal ended the wait.
type Reception struct {
	Awaits string // names of the signals, one per line; "" = the step has not begun to wait
	Name   string // name of the signal that ended the wait; "" = no signal ended it
	// Number of the signal that ended the wait; 0 = no signal ended it. A run numbers its signals
	// from 1, in the order in which it accepted them.
	Number int32
}

// A Handover says which early signals of a run belong to the run of a group, or to the run of one
// instance of the group. The call that starts the run of the group carries these signals. If an
// engine sends the call again, the call carries the same signals.
type Handover struct {
	Gen int32 // Node.Gen at the time of the handover: with another Gen, the node starts another run
	// Absent is true if the last call has failed, and no run of the group exists. In this case the
	// signals are for the next call.
	Absent bool
	// Numbers of the signals (Signal.Number); no code changes the list after it was made.
	Signals []int32
}

func (h *Handover) same(o *Handover) bool {
	return h.Gen == o.Gen && h.Absent == o.Absent && slices.Equal(h.Signals, o.Signals)
}

// A Statement says what a person decided about an unknown outcome (engine settle). When no person
// can correct the decision any more, the engine sets StatedNothing. The numbers are persisted.
type Statement uint8

// Values of Statement.
const (
	StatedNothing Statement = 0 // no person decided, or the decision cannot be corrected any more
	StatedEffect  Statement = 1 // a person decided only whether the step has an effect
	StatedEnd     Statement = 2 // a person decided the effect, and also how the step ended
)

func forwardEnded(s status.StepState) bool {
	return s >= status.StepSucceeded && s <= status.StepCancelled
}

// An InstanceName is the name of an instance that a record adds.
type InstanceName struct {
	Node int
	Step int
	Name string // name of the instance, such as ship["berlin"]
}
