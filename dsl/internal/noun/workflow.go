package noun

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A Workflow is one workflow of a linked definition. It is immutable, and all its names are
// resolved. So a run needs neither the hcl library nor the schemas of agents. The functions in a
// Workflow are pure and safe for concurrent use. If the source lacks an optional attribute, the
// function for this attribute is nil, unless the comment of its field says that it is never nil.
type Workflow struct {
	Name        string
	Description string
	Digest      string // SHA-256 of the definition that contains the workflow, in hex
	// Inner is true if only a step can start a run of the workflow. The workflow of a group has the
	// name WORKFLOW.GROUP. A workflow of a library has the name LIBRARY.WORKFLOW.
	Inner bool

	Steps []*Step // steps in the order of their declaration; Steps[i].Index == i
	Order []int   // indexes of Steps in a topological order: each step is after its dependencies
	Pivot int     // index of the pivot step; -1 = none

	Variables []Variable // variables of the workflow and of the module; in a group, also the values from outside
	Agents    map[string]*Agent
	Outputs   []Output
	Notify    []*Notify // notify blocks of the workflow, in the order of their declaration
	// NotifyAround is set only for the workflow of a group. It holds the notify blocks of the
	// outermost workflow that contains the group, for the states in which a run of the group needs
	// a person.
	NotifyAround []*Notify
	Notifies     string // workflow whose states this workflow announces; "" = this workflow announces none

	// Confidential is true if each run of the workflow may contain sensitive values, even if
	// none of its variables is sensitive. An engine starts such a run only if it has an
	// encryption key.
	Confidential bool

	Deadline             LimitFunc // deadline of the run; a duration counts from the acceptance of the run; nil = none
	CompensationMode     Mode
	CompensationDeadline LimitFunc // deadline of the compensation; nil = 24h
	UniqueKey            func(*eval.Scope) (string, error)
	Unique               Unique                         // how long runs hold their unique key; only with UniqueKey
	Schedules            []*Schedule                    // schedules that start runs of the workflow, in the order of their declaration
	OnEvents             []*OnEvent                     // on_event blocks, then reset_on blocks, each kind in the order of its declaration
	Retention            time.Duration                  // how long runs are kept after their end; 0 = the engines decide
	Priority             func(*eval.Scope) (int, error) // priority of the run, from 0 to 100; nil = 50
	Admits               []*Admit                       // checks of rows in the database, in the order in the file
	Concurrency          *Concurrency                   // limit for the number of open runs; nil = none
	// actions to which replies of the run can go; nil if no submission can start the run
	ReplySinks *ReplySinks

	// StepPriorities is true if a step of the workflow says its own priority. If it is false, the
	// engine does not evaluate Settings to order the steps that wait for slots.
	StepPriorities bool

	// Shortest is the shortest time in the settings of the steps and undos, such as a timeout,
	// interval, deadline or cool-down; 0 = not known before a run. While a call is in flight, the
	// Supervisor looks at the run again after this time at the latest.
	Shortest time.Duration

	// Moved maps the earlier name of a step to its present name, as the moved blocks say; nil = no
	// step was moved.
	Moved map[string]string
	// nodeOf[i] is the number of the node that belongs to the step with the index i in the
	// definition. nil = the number of the node is i, because the workflow is not a result of
	// Renumbered.
	nodeOf []int

	bind func([]Assignment) (value.Value, diag.Diagnostics)
	// deployed does the work of BindDeployed.
	deployed func([]Assignment) (value.Value, diag.Diagnostics)
	lines    Lines
}

// Evaluate evaluates an expression that is not part of the definition, such as a line of the
// console. The expression may refer to the variables and locals of the workflow. If s.Step is not
// nil, it may also refer to steps and to run.*. An expression has the same limits as one in a file.
// Evaluate returns a value or errors. The texts of the errors contain no sensitive text.
func (w *Workflow) Evaluate(text string, s *eval.Scope) (value.Value, diag.Diagnostics) {
	return w.lines.Evaluate(text, s)
}

