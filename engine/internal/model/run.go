package model

import (
	"github.com/saga-engine/engine/dsl"

	"github.com/saga-engine/engine/engine/machine/line"
	"github.com/saga-engine/engine/engine/machine/status"
)

// A Phase is the direction of a run: forward, or undoing.
type Phase uint8

// The directions. The numbers are persisted.
const (
	PhaseForward Phase = 0
	PhaseUndo    Phase = 1
)

// A Run holds the data of a run that do not belong to one step. Two groups of fields are behind
// pointers: Head has the fields that are set once, and Rare has fields that most runs never use.
// So copying a Run costs little.
type Run struct {
	*Head
	*Rare

	Last     Instant // time of the last record
	Finished Instant // time of the end of the run; 0 = it has not ended
	Deadline Instant // deadline of the forward work; 0 = none
	// Time at which the run fails if no step has begun before; 0 = there is no such time, or a step
	// has begun.
	StartBy Instant

	Records int32 // number of records applied
	Steps   int32 // number of steps; the nodes 0 to Steps-1 are the steps
	// Number of the membership that last took the run over; 0 = there was no takeover.
	Owner int32

	Done       int32 // number of steps that ended as succeeded, skipped or caught
	UndonePast int32 // number of steps whose undo has ended or was not needed
	Live       int32 // number of nodes that will continue without a person
	Waits      int32 // number of nodes that wait for a signal, or for the end of a timer
	Undone     int32 // number of effects that were undone
	Left       int32 // number of effects that an operator left in place
	// Number of effects that stay because the step declares compensation = "none".
	Undeclared int32

	State   status.RunState
	Phase   Phase
	Begun   bool // the run is no longer queued, for example because a step has started
	Awaits  bool // the run waits for a place, or for its unique key: no step may start
	Paused  bool
	Parked  bool
	Passed  bool // the pivot has succeeded: the run is not undone any more
	Turning bool // the run should turn back, but it first waits for the outcome of the pivot
	Cancel  bool // the run was cancelled, or its parent turned back before the run started
	NoUndo  bool // the run was cancelled with --no-compensate
	Overdue bool // the deadline has passed, but the run did not turn back

	UndoExpired bool // the time UndoDeadline has passed, so all active undos have failed
	Stuck       bool // the compensation has failed: an operator must act
}

// A Head holds the fields that the first record of a run sets. Several states and records may
// point to the same Head. A decision changes only its own copy. A state changes a Head in
// place only if nothing else points to it.
type Head struct {
	ID        status.RunID
	Name, Key string
	Vars      StoredValue
	Trigger   string
	StartedBy string
	Workflow  string    // name of the workflow; only for display
	Line      line.Line // priority of the run, and the limit that it shares with other runs
	Started   Instant
	Parent    Parent // only for a child run
	// Where the replies of the run go; nil = the run has no replies. No code changes a ReplyTo. It
	// is behind a pointer because most runs have none.
	Reply *ReplyTo
}

// A ReplyTo says where the engines post the replies of a run. The submitter names it.
type ReplyTo struct {
	Sink        string // such as table:orders
	Correlation string // a text of the submitter, which each reply repeats; it may be ""
}

// target returns the ReplyTo as a value. It returns the zero value if t is nil.
func (t *ReplyTo) target() ReplyTo {
	if t == nil {
		return ReplyTo{}
	}
	return *t
}

// A Parent says which step of which run started a child run. The zero Parent belongs to a run
// that no other run has started.
type Parent struct {
	Run  status.RunID // internal id of the run that started the child
	Name string       // public id of the run that started the child
	Step string       // name of the step or instance that started the child
}

// A Rare holds the fields about failures, pauses and waits, and the outputs of the run.
// Most runs use none of these fields before they end. Several states and records may point to
// the same Rare. A decision changes only its own copy. A state changes a Rare in place
// only if nothing else points to it.
type Rare struct {
	ParkedAt Instant
	Failure  dsl.Failure

	PausedAt           Instant
	PausedBy, PauseWhy string

	// Time at which the run was parked because engines died while they read or decided it; 0 =
	// it is not parked for this reason.
	LostAt  Instant
	LostWhy string

	UndoStarted  Instant
	UndoDeadline Instant

	Bound Bound // only for a child run: the two times from which its deadline follows

	Holds []Hold
	// Refused[h] is the earliest time for the next call of the agent Holds[h], after the engine
	// refused to send a call; 0 = none. The slice Refused may have fewer elements than Holds; a
	// missing element counts as 0.
	Refused []Instant
	Outputs []Output

	Moves []Move // definitions to which the run was moved (engine migrate), in order; nil = none
	// Runs whose results this run has taken over (engine restart), the oldest first. A restart of
	// the last of them has started this run; nil = this run has taken over nothing.
	Ancestors []Ancestor
}

// A Bound holds the two times from which the deadline of a child run follows: the earlier one
// counts. In both fields, 0 means that there is no such time. The zero Bound belongs to a run
// without a parent. It also belongs to a run that was started by an older engine, which did not
// store the two times.
type Bound struct {
	// The run's own deadline. It comes from the workflow. A person or a move may have changed it.
	Own   Instant
	Until Instant // time until which the parent waits
}

// NoHead is the Head of a run that uses no field of Head. NoRare is the Rare of a run
// that uses no field of Rare. No code may change them.
var (
	NoHead = Head{}
	NoRare = Rare{}
)

// A Hold describes an agent for which steps of the run wait or have waited.
type Hold struct {
	Agent string
	Until Instant // time before which no call can start; 0 = calls wait only for a free slot
	Why   string
}

// An Output is one evaluated output of the workflow.
type Output struct {
	Name      string
	Value     StoredValue
	Sensitive bool
	Problem   string // reason why the value is null; "" = the output was evaluated
}

// Undoable reports whether the run turns back when its parent asks for the undo of this run. Only a
// child run that has succeeded and has not passed a pivot turns back.
func (r *Run) Undoable() bool {
	return r.State == status.RunSucceeded && r.Parent.Run != 0 && !r.Passed
}

// DeadlineRuns reports whether the engine must act when the deadline of the run passes.
func (r *Run) DeadlineRuns() bool {
	return r.Phase == PhaseForward && r.Deadline != 0 && !r.Overdue && !r.Turning
}

// Begin records that a step has begun. After that, the run never becomes queued again (S53).
func (r *Run) Begin() { r.Begun, r.StartBy = true, 0 }

// MustStart reports whether the run fails at the time StartBy, if no step begins before.
func (r *Run) MustStart() bool {
	return r.StartBy != 0 && r.Phase == PhaseForward && !r.Parked && r.Finished == 0
}

// Lost reports whether the run is parked because engines died while they read or decided it.
func (r *Run) Lost() bool { return r.LostAt != 0 }

// Held reports whether no call of the run may start, neither forward nor for an undo. No call may
// start if the run is paused, or if it is parked because engines died (Lost).
func (r *Run) Held() bool { return r.Paused || r.Lost() }
