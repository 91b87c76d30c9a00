package story

import (
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A Fact is one change of a run, computed from a record, as users see it: the events of
// `apply`, `watch` and `show --events` (S87). The facts of a run are numbered from 1 without
// gaps, in the order of its records. If only some kinds of facts have a field, the comment of
// the field names these kinds.
type Fact struct {
	Kind    FactKind
	At      time.Time
	Run     string  // run_created: public name of the run
	Key     string  // run_created: unique key of the run, or ""
	Step    string  // name of the step, with ["key"] for an instance, or ""
	Action  string  // the action that is called, as AGENT.ACTION, or ""
	Agent   string  // step_held: the agent for which the step waits
	Purpose Purpose // purpose of this attempt, or of the next attempt; "" = none
	// Number of the attempt in its round, counted from 1; 0 = no attempt. In retry_scheduled, it is
	// the number of the next attempt. In step_finished and undo_finished, it is the number of
	// attempts in all rounds.
	Attempt int
	Of      int // number of attempts allowed in this round; 0 = not known, dsl.Unbounded = no limit
	// Number of the iteration, counted from 1, and the largest number of iterations (0 = no limit,
	// or not known). Only these facts about a step with a repeat block set the two fields:
	// attempt_started and wait_started, and retry_scheduled if the pause is before an iteration. In
	// retry_scheduled, it is the number of the next iteration.
	Iteration, Iterations int
	Undo                  bool // the fact is about the undo of the step
	// Number of instances of the for_each step; 0 = the step has no for_each. Only attempt_started,
	// attempt_finished, step_held, retry_scheduled and wait_started set this field.
	Among int

	Awaits []string // wait_started: names of the signals for which the step waits; nil = a timer
	Signal string   // signal_received: name of the signal
	// signal_received: the run had accepted a signal with the same id before, so this signal
	// changes nothing.
	Known bool

	// In step_finished, undo_finished, run_finished and run_parked: the new state of the step or
	// status of the run. In attempt_finished: ok, failed, unknown, not_sent, not_done or needless.
	// In a fact about a verb: accepted, refused or overdue.
	Status string
	// Failure code, or "". In a fact about a verb: name of the verb; "" = the run is overdue. In a
	// fact of the kind signal_received: error code with which the signal makes a step fail, or "".
	Code string
	// Failure message, or "". In a fact about a verb or a signal: the reason that the person or the
	// engine gave. In step_held: why the step is held. In attempt_progress: the note of the agent.
	// In run_admitted: a remark, or "".
	Message string
	// NotRepeated says why the last call of a failed step was not repeated; "" = no reason to
	// show.
	NotRepeated NotRepeated
	// attempt_finished, step_finished, undo_finished, run_finished: duration of the attempt,
	// step, undo or run.
	Took       time.Duration
	CompleteBy time.Time // attempt_started, attempt_finished: complete-by of the attempt
	// retry_scheduled, step_held, wait_started: the time at which the step continues; zero =
	// not known, or the step waits for a signal.
	Until    time.Time
	CoolDown bool // retry_scheduled: the pause is a cool-down, and a new round of attempts follows
	// In a fact about a verb or a signal: the person who sent it. In run_created: the person who
	// started the run.
	By      string
	Unowned bool // run_taken_over: the run had no owner before
	// In a fact about a verb or a signal, in run_taken_over and in run_admitted: the status of the
	// run after this record, if the run then needs a person or has ended; "" = neither. A refused
	// verb, for example, leaves a parked run parked.
	Rest string
	// In a fact about a verb or a signal: id of the message with which it reached the run; 0 = it
	// came without a message.
	Ask int64

	// Deadlines; zero = none. The facts attempt_started, attempt_finished, step_held,
	// retry_scheduled and wait_started have StepDeadline, or UndoDeadline if they are about an
	// undo. The fact undo_started has UndoDeadline, too. In a fact about an instance, StepDeadline
	// is the deadline of its for_each step.
	StepDeadline         time.Time
	UndoDeadline         time.Time
	RunDeadline          time.Time // run_created: deadline of the run
	CompensationDeadline time.Time // run_turned: deadline of all undo work

	Outputs []NamedValue // run_finished: outputs of the run
	Undone  int          // run_finished, run_parked: number of effects that were undone
	// run_finished, run_parked: number of effects that operators left in place.
	LeftAsIs int
	// run_finished: number of effects that stay because of compensation = "none".
	Undeclared int
	// run_finished: names of the steps and instances whose effects stay because of
	// compensation = "none".
	Kept         []string
	UndoFailures []UndoFailure // run_parked: the undos that have failed
	// run_parked: number of effects that were not undone because an earlier undo failed.
	UndoBlocked int
}

// An UndoFailure is an undo that has failed.
type UndoFailure struct {
	Step    string // name of the step, with ["key"] for an instance
	Code    string
	Message string
}

// A NamedValue is one output of a run.
type NamedValue struct {
	Name      string
	Value     dsl.Value
	Sensitive bool
	// Problem says why the value is null although the run has succeeded. "" means that the
	// value is not null, or that the workflow computed null.
	Problem string
}

// A Purpose says why an agent is called. It is for display.
type Purpose string

// Values of Purpose.
const (
	PurposeDo     Purpose = "do"
	PurposeUndo   Purpose = "undo"
	PurposeLookup Purpose = "lookup" // the call asks for the outcome of an earlier call
	// PurposeLearn means that the call repeats the action with the same idempotency key. The
	// engine needs the output of the action for the undo.
	PurposeLearn Purpose = "learn"
)

// A FactKind says which kind of change a Fact describes. In the NDJSON stream it has the key
// "type".
type FactKind string

// The kinds of facts.
const (
	FactRunCreated      FactKind = "run_created"
	FactStepHeld        FactKind = "step_held"
	FactAttemptStarted  FactKind = "attempt_started"
	FactAttemptProgress FactKind = "attempt_progress"
	FactAttemptFinished FactKind = "attempt_finished"
	FactRetryScheduled  FactKind = "retry_scheduled"
	FactWaitStarted     FactKind = "wait_started" // a step begins to wait for a signal or a timer
	FactSignalReceived  FactKind = "signal_received"
	FactStepFinished    FactKind = "step_finished"
	FactUndoStarted     FactKind = "undo_started"
	FactUndoFinished    FactKind = "undo_finished"
	FactRunTurned       FactKind = "run_turned"     // the run turned back and is being compensated
	FactRunParked       FactKind = "run_parked"     // the run needs a person
	FactRunTakenOver    FactKind = "run_taken_over" // another engine continues the run
	FactRunAdmitted     FactKind = "run_admitted"   // the run has got its place or its unique key
	// A verb was accepted or refused, or the run is overdue.
	FactVerb        FactKind = "operator"
	FactRunFinished FactKind = "run_finished"
)