// Complete returns the words that may replace text[from:], the unfinished reference or function
// name at the end of the text. The words are sorted. The parameter `inRun` says whether the
// expression may refer to steps and to run.*.
func (w *Workflow) Complete(text string, inRun bool) (from int, words []string) {
	return w.lines.Complete(text, inRun)
}

// Bind gives a value to each variable of the workflow, and returns all values as one object. If
// `assigned` has several values for a variable, Bind uses the last value. Bind reports a value that
// is missing, has the wrong type or fails a validation. It also reports a name that no workflow of
// the module declares. If only another workflow declares the name, Bind reports it only for the
// source "--var", and otherwise ignores the assignment.
func (w *Workflow) Bind(assigned []Assignment) (value.Value, diag.Diagnostics) {
	return w.bind(assigned)
}

// BindDeployed does the same as Bind, but only for the variables outside of workflows. It ignores
// values of other variables.
func (w *Workflow) BindDeployed(assigned []Assignment) (value.Value, diag.Diagnostics) {
	return w.deployed(assigned)
}

// SetBind sets the functions that Workflow.Bind and Workflow.BindDeployed call. Package link
// provides these functions, because package link has the declarations of the variables.
func SetBind(w *Workflow, bind, deployed func([]Assignment) (value.Value, diag.Diagnostics)) {
	w.bind, w.deployed = bind, deployed
}

// SetLines sets the Lines of a workflow.
func SetLines(w *Workflow, l Lines) { w.lines = l }

// Assign returns an assignment that gives a JSON value to the variable with the given name. The
// parameter `source` says where the value comes from, for messages. Assign returns an error if the
// value is not JSON.
func (w *Workflow) Assign(name string, json []byte, source string) (Assignment, error) {
	v, err := value.Decode(value.NewValue(json, nil, nil))
	if err != nil {
		return Assignment{}, fmt.Errorf("value of variable %q: %w", name, err)
	}
	return Assignment{Name: name, Source: source, expr: &hclsyntax.LiteralValueExpr{Val: v}}, nil
}

// A Child says which workflow a step starts as a child run. The workflow is part of the same
// definition. The input of the step gives values to the variables of this workflow.
type Child struct {
	Workflow *Workflow // workflow of the child run; never nil
	// true = the workflow consists of the steps in a group block, and the step with this Child is
	// the step that starts the group
	Group bool
}

// ChildAgent returns the constant ChildAgent: the name of the agent in calls that start and undo
// child runs. The engine itself answers these calls.
func (*Workflow) ChildAgent() string { return ChildAgent }

// StartsChildren reports whether a step of the workflow starts child runs.
func (w *Workflow) StartsChildren() bool {
	for _, s := range w.Steps {
		if s.Child != nil {
			return true
		}
	}
	return false
}

// AllCodes is the text in the list `errors` of a catch block that matches every error code.
const AllCodes = "*"

// Mode says what happens after a failure: the engine undoes the run at once, or the run waits for
// a person.
type Mode uint8

// The values of Mode. The zero Mode is invalid.
const (
	modeInvalid Mode = iota
	ModeAutomatic
	ModeManual
)

// A Variable is one declared input of a workflow or of its module.
type Variable struct {
	Name        string
	Description string
	Type        string // declared type; without one, the type of the default; without both, "any"
	Sensitive   bool
	Nullable    bool
	HasDefault  bool
	Deployment  bool   // true = the variable is declared outside of workflows, for the whole module
	Form        []byte // Type as the library cty writes it in JSON, such as ["list","string"]
	Rules       []Rule // conditions of validation blocks that PostgreSQL can evaluate; the engine evaluates all conditions
}

// A Rule is the condition of a validation block, for the transaction that submits a run with SQL.
type Rule struct {
	Check   []byte // condition in JSON, see package dsl/internal/rule
	Message string // error_message if it is a plain text; otherwise a general text
}

