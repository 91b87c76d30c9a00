package noun

import (
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Workflow is one workflow of a linked definition. It is immutable, and all its names are
// resolved. So a run needs neither the hcl library nor the schemas of agents. The functions in it
// are pure and safe for concurrent use. A nil function means that the attribute was not written.
type Workflow struct {
	Name        string
	Description string
	Digest      string // hex SHA-256 of the definition of the workflow

	Steps []*Step // in order of declaration; Steps[i].Index == i
	Order []int   // a topological order of Steps
	Pivot int     // index of the pivot step; -1 = none

	Variables []Variable // variables of the workflow and of the module
	Agents    map[string]*Agent
	Outputs   []Output

	// Confidential is true if a run may contain sensitive values even if none of its variables
	// is sensitive. Such a run needs an encryption key before it starts.
	Confidential bool

	Deadline             LimitFunc // deadline of the run; a duration starts at acceptance; nil = none
	CompensationMode     Mode
	CompensationDeadline LimitFunc // deadline of the compensation; nil = 24h
	UniqueKey            func(*eval.Scope) (string, error)

	// Shortest is the shortest timeout or interval of the workflow; 0 = not known before a
	// run. While an attempt is in flight, the engine writes a next_check at most this far in
	// the future.
	Shortest time.Duration

	bind func([]Assignment) (value.Value, diag.Diagnostics)
}

// Bind gives values to all variables of the workflow and returns them as one object. If a
// name is assigned several times, the last assignment counts. Bind reports names that are not
// declared. It also reports values that are missing, have the wrong type or fail a validation.
func (w *Workflow) Bind(assigned []Assignment) (value.Value, diag.Diagnostics) {
	return w.bind(assigned)
}

// SetBind sets the function that Bind calls. Package link provides it, because it has the
// declarations of the variables.
func SetBind(w *Workflow, bind func([]Assignment) (value.Value, diag.Diagnostics)) { w.bind = bind }

// AllCodes is the word in catch that matches every error code.
const AllCodes = "*"

// Mode says what a run does after a failure: it compensates at once, or waits for a person.
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
	Type        string // type as written, or else the type of the default; "any" if there is neither
	Sensitive   bool
	Nullable    bool
	HasDefault  bool
	Deployment  bool // declared outside of workflows, for the whole module
}

// An Agent is one agent block, resolved to a plugin version.
type Agent struct {
	Name           string // label of the block, used in references
	Plugin         string // PLUGIN in engine-agent-PLUGIN, the name of the binary
	Version        string // version the definition is pinned to; "" = any (development)
	Checksum       string // hex sha256 of the binary; "" = not locked
	Instances      int    // processes per engine, at least 1
	MaxConcurrency int    // calls in flight per engine; 0 = no limit
	Env            []string
	Breaker        Breaker
	// Config returns the value of the config block. The block refers only to variables and
	// locals outside of workflows. nil = the block is empty.
	Config ValueFunc
}

// Breaker holds the settings of an agent's circuit breaker. The circuit opens after TripAfter
// consecutive failures. It also opens if at least MinCalls calls have ended in Window, and at
// least the share FailureRatio of them has failed.
type Breaker struct {
	TripAfter    int     // consecutive failures that open the circuit; 0 = only FailureRatio counts
	FailureRatio float64 // share of failures that opens the circuit; 0 = only TripAfter counts
	MinCalls     int     // calls that must have ended before FailureRatio counts
	// Window is the time after which the breaker resets its counts; 0 = it keeps them while
	// the circuit is closed.
	Window   time.Duration
	Cooldown time.Duration // time that the circuit stays open before the first probe
	Probes   int           // calls that may pass while the circuit is half-open, at least 1
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

	After  []int // indexes of the steps that it depends on directly, ascending
	Before []int // indexes of the steps that depend on it directly, ascending

	// A step that calls an agent has none of Value, Until and Wait; another step has one of
	// them, and a read-only Do without a name.
	Value ValueFunc // computes the output of a value step
	Until LimitFunc // end of a timer: counted from when the step became ready, or absolute
	Wait  *Wait     // what a wait step waits for

	Do        *Action
	Retryable func(code string) bool // whether the action declares a code as retryable; never nil
	Undo      *Undo                  // nil = the step has no undo
	NoUndo    bool                   // compensation = "none" is written, or this is the only step
	Pivot     bool
	OnRerun   Rerun

	// When is the condition of the step. It is evaluated once, before Settings and ForEach. A
	// condition that mentions each.* is in WhenEach instead, and is evaluated for every instance.
	When           func(*eval.Scope) (bool, error)
	WhenEach       func(*eval.Scope) (bool, error)
	ForEach        func(*eval.Scope) (Each, error) // nil: a single instance with key ""
	Input          ValueFunc                       // all arguments, converted to the schema's types; never nil
	IdempotencyKey func(*eval.Scope) (string, error)
	Pre            []Condition
	FailWhen       []Refusal // looks at a result before Post
	Post           []Condition
	Settings       func(*eval.Scope) (*Settings, error) // never nil; its expressions cannot use each.*
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

// The choices. In a linked workflow RerunDefault means that a new attempt repeats the call with
// the same idempotency key.
const (
	RerunDefault   Rerun = iota
	RerunContinue        // the new attempt continues after the last checkpoint
	RerunUndoFirst       // possible effects are undone; then the step starts with a new key
)

// RerunNames maps each choice to its word in the language.
var RerunNames = map[Rerun]string{RerunContinue: "continue", RerunUndoFirst: "undo_first"}

// String returns the word of the choice in the language; "" for RerunDefault.
func (r Rerun) String() string { return RerunNames[r] }

// An Action is a resolved action of an agent. If the workflow's author promises idempotent,
// read_only or by_key, the promise replaces what the schema declares.
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
	Typical     time.Duration // usual duration of a call; 0 = not known

	// Output checks a reply against the schema (and output_type), converts it
	// and marks its sensitive parts. An error means bad_reply. Output is never nil.
	Output func(json []byte) (value.Value, error)
	// Skeleton returns a form for a person who states the result of a call: JSON with the
	// names of the outputs, and their types instead of values. It may be nil.
	Skeleton func() string
}

