package machine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
)

// A Fact is one thing a user sees in a run's story, derived from a record: the
// events of `apply`, `watch` and `show --events` (S87). Facts of a run are
// numbered from 1 without gaps by whoever folds its records in order.
type Fact struct {
	Kind    FactKind
	At      time.Time
	Step    string // step name with ["key"] for an instance, or ""
	Agent   string // AGENT.ACTION, where one is called
	Attempt int    // number for people, from 1; 0 = none
	Of      int    // attempts allowed in this round; 0 = not applicable, dsl.Unbounded = no limit
	Undo    bool   // the attempt or wait belongs to the undo
	Lookup  bool   // the attempt only asks what became of an earlier one

	Status     string        // step_finished, undo_finished, run_finished, attempt_finished (ok, failed, unknown, not_sent)
	Code       string        // failure code, or ""
	Message    string        // failure message, or ""
	Took       time.Duration // attempt_finished, step_finished, undo_finished
	CompleteBy time.Time     // attempt_started: of the attempt
	StepBy     time.Time     // deadline of the step or undo; zero = none
	RunBy      time.Time     // run_created: deadline of the run; zero = none
	Until      time.Time     // retry_scheduled, step_held: when it goes on; zero = not known
	Outputs    []NamedValue  // run_finished
	Undone     int           // run_finished
	LeftAsIs   int           // run_finished: effects operators left in place
	Undeclared int           // run_finished: effects not undone by declaration
	By         string        // verbs: who
}

// A NamedValue is one output of a run.
type NamedValue struct {
	Name      string
	Value     dsl.Value
	Sensitive bool
	Problem   string // why the value is null although the run succeeded; "" = none
}

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
	FactStepFinished    FactKind = "step_finished"
	FactUndoStarted     FactKind = "undo_started"
	FactUndoFinished    FactKind = "undo_finished"
	FactRunTurned       FactKind = "run_turned"     // the run turned to compensation
	FactRunParked       FactKind = "run_parked"     // needs a human
	FactRunTakenOver    FactKind = "run_taken_over" // another engine goes on with it
	FactVerb            FactKind = "operator"       // a verb was accepted or refused
	FactRunFinished     FactKind = "run_finished"
)