// An Agent is one agent block, or an agent that a module names without a block. It has the version
// that was chosen for its plugin.
type Agent struct {
	Name           string    // label of the block, used in references; LIBRARY.LABEL for an agent of a library
	Plugin         string    // PLUGIN in engine-agent-PLUGIN, the name of the binary
	Version        string    // version that each run of the definition uses; "" = any version (development)
	Checksum       string    // hex SHA-256 of the binary; "" = any binary
	Instances      int       // number of agent processes in each engine, at least 1
	MaxConcurrency int       // largest number of calls in flight, over all engines of a database; 0 = no limit
	RateLimit      RateLimit // largest number of calls that start in a period, over all engines of a database
	Env            []string
	Breaker        Breaker
	// Config evaluates the config block. The block refers only to variables and locals outside of
	// workflows. nil = the block is missing or empty, and the schema declares no configuration.
	Config ValueFunc
}

// Breaker holds the settings of an agent's circuit breaker. The circuit opens after TripAfter
// consecutive failures. It also opens if at least MinCalls calls have ended in Window, and if the
// share of failed calls is at least FailureRatio.
type Breaker struct {
	TripAfter    int     // consecutive failures that open the circuit; 0 = only FailureRatio counts
	FailureRatio float64 // share of failures, from 0 to 1, that opens the circuit; 0 = only TripAfter counts
	MinCalls     int     // number of calls that must have ended before FailureRatio counts
	// Window is how long a call counts while the circuit is closed. The breaker forgets older
	// calls. 0 = it forgets no calls while the circuit is closed.
	Window   time.Duration
	Cooldown time.Duration // time for which the circuit stays open before the first probe
	Probes   int           // number of calls that may pass while the circuit is half-open, at least 1
}

// An Output is one output of a workflow.
type Output struct {
	Name        string
	Description string
	Sensitive   bool
	After       []int // indexes of the steps that Value reads, ascending; nil = Value reads no step
	Value       ValueFunc
}

// A Step is one step of a workflow. It calls one action of one agent, or it starts a child run, or
// it computes a value, or it waits for a time or a signal.
type Step struct {
	Index int
	Name  string
	Where string // FILE:LINE of the step block, for messages

	// After has the steps on which this step depends directly. Before has the steps that depend
	// directly on this step. Both are lists of indexes, ascending.
	After  []int
	Before []int

	// In a step that calls an agent or starts a child run, Value, Until and Wait are nil. In any
	// other step, exactly one of these three fields is set, and Do is NoCall.
	Value ValueFunc // computes the output of a value step
	Until LimitFunc // end of a timer; a duration counts from the time at which the step is ready
	Wait  *Wait     // signals for which a wait step waits

	// Child is the workflow that the step starts as a child run; nil = the step starts none. In a
	// step with a Child, Do is an action of ChildAgent. Without a compensate block, Undo.Do is one,
	// too.
	Child *Child

	Do        *Action                // action that the step calls; NoCall = the step calls no agent
	Retryable func(code string) bool // whether the action declares this error code as retryable; never nil
	Undo      *Undo                  // undo of the step; nil = the step has no undo
	NoUndo    bool                   // true = compensation = "none", or the only step of its workflow has an effect and no undo
	Pivot     bool                   // true = after the success of this step, the engine does not undo the run
	OnRerun   Rerun

	// When is the condition of the step. The engine evaluates it once, before Settings and ForEach.
	// If the step has for_each and the condition uses each.* or self.*, When is nil, and the
	// condition is in WhenEach. The engine evaluates WhenEach for each instance.
	When     func(*eval.Scope) (bool, error)
	WhenEach func(*eval.Scope) (bool, error)
	ForEach  func(*eval.Scope) (Each, error) // instances of the step; nil = one instance with key ""
	Input    ValueFunc                       // all arguments as one object; never nil
	// Given computes the arguments of a declared action for self.input. It is set only if the run
	// must store them, because the step has a repeat block and its arguments use self.previous or
	// self.collected. nil = self.input needs no stored arguments.
	Given          ValueFunc
	IdempotencyKey func(*eval.Scope) (string, error)
	Pre            []Condition
	FailWhen       []Refusal // the fail_when blocks; the engine checks them before Post
	Post           []Condition
	Settings       func(*eval.Scope) (*Settings, error) // limits of the step, which cannot depend on each.*; never nil
	Catch          *Catch
	Repeat         *Repeat // loop of the step; nil = the step makes one iteration

	// Aspects returns the aspects of the step as text, by name (AspectAction and others). If an
	// aspect has the same text in two definitions, the aspect counts as unchanged.
	Aspects func() map[string]string
	// Gone is true if the present definition of the run does not have the step
	// (Workflow.Renumbered). Then the step does nothing. Instance is true if, in addition, the node
	// of the step is an instance of another step.
	Gone, Instance bool
	keyName        string // name in idempotency keys; "" = Name
}

