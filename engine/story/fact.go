package story

import (
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A Fact is one thing a user sees in a run's story, derived from a record: the
// events of `apply`, `watch` and `show --events` (S87). Facts of a run are
// numbered from 1 without gaps, in the order of its records.
type Fact struct {
	Kind    FactKind
	At      time.Time
	Run     string  // run_created: public name
	Key     string  // run_created: unique key, or ""
	Step    string  // step name with ["key"] for an instance, or ""
	Action  string  // AGENT.ACTION, where one is called
	Agent   string  // step_held: the agent that is waited for
	Purpose Purpose // of the attempt, or of the one that is waited for; "" = none
	Attempt int     // number for people, from 1; 0 = none
	Of      int     // attempts allowed in this round; 0 = not applicable, dsl.Unbounded = no limit
	Undo    bool    // the attempt or wait belongs to the undo
	Among   int     // attempts and waits of an instance: how many instances its for_each step has; 0 = it is none

	Awaits []string // wait_started: the signals that the step waits for; nil = a timer
	Signal string   // signal_received: its name

	Status  string // step_finished, undo_finished, run_finished, attempt_finished (ok, failed, unknown, not_sent)
	Code    string // failure code, or ""
	Message string // failure message, or ""
	// NotRepeated is, of a step that failed, why its last call was not repeated.
	NotRepeated NotRepeated
	Took        time.Duration // attempt_finished, step_finished, undo_finished
	CompleteBy  time.Time     // attempt_started: of the attempt
	Until       time.Time     // retry_scheduled, step_held, wait_started: when it goes on; zero = not known
	CoolDown    bool          // retry_scheduled: the pause is a cool-down, a fresh round follows
	By          string        // verbs, signal_received: who
	Unowned     bool          // run_taken_over: nobody had it before
	Ask         int64         // verbs: number of the message that asked; 0 = none

	// Deadlines; zero = none.
	StepDeadline         time.Time // attempts and waits of a step's work
	UndoDeadline         time.Time // attempts and waits of its undo
	RunDeadline          time.Time // run_created
	CompensationDeadline time.Time // run_turned

	Outputs      []NamedValue  // run_finished
	Undone       int           // run_finished, run_parked
	LeftAsIs     int           // run_finished, run_parked: effects operators left in place
	Undeclared   int           // run_finished: effects not undone by declaration
	Kept         []string      // run_finished: the steps and instances that left these effects
	UndoFailures []UndoFailure // run_parked, if undos have failed
	UndoBlocked  int           // run_parked: effects not undone because an undo before theirs failed
}

// An UndoFailure is an undo that has failed for good.
type UndoFailure struct {
	Step    string // step name with ["key"] for an instance
	Code    string
	Message string
}

// A NamedValue is one output of a run.
type NamedValue struct {
	Name      string
	Value     dsl.Value
	Sensitive bool
	Problem   string // why the value is null although the run succeeded; "" = none
}

// A Purpose says for people why an agent is called.
type Purpose string

// The purposes.
const (
	PurposeDo     Purpose = "do"
	PurposeUndo   Purpose = "undo"
	PurposeLookup Purpose = "lookup" // ask what became of an earlier call
	PurposeLearn  Purpose = "learn"  // the action once more under its key, to learn the output that its undo needs
)

// FactKind is the type of a Fact, as in the `type` of the NDJSON stream.
type FactKind string

// The kinds of facts.
const (
	FactRunCreated      FactKind = "run_created"
	FactStepHeld        FactKind = "step_held"
	FactAttemptStarted  FactKind = "attempt_started"
	FactAttemptProgress FactKind = "attempt_progress"
	FactAttemptFinished FactKind = "attempt_finished"
	FactRetryScheduled  FactKind = "retry_scheduled"
	FactWaitStarted     FactKind = "wait_started" // a step waits for a signal or a timer
	FactSignalReceived  FactKind = "signal_received"
	FactStepFinished    FactKind = "step_finished"
	FactUndoStarted     FactKind = "undo_started"
	FactUndoFinished    FactKind = "undo_finished"
	FactRunTurned       FactKind = "run_turned"     // the run turned to compensation
	FactRunParked       FactKind = "run_parked"     // needs a human
	FactRunTakenOver    FactKind = "run_taken_over" // another engine goes on with it
	FactVerb            FactKind = "operator"       // a verb was accepted or refused
	FactRunFinished     FactKind = "run_finished"
)
