package model

import (
	"github.com/saga-engine/engine/dsl"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A Phase is the direction a run goes.
type Phase uint8

// The directions. Numbers are persisted.
const (
	PhaseForward Phase = 0
	PhaseUndo    Phase = 1
)

// A Run is the part of a state that belongs to no step. Fields that are set once (Head)
// and fields that most runs never use (Trouble) lie behind pointers, so that a decision
// copies little and shares what it does not change.
type Run struct {
	*Head
	*Trouble

	Last     Instant
	Finished Instant
	Deadline Instant // of the forward part

	Records int32 // records applied
	Steps   int32 // number of steps; nodes below it are steps
	Owner   int32 // membership that took the run over last; 0 = the one that accepted it

	Done       int32 // steps that ended well
	UndonePast int32 // steps whose undo has finished or was passed through
	Live       int32 // nodes with an open attempt, a queue place or a wake-up
	Waits      int32 // of these, nodes that wait for a signal or a timer
	Undone     int32 // effects undone
	Left       int32 // effects operators left in place
	Undeclared int32 // effects not undone by declaration

	State   status.RunState
	Phase   Phase
	Begun   bool // something was started
	Paused  bool
	Parked  bool
	Passed  bool // the pivot has succeeded: nothing is undone any more
	Turning bool // a turn waits for the pivot's outcome
	Cancel  bool // cancel was asked
	NoUndo  bool // with --no-compensate
	Overdue bool

	UndoExpired bool // UndoDeadline has passed, and the open undos have failed for that
	Stuck       bool // compensation_failed
}

// A Head holds what the first record says about the run. States and records share it;
// only a draft changes its own copy.
type Head struct {
	ID        status.RunID
	Name, Key string
	Vars      Held
	Trigger   string
	StartedBy string
	Workflow  string // name, for views
	Started   Instant
}

// A Trouble holds what a run without failures, pauses and waits never uses before it
// ends. States and records share it; only a draft changes its own copy.
type Trouble struct {
	ParkedAt Instant
	Failure  dsl.Failure

	PausedAt           Instant
	PausedBy, PauseWhy string

	LostAt  Instant // when the run was parked because engines died with it; 0 = it is not
	LostWhy string

	UndoStarted  Instant
	UndoDeadline Instant

	Holds   []Hold
	Refused []Instant // by place in Holds: a call was not sent, and none starts before; may be shorter than Holds
	Outputs []Output
}

// NoHead and NoTrouble are used where a run has none. They are never changed.
var (
	NoHead    = Head{}
	NoTrouble = Trouble{}
)

// A Hold is an agent that this run has waited for.
type Hold struct {
	Agent string
	Until Instant // nothing can start before; 0 = until a slot frees
	Why   string
}

// An Output is one evaluated output of the workflow.
type Output struct {
	Name      string
	Value     Held
	Sensitive bool
	Problem   string // why the value is null
}

// DeadlineRuns reports whether the passing of the run's deadline would still change
// something.
func (r *Run) DeadlineRuns() bool {
	return r.Phase == PhaseForward && r.Deadline != 0 && !r.Overdue && !r.Turning
}

// Lost reports whether the run is parked because engines died with it.
func (r *Run) Lost() bool { return r.LostAt != 0 }

// Held reports whether the run is held whichever way it goes: it is paused, or
// engines died with it.
func (r *Run) Held() bool { return r.Paused || r.Lost() }
