package noun

import (
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Workflow is one workflow of a linked definition: immutable nouns with
// every name resolved, so that running it needs neither hcl nor the agents'
// schemas. Functions in it are pure and safe for concurrent use; a nil
// function means that the attribute was not written.
type Workflow struct {
	Name        string
	Description string
	Digest      string // of the definition it belongs to, hex sha256

	Steps []*Step // in order of declaration; Steps[i].Index == i
	Order []int   // a topological order of Steps
	Pivot int     // index of the pivot step; -1 = none

	Variables []Variable // every variable in scope, run inputs and deployment settings
	Agents    map[string]*Agent
	Outputs   []Output

	// Confidential says that a run may come to hold sensitive values even if none
	// of its variables is: it needs an encryption key before it starts.
	Confidential bool

	Deadline             LimitFunc // of the forward run, from acceptance; nil = none
	CompensationMode     Mode
	CompensationDeadline LimitFunc // nil = 24h
	UniqueKey            func(*eval.Scope) (string, error)

	// Shortest is the shortest timeout or interval of the workflow; the bound
	// in a run's row is not lowered below now plus this.
	Shortest time.Duration

	bind func([]Assignment) (value.Value, diag.Diagnostics)
}

// Bind gives values to all variables of the workflow and returns them as one
// object. Of several assignments to a name the last one counts. It reports
// names that are not declared, values that are missing, of the wrong type or
// refused by a validation.
func (w *Workflow) Bind(assigned []Assignment) (value.Value, diag.Diagnostics) {
	return w.bind(assigned)
}

// SetBind gives a workflow its Bind, which needs the declarations of its variables.
func SetBind(w *Workflow, bind func([]Assignment) (value.Value, diag.Diagnostics)) { w.bind = bind }

// AllCodes is how catch names every code.
const AllCodes = "*"

// Mode says what a failure turns into: undo at once, or wait for a person.
type Mode uint8

// The modes. The zero Mode is invalid in a linked workflow.
const (
	modeInvalid Mode = iota
	ModeAutomatic
	ModeManual
)

// A Variable is one declared input of a workflow or of its module.
type Variable struct {
	Name        string
	Description string
	Type        string // type constraint as written, else that of the default; "any" if neither says
	Sensitive   bool
	Nullable    bool
	HasDefault  bool
	Deployment  bool // declared at file level
}

// An Agent is one agent block, resolved to a plugin version.
type Agent struct {
	Name           string // block label, used in traversals
	Plugin         string // engine-agent-PLUGIN
	Version        string // version the definition is pinned to; "" = any (development)
	Checksum       string // hex sha256 of the binary; "" = not locked
	Instances      int    // processes per engine, at least 1
	MaxConcurrency int    // calls in flight per engine; 0 = no limit
	Env            []string
	Breaker        Breaker
	Config         ValueFunc // config {}; sees only deployment variables and file locals; nil = empty
}

// Breaker holds the settings of an agent's circuit breaker. It trips after
// TripAfter consecutive failures, or when at least MinCalls calls in Window
// failed at a ratio of at least FailureRatio.
type Breaker struct {
	TripAfter    int           // 0 = by ratio only
	FailureRatio float64       // 0 = by TripAfter only
	MinCalls     int           // for FailureRatio
	Window       time.Duration // counts are forgotten after this; 0 = never while closed
	Cooldown     time.Duration // open for this long before the first probe
	Probes       int           // calls admitted while half-open, at least 1
}

// An Output is one output of a workflow.
type Output struct {
	Name        string
	Description string
	Sensitive   bool
	Value       ValueFunc
}

// A Step is one unit of work.
type Step struct {
	Index int
	Name  string
	Where string // file:line of its block, for messages

	After  []int // steps it depends on directly, ascending
	Before []int // steps that depend on it directly, ascending

	// A step that calls an agent has none of Value, Until and Wait; another step has one of
	// them, and a read-only Do without a name.
	Value ValueFunc // computes the output of a value step
	Until LimitFunc // end of a timer: counted from when the step became ready, or absolute
	Wait  *Wait     // what a wait step waits for

	Do        *Action
	Retryable func(code string) bool // codes the action declares retryable; never nil
	Undo      *Undo                  // nil: nothing undoes it
	NoUndo    bool                   // compensation = "none", stated or implied
	Pivot     bool
	OnRerun   Rerun

	// When is evaluated once, before Settings and ForEach. A condition that
	// mentions each is WhenEach instead: each instance evaluates it.
	When           func(*eval.Scope) (bool, error)
	WhenEach       func(*eval.Scope) (bool, error)
	ForEach        func(*eval.Scope) (Each, error) // nil: a single instance with key ""
	Input          ValueFunc                       // never nil; complete arguments, converted to the schema's types
	IdempotencyKey func(*eval.Scope) (string, error)
	Pre            []Condition
	FailWhen       []Refusal // looks at a result before Post
	Post           []Condition
	Settings       func(*eval.Scope) (*Settings, error) // never nil; evaluated without each
	Catch          *Catch
}

// Calls reports whether the step calls an agent.
func (s *Step) Calls() bool { return s.Value == nil && s.Until == nil && s.Wait == nil }

// Does says in a word what a step without a call does: value, timer or wait; "" for a step
// that calls an agent.
func (s *Step) Does() string {
	switch {
	case s.Value != nil:
		return "value"
	case s.Until != nil:
		return "timer"
	case s.Wait != nil:
		return "wait"
	}
	return ""
}

// NoCall is the action of steps that call no agent.
var NoCall = &Action{ReadOnly: true, Output: func(json []byte) (value.Value, error) { return value.NewValue(json, nil, nil), nil }}

// A Wait says which signals a step waits for.
type Wait struct {
	// Names are the signals if they are known before the run; nil = they depend on it.
	Names []string
	// Signals returns the names. Never nil.
	Signals func(*eval.Scope) ([]string, error)
	// Payload checks what a signal carries and converts it to the declared type. Never nil.
	Payload func(json []byte) (value.Value, error)
	// Continue says that the step succeeds when its deadline passes: on_timeout = "continue".
	Continue bool
}

// Rerun says what another attempt of a step does with what earlier ones left
// behind (S81, S83).
type Rerun uint8

// The choices. In a linked workflow RerunDefault means that attempts simply
// repeat the call under the same key.
const (
	RerunDefault   Rerun = iota
	RerunContinue        // goes on after the last checkpoint
	RerunUndoFirst       // what may have been done is undone, then the step starts anew under a new key
)

// RerunNames are the choices as they are written.
var RerunNames = map[Rerun]string{RerunContinue: "continue", RerunUndoFirst: "undo_first"}

// String returns the choice as it is written; "" for RerunDefault.
func (r Rerun) String() string { return RerunNames[r] }

// An Action is a resolved action of an agent, with the author's promises
// (idempotent, read_only) merged into the declared capabilities.
type Action struct {
	Agent      string // key of Workflow.Agents
	Name       string
	Idempotent bool
	ReadOnly   bool
	ByKey      bool
	Lookup     bool
	// Cancellable says that the engine may interrupt a call in flight when the
	// run turns back. Calls of read-only actions may be interrupted too.
	Cancellable bool
	Typical     time.Duration // 0 = not known

	// Output checks a reply against the schema (and output_type), converts it
	// and marks its sensitive parts. An error means bad_reply. Never nil.
	Output func(json []byte) (value.Value, error)
	// Skeleton is what a person fills in to state a result: JSON with the
	// names of the outputs, and their types instead of values. It may be nil.
	Skeleton func() string
}

// An Undo says how the effect of a step is undone.
type Undo struct {
	Do *Action
	// Input evaluates the arguments. It may use Self and Failure. For a ByKey
	// action with Self.Output unknown, arguments that depend on it are left out.
	Input     ValueFunc
	UsesSelf  bool // Input mentions self.output
	Retryable func(code string) bool
	Settings  func(*eval.Scope) (*Settings, error) // Timeout, Deadline and Retry only
	Declared  bool                                 // from the action's compensated_by
}

// A Condition is a precondition or postcondition.
type Condition struct {
	Check func(*eval.Scope) (bool, error)
	// Message and Code describe the failure; Code has its default already.
	Message func(*eval.Scope) (string, error)
	Code    func(*eval.Scope) (string, error)
}

// A Refusal is a fail_when: where it holds for a result, the author vouches that nothing
// was done, and the result counts as a definite failure.
type Refusal struct {
	Condition
	Permanent bool // the failure must not be repeated
}

// A Catch swallows failures.
type Catch struct {
	Errors func(*eval.Scope) ([]string, error) // "*" matches every code
	Output ValueFunc                           // nil = null
}

// Settings are the limits of one step, with every default in place.
type Settings struct {
	Timeout  time.Duration // of one attempt; default 30s
	Deadline Limit         // of all attempts; zero = none
	// HeartbeatTimeout is how long an attempt may be silent; 0 = as long as it
	// runs.
	HeartbeatTimeout time.Duration
	Retry            Retry
	MaxParallel      int // 0 = no limit
	// MaxFailures resolves the tolerated number of failed instances for n
	// instances; nil = 0.
	MaxFailures func(n int) int
}

// Retry is a step's or undo's policy of repetition.
type Retry struct {
	MaxAttempts     int // counts the first try, in one round; Unbounded = no limit
	Strategy        Strategy
	InitialInterval time.Duration
	Multiplier      float64
	MaxInterval     time.Duration
	Jitter          bool // full jitter
	On              []string
	NotOn           []string
	OnExhausted     Exhausted
	CoolDown        time.Duration
	CoolDowns       int // most rounds added by cool-downs
}

// Unbounded is Retry.MaxAttempts without a limit.
const Unbounded = -1

// Strategy is how the pause between attempts grows.
type Strategy uint8

// The strategies. The zero Strategy is invalid in linked settings.
const (
	strategyInvalid Strategy = iota
	Exponential
	Linear
	Constant
)

// Exhausted is what happens when the attempts of a step are used up (S41).
type Exhausted uint8

// The choices. ExhaustedMode follows compensation.mode.
const (
	ExhaustedMode Exhausted = iota
	ExhaustedCompensate
	ExhaustedPark
	ExhaustedCoolDown
)

// A Limit is a deadline: relative to a start, or absolute. The zero Limit is
// none.
type Limit struct {
	After time.Duration // from the start
	At    time.Time     // absolute
}

// From returns the absolute time of the limit for something that started at
// start, and whether there is a limit at all.
func (l Limit) From(start time.Time) (time.Time, bool) {
	switch {
	case !l.At.IsZero():
		return l.At, true
	case l.After > 0:
		return start.Add(l.After), true
	}
	return time.Time{}, false
}

// An Each is the evaluated for_each of a step: keys ascending, one value for
// each key.
type Each struct {
	Keys   []string
	Values []value.Value
}

// ValueFunc evaluates to a value. An error is an expression error, with a
// message for people.
type ValueFunc func(*eval.Scope) (value.Value, error)

// LimitFunc evaluates a deadline.
type LimitFunc func(*eval.Scope) (Limit, error)