// Calls reports whether the step calls an agent or starts a child run.
func (s *Step) Calls() bool { return s.Value == nil && s.Until == nil && s.Wait == nil }

// Does returns the kind of a step without a call: "value", "timer" or "wait". It returns "" for a
// step that calls an agent or starts a child run, and for a step that is Gone.
func (s *Step) Does() string {
	switch {
	case s.Gone:
		return ""
	case s.Value != nil:
		return "value"
	case s.Until != nil:
		return "timer"
	case s.Wait != nil:
		return "wait"
	}
	return ""
}

// Awaits reports whether the step may wait for the signal. If the names depend on the run, the step
// may wait for every signal.
func (s *Step) Awaits(signal string) bool {
	return s.Wait != nil && (s.Wait.Names == nil || slices.Contains(s.Wait.Names, signal))
}

// AwaitsInside reports whether a step inside of the group s, at any depth, may wait for the signal.
// It returns false if s is no group.
func (s *Step) AwaitsInside(signal string) bool {
	return s.Child != nil && s.Child.Group && slices.ContainsFunc(s.Child.Workflow.Steps, func(x *Step) bool {
		return x.Awaits(signal) || x.AwaitsInside(signal)
	})
}

// Listens reports whether the step is a group in which a step, at any depth, waits for a signal.
func (s *Step) Listens() bool {
	return s.Child != nil && s.Child.Group && slices.ContainsFunc(s.Child.Workflow.Steps, func(x *Step) bool {
		return x.Wait != nil || x.Listens()
	})
}

// WaitsInside returns the wait blocks of a group, at every depth, that may wait for the signal. It
// returns nil if the step is no group.
func (s *Step) WaitsInside(signal string) (waits []*Wait) {
	if s.Child == nil || !s.Child.Group {
		return nil
	}
	for _, x := range s.Child.Workflow.Steps {
		if x.Awaits(signal) {
			waits = append(waits, x.Wait)
		}
		waits = append(waits, x.WaitsInside(signal)...)
	}
	return waits
}

// SignalNames returns the names of the signals for which the step waits. For a group, it returns
// the names of the signals for which steps inside of the group wait, at any depth. It leaves out
// names that depend on the run.
func (s *Step) SignalNames() (names []string) {
	switch {
	case s.Wait != nil:
		return s.Wait.Names
	case s.Child != nil && s.Child.Group:
		for _, x := range s.Child.Workflow.Steps {
			names = append(names, x.SignalNames()...)
		}
	}
	return names
}

// NoCall is the value of Step.Do in steps that call no agent. It has no name and no agent.
var NoCall = &Action{ReadOnly: true, Output: func(json []byte) (value.Value, error) { return value.NewValue(json, nil, nil), nil }}

// A Wait holds the wait block of a step: for which signals the step waits.
type Wait struct {
	// Names holds the names of the signals, sorted; nil = the names depend on the run.
	Names []string
	// Signals returns the names of the signals for which the step waits in a run. It is never nil.
	Signals func(*eval.Scope) ([]string, error)
	// Payload converts the JSON payload of a signal to the declared type. It returns an error if
	// the payload does not have this type. Payload is never nil.
	Payload func(json []byte) (value.Value, error)
	// Continue is true for on_timeout = "continue". Then the step succeeds with the output null
	// when its deadline passes. If Continue is false, the step fails when its deadline passes.
	Continue bool
}

// A Rerun says how a new attempt of a step treats the earlier attempts. The new attempt repeats the
// call, or continues after the checkpoint, or begins after the engine has undone the possible
// effects of the earlier attempts (S81, S83).
type Rerun uint8

// The values of Rerun. If Step.OnRerun is RerunDefault, a new attempt repeats the call with
// the same idempotency key.
const (
	RerunDefault   Rerun = iota
	RerunContinue        // the new attempt continues after the last checkpoint
	RerunUndoFirst       // the engine undoes possible effects; then the step starts with a new idempotency key
)

