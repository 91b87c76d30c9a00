package model

import (
	"github.com/saga-engine/engine/dsl"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Phase is the direction in which a run goes.
type Phase uint8

// The directions. The numbers are persisted.
const (
	PhaseForward Phase = 0
	PhaseUndo    Phase = 1
)

// A Run is the part of a state that belongs to no step. Two groups of fields are behind
// pointers: fields that are set once (Head), and fields that most runs never use (Trouble).
// So a decision copies little, and it shares the groups that it does not change.
type Run struct {
	*Head
	*Trouble

	Last     Instant
	Finished Instant
	Deadline Instant // deadline of the forward part

	Records int32 // number of records applied
	Steps   int32 // number of steps; nodes with lower numbers are steps
	Owner   int32 // membership that last took the run over; 0 = no takeover since the run was accepted

	Done       int32 // number of steps that ended well
	UndonePast int32 // number of steps whose undo has ended or was not needed
	Live       int32 // number of nodes that will continue without a person
	Waits      int32 // number of these nodes that wait for a signal or a timer
	Undone     int32 // number of effects that were undone
	Left       int32 // number of effects that an operator left in place
	Undeclared int32 // number of effects that stay because the step declares compensation = "none"

	State   status.RunState
	Phase   Phase
	Begun   bool // a step has started or failed
	Paused  bool
	Parked  bool
	Passed  bool // the pivot has succeeded: the run is not undone any more
	Turning bool // the run waits to turn back until the outcome of the pivot is known
	Cancel  bool // a person asked for cancel
	NoUndo  bool // the person asked for cancel --no-compensate
	Overdue bool

	UndoExpired bool // UndoDeadline has passed, and the open undos have failed because of it
	Stuck       bool // the compensation has failed
}

// A Head holds the fields that the first record of a run sets. States and records share it.
// A draft changes only its own copy. A state may change it in place if nothing else shares
// it.
type Head struct {
	ID        status.RunID
	Name, Key string
	Vars      Held
	Trigger   string
	StartedBy string
	Workflow  string // name of the workflow; only for display
	Started   Instant
}

// A Trouble holds fields that a run without failures, pauses and waits does not use before
// it ends. States and records share it. A draft changes only its own copy. A state may
// change it in place if nothing else shares it.
type Trouble struct {
	ParkedAt Instant
	Failure  dsl.Failure

	PausedAt           Instant
	PausedBy, PauseWhy string

	LostAt  Instant // time at which the run was parked because engines died; 0 = it was not
	LostWhy string

	UndoStarted  Instant
	UndoDeadline Instant

	Holds []Hold
	// Refused holds, for each index in Holds, the time before which no call may start
	// because an earlier call was not sent. It may be shorter than Holds.
	Refused []Instant
	Outputs []Output
}

// NoHead and NoTrouble are for runs that use no field of Head or Trouble. No code may change
// them.
var (
	NoHead    = Head{}
	NoTrouble = Trouble{}
)

// A Hold is an agent that this run has waited for.
type Hold struct {
	Agent string
	Until Instant // time before which no call can start; 0 = calls wait only for a free slot
	Why   string
}

// An Output is one evaluated output of the workflow.
type Output struct {
	Name      string
	Value     Held
	Sensitive bool
	Problem   string // reason why the value is null; "" = the output was evaluated
}

// DeadlineRuns reports whether the run still changes when its deadline passes.
func (r *Run) DeadlineRuns() bool {
	return r.Phase == PhaseForward && r.Deadline != 0 && !r.Overdue && !r.Turning
}

// Lost reports whether the run is parked because engines died while they read or decided it.
func (r *Run) Lost() bool { return r.LostAt != 0 }

// Held reports whether no call of the run may start, neither forward nor for an undo. That
// is so if the run is paused, or parked because engines died (Lost).
func (r *Run) Held() bool { return r.Paused || r.Lost() }