// An Undo says how the effect of a step is undone.
type Undo struct {
	Do *Action
	// Input evaluates the arguments. It may use Self and Failure. If Do.ByKey is true and
	// Self.Output is unknown, it leaves out the arguments that depend on Self.Output.
	Input     ValueFunc
	UsesSelf  bool // Input mentions self.output
	Retryable func(code string) bool
	Settings  func(*eval.Scope) (*Settings, error) // it sets only Timeout, Deadline and Retry
	Declared  bool                                 // the undo comes from compensated_by of the action
}

// A Condition is a precondition or postcondition.
type Condition struct {
	Check func(*eval.Scope) (bool, error)
	// Message and Code describe the failure. Code is never nil: without error_code it returns
	// the default.
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
	Errors func(*eval.Scope) ([]string, error) // codes of these failures; "*" matches every code
	Output ValueFunc                           // output of the step after such a failure; nil = null
}

// Settings are the limits of one step. A limit that is not written has its default value.
type Settings struct {
	Timeout  time.Duration // longest duration of one attempt; default 30s
	Deadline Limit         // deadline of all attempts together; zero = none
	// HeartbeatTimeout is the longest time without a heartbeat during an attempt; 0 = no limit.
	HeartbeatTimeout time.Duration
	Retry            Retry
	MaxParallel      int // instances that may run at the same time; 0 = no limit
	// MaxFailures returns how many of n instances may fail; nil = no instance may fail.
	MaxFailures func(n int) int
}

// Retry says how a step or an undo repeats attempts that failed.
type Retry struct {
	MaxAttempts     int // attempts in one round, including the first; Unbounded = no limit
	Strategy        Strategy
	InitialInterval time.Duration
	Multiplier      float64
	MaxInterval     time.Duration
	Jitter          bool // true = a pause has a random length, up to the computed one
	On              []string
	NotOn           []string
	OnExhausted     Exhausted
	CoolDown        time.Duration
	CoolDowns       int // largest number of cool-downs; each adds a round of attempts
}

// Unbounded is the value of Retry.MaxAttempts that means no limit.
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

// The choices. ExhaustedMode means that compensation.mode decides.
const (
	ExhaustedMode Exhausted = iota
	ExhaustedCompensate
	ExhaustedPark
	ExhaustedCoolDown
)

// A Limit is a deadline: relative to a start, or absolute. The zero Limit means no deadline.
type Limit struct {
	After time.Duration // time after the start of the run or step; 0 = not given
	At    time.Time     // absolute time; zero = not given
}

// From returns the absolute time of the limit for a run or step that started at the time start.
// It returns false if there is no limit.
func (l Limit) From(start time.Time) (time.Time, bool) {
	switch {
	case !l.At.IsZero():
		return l.At, true
	case l.After > 0:
		return start.Add(l.After), true
	}
	return time.Time{}, false
}

// An Each holds the instances that for_each gives: their keys, ascending, and one value for
// each key.
type Each struct {
	Keys   []string
	Values []value.Value
}

// ValueFunc evaluates an expression to a value. An error is an expression error, with a message
// for people.
type ValueFunc func(*eval.Scope) (value.Value, error)

// LimitFunc evaluates a deadline.
type LimitFunc func(*eval.Scope) (Limit, error)