// RerunNames maps each Rerun to its word in the argument `on_rerun`. RerunDefault has no word.
var RerunNames = map[Rerun]string{RerunContinue: "continue", RerunUndoFirst: "undo_first"}

// String returns the word that means r in the argument `on_rerun`; "" for RerunDefault.
func (r Rerun) String() string { return RerunNames[r] }

// An Action is an action of an agent that a step or an undo calls. If the step or undo sets
// idempotent, read_only or by_key, this setting has priority over the schema of the agent.
type Action struct {
	Agent      string // name of the agent, which is a key of Workflow.Agents
	Name       string
	Uses       string // name of the agent's action that the declared action uses; "" = Name is no declared action
	Keyed      bool   // true = the input of the declared action uses the idempotency key of the call
	Idempotent bool   // true = several calls with the same idempotency key have only one effect
	ReadOnly   bool   // true = a call has no effect
	ByKey      bool   // true = as an undo, the action finds the effect by the idempotency key of the undone call
	Lookup     bool   // true = the agent can say whether a call with an idempotency key had its effect
	// Asks is the action that the engine calls to ask whether an earlier call of this action had
	// its effect. Asks is read-only and belongs to the same agent. The result of Asks.Output
	// becomes the output of the earlier call. nil = the engine asks with this action itself.
	Asks *Action
	// AskInput evaluates the input of Asks for an earlier call. It uses the same values as the
	// input of the earlier call, and Self.Key of the Scope: the idempotency key of the earlier
	// call. If the earlier call was an undo, Self.Key is the key of the call that was undone.
	AskInput ValueFunc
	// true = the engine may interrupt a call in flight when the run turns back. The engine may
	// also interrupt calls of read-only actions.
	Cancellable bool
	Typical     time.Duration // usual duration of a call; 0 = not known

	// Output checks a reply against the schema and against output_type. It converts the reply and
	// marks the sensitive parts. For a declared action, Output also computes the declared output.
	// If a fail_when block of the declared action is true for the reply, Output returns a *Refused,
	// whose method Failure returns the error code. With any other error of Output, the outcome of
	// the call is unknown, and the error code is bad_reply. Output is never nil.
	Output func(json []byte) (value.Value, error)
	// Stated checks and converts an output that a person states, as Output does for a reply. Only a
	// declared action needs Stated, because only the output of a declared action differs from the
	// reply of the agent. For any other action, Stated is nil.
	Stated func(json []byte) (value.Value, error)
	// Skeleton returns a form for a person who enters the result of a call. The form is JSON with
	// the names of the outputs, and their types instead of values. Skeleton may be nil.
	Skeleton func() string
}

// An Undo says how the effect of a step is undone.
type Undo struct {
	Do *Action
	// Input evaluates the arguments of the undo. It may use Self and Failure of the Scope. If
	// Do.ByKey is true and Self.Output is not known, Input leaves out the arguments that depend on
	// Self.Output.
	Input     ValueFunc
	UsesSelf  bool                                 // true = an argument depends on self.output
	Retryable func(code string) bool               // whether the action in the field Do declares this error code as retryable
	Settings  func(*eval.Scope) (*Settings, error) // limits of the undo: only Timeout, Deadline and Retry
	Declared  bool                                 // true = the agent's schema names the undo in compensated_by
}

// A Condition is a precondition, a postcondition, or the condition of a fail_when block.
type Condition struct {
	Check func(*eval.Scope) (bool, error)
	// Message returns the text of the failure, and Code returns its error code. The condition of a
	// fail_when block causes a failure if Check returns true. Any other condition causes a failure
	// if Check returns false. Code is never nil: if the source has no error_code, Code returns a
	// default code.
	Message func(*eval.Scope) (string, error)
	Code    func(*eval.Scope) (string, error)
}

// A Refusal is a fail_when block. If its condition is true for a result, the author of the workflow
// guarantees that the call had no effect. Then the result counts as a definite failure.
type Refusal struct {
	Condition
	Permanent bool // true = after this failure, the engine does not repeat the call
}

// A Catch says after which failures of a step the run continues, and which output the step has
// after such a failure.
type Catch struct {
	Errors func(*eval.Scope) ([]string, error) // error codes of the caught failures; "*" matches every code
	Output ValueFunc                           // output of the step after a caught failure; nil = the output is null
}

// Settings are the limits of one step. If the source does not set a limit, the field holds the
// default.
type Settings struct {
	// Timeout is the longest duration of one attempt. The default is 30s, or ChildTimeout for a
	// child run, or the timeout of the action block.
	Timeout  time.Duration
	Deadline Limit // deadline of all attempts together; the zero Limit = no deadline
	// HeartbeatTimeout is the longest time without a heartbeat during an attempt; 0 = no limit.
	HeartbeatTimeout time.Duration
	Retry            Retry
	MaxParallel      int // largest number of instances that run at the same time; 0 = no limit
	Priority         int // priority of the step's calls, from 0 to 100; negative = the priority of the run
	MaxIterations    int // largest number of iterations of a repeat step; 0 = no limit
	// MaxFailures returns how many of n instances may fail; nil = no instance may fail.
	MaxFailures func(n int) int
}

// Retry says when a step or an undo gets a new attempt after a failed attempt.
type Retry struct {
	MaxAttempts     int // largest number of attempts in one round, including the first attempt; Unbounded = no limit
	Strategy        Strategy
	InitialInterval time.Duration // pause after the first attempt
	Multiplier      float64       // factor by which each pause is longer than the previous pause; only for Exponential
	MaxInterval     time.Duration // longest pause
	Jitter          bool          // true = a pause has a random length, up to the computed length
	On              []string      // additional error codes after which a new attempt is allowed
	NotOn           []string      // error codes after which no new attempt is allowed
	OnExhausted     Exhausted     // what happens after the last attempt
	CoolDown        time.Duration // length of a cool-down
	CoolDowns       int           // largest number of cool-downs; a new round of attempts follows each cool-down
}

// Unbounded is the value of Retry.MaxAttempts if the number of attempts has no limit.
const Unbounded = -1

// Strategy says how the pause between attempts grows.
type Strategy uint8

// The values of Retry.Strategy. The zero Strategy is invalid.
const (
	strategyInvalid Strategy = iota
	Exponential
	Linear
	Constant
)

// Exhausted says what happens after the last allowed attempt of a step has failed (S41).
type Exhausted uint8

// The values of Exhausted. ExhaustedMode means that Workflow.CompensationMode says what happens.
const (
	ExhaustedMode Exhausted = iota
	ExhaustedCompensate
	ExhaustedPark
	ExhaustedCoolDown
)

// A Limit is a deadline: a time, or a duration after the start of the run or step. The zero Limit
// means no deadline.
type Limit struct {
	After time.Duration // time after the start of the run or step; 0 = not given
	At    time.Time     // absolute time; zero = not given
}

// From returns the time of the deadline for a run or step that began at the time `start`. It
// returns false if l is the zero Limit.
func (l Limit) From(start time.Time) (time.Time, bool) {
	switch {
	case !l.At.IsZero():
		return l.At, true
	case l.After > 0:
		return start.Add(l.After), true
	}
	return time.Time{}, false
}

// An Each holds the evaluated for_each of a step. Keys holds the keys of the instances, sorted.
// Values[i] is each.value of the instance with the key Keys[i].
type Each struct {
	Keys   []string
	Values []value.Value
}

// LimitFunc evaluates a deadline and returns it as a Limit.
type LimitFunc func(*eval.Scope) (Limit, error)

// Notifications returns the notify blocks that announce the given state of a run of the workflow.
func (w *Workflow) Notifications(state string) []*Notify {
	var out []*Notify
	for _, n := range append(w.Notify[:len(w.Notify):len(w.Notify)], w.NotifyAround...) {
		if slices.Contains(n.On, state) {
			out = append(out, n)
		}
	}
	return out
}

// Announces reports whether a notify block announces any state of the runs of the workflow.
func (w *Workflow) Announces() bool { return len(w.Notify)+len(w.NotifyAround) > 0 }
