// Package decl reads the declarations of a module. It turns blocks into plain data, and finds
// every reference in them.
//
//	in:   a file system, or the files of a stored definition
//	out:  Module with its agents, variables, local values, workflows and steps
//
// To add a block to the language, add a struct in decl.go and a decoder function in decode.go. In
// graph.go, add the references that the expressions of the block may contain.
//
// The package reads the files of the module and of its libraries. It also reads the files and the
// environment variables that file(), env() and similar functions name. It needs no schemas of
// agents.
//
// Invariants:
//   - Parsing continues after an error, so that one mistake does not hide others. The package also
//     checks a declaration whose name is already used. The code calls such a declaration a twin.
//   - The Module holds the results of file() and env(). So a stored definition does not read the
//     files and the environment again.
//   - The same files always give the same Module, with everything in the same order.
package decl

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// A Module holds the declarations of a module. Package decl has checked their names, references and
// constants. Package link makes workflows from the declarations.
type Module struct {
	Files   map[string][]byte  // texts of the files of the module, by name
	Sources map[string][]byte  // texts of all files with blocks or values, also of the libraries, by name; for messages
	Reads   functions.Reads    // results of file(), env() and similar functions
	Blocks  report.BlockRanges // positions of the blocks, for messages

	Agents    map[string]*Agent      // agents by name, with implied agents
	Variables map[string]*Variable   // variables outside of workflows, by name
	locals    map[string]*eval.Local // locals outside of workflows, by name
	ownLocals []*eval.Local          // all locals outside of workflows, with duplicates
	Workflows []*Workflow            // all workflows, with duplicates
	Libraries map[string]*Library    // library blocks by name
	Auto      []noun.Assignment      // values from *.auto.vars.hcl files
	Funcs     map[string]function.Function
	Below     map[string]*Module // all libraries by path, also the libraries of libraries; nil in a library
	File      string             // name of the only file, if the module is a single file; otherwise ""
	Failed    bool               // true = the module has errors; in a library, true only if a file cannot be parsed
	// true = some declarations of the files are not here, because a file has errors or the check
	// ended early
	Partial bool
	Older   bool // true = do not check newer rules, because the definition may be older than these rules

	// kept holds the names of the agents of a stored definition, if Older is true and this is the
	// main module; otherwise nil. Earlier engines did not store the agents that only the
	// notifications of a library's workflow use. If kept is not nil, the module takes only the
	// agents in kept from its libraries, so the module has the same agents as when it was stored.
	kept map[string]bool

	chain  []string // paths of the modules that lead from the main module to this one, including both
	levels int      // how deep the libraries of the module are nested; 0 = it has none

	// Duplicates: agents and variables of the module whose name an earlier agent or variable
	// already has. A duplicate is an error. It is checked for other errors, but never used.
	TwinAgents    []*Agent
	TwinVariables []*Variable
}

func newModule(file string) *Module {
	return &Module{
		File:    file,
		Files:   map[string][]byte{},
		Sources: map[string][]byte{},
		Reads:   functions.Reads{Files: map[string]string{}, Env: map[string]*string{}},
		Blocks:  report.BlockRanges{},
	}
}

// dir returns the path of the directory of the module, relative to the directory of the main
// module.
func (m *Module) dir() string {
	switch {
	case m.File != "":
		return path.Dir(m.File)
	case len(m.chain) > 0:
		return m.chain[len(m.chain)-1]
	}
	return "."
}

// An Agent is an agent block, or an implied agent. An implied agent has no block: a step, an undo
// or a notify block names the agent in the argument `action`.
type Agent struct {
	Name, Plugin, Constraint string
	Where                    hcl.Range // position of the block; for an implied agent, position of an action that names the agent
	PluginAt                 hcl.Range // position of the argument `plugin`; without this argument, the same as Where
	Implied                  bool
	Block                    *syntax.Block // the agent block; nil = the agent is implied
	Instances, Concurrency   int
	Rate                     noun.RateLimit
	// Path of the binary, or of its directory; "" = the binary is where agents are installed. A
	// relative path is relative to the directory of the main module.
	Source      string
	SourceAt    hcl.Range // position of the argument `source`
	Env         []string
	Breaker     noun.Breaker
	Config      []syntax.Arg
	Library     *Module   // library that declares the agent; nil = the module itself declares it
	Idempotent  bool      // default for actions that do not say whether they are idempotent
	Actions     []*Action // declared actions: the action blocks, without duplicates
	twinActions []*Action // action blocks whose name is already used
}

// An Action is an action block of an agent: a declared action. Steps use a declared action
// like an action of the agent's plugin.
type Action struct {
	Name      string
	Where     hcl.Range
	Block     *syntax.Block
	Uses      string // name of the plugin's action that the declared action uses; "" = missing or invalid
	UsesAt    hcl.Range
	Arguments cty.Type           // object type of the arguments; an object without attributes if there are none
	Defaults  *typeexpr.Defaults // defaults of optional arguments; nil = none
	Output    cty.Type           // object type of the output; cty.NilType = the block has no valid `output`
	Presets   *typeexpr.Defaults // defaults of optional attributes of the output; nil = none
	Input     []syntax.Arg
	InputAt   hcl.Range // position of the input block; without this block, position of the action block
	Result    *eval.Expr
	Errors    []ErrorCode
	FailWhen  []*Refusal

	Idempotent, ReadOnly, ByKey *bool // nil = the block does not have this attribute

	CompensatedBy   string // name of the action that undoes the effect; "" = none
	CompensatedByAt hcl.Range
	Lookup          string // name of the action that says whether the call had its effect; "" = none
	LookupAt        hcl.Range
	Timeout         time.Duration // default timeout of steps and undos that use the action; 0 = none
}

// An ErrorCode is an error code in the attribute `errors` of an action block.
type ErrorCode struct {
	Code      string
	Retryable bool
	Where     hcl.Range // position of the attribute `errors`
}

// A Library is a library block. It names another module, whose agents and workflows the module can
// use.
type Library struct {
	Name   string
	where  hcl.Range // position of the block
	Module *Module   // the module that the block names; nil = the module cannot be used, and the error was reported
}

// A Variable is a variable block.
type Variable struct {
	Name, Description string
	Where             hcl.Range
	Deployment        bool // true = the variable is declared outside of workflows
	// true = the variable holds a value that a group takes from outside of the group
	Hidden      bool
	Type        cty.Type           // declared type, or type of a default that is no tuple or object; otherwise cty.DynamicPseudoType
	TypeText    string             // name of the type, for messages
	typed       bool               // true = the variable has a declared type
	kind        valueKind          // kind of the default; only for a variable without a declared type
	element     cty.Type           // type of the elements if the field `kind` is kindList
	defaults    *typeexpr.Defaults // defaults of optional attributes in the declared type; nil = none
	Default     cty.Value          // default, converted to Type; cty.NilVal = the variable has no default that fits
	Sensitive   bool
	Nullable    bool
	Validations []*Condition
}

func (v *Variable) hasDefault() bool { return v.Default != cty.NilVal }

// A Condition is a precondition, postcondition or validation block, or the condition of a fail_when
// block.
type Condition struct {
	Where                    hcl.Range
	Condition, Message, Code *eval.Expr
}

// A Workflow is a workflow block or a group block with all inner blocks, or the workflow of a
// notification.
type Workflow struct {
	Name, Description    string
	Where                hcl.Range
	Twin                 bool // true = an earlier workflow has this name; check this workflow for errors, but never use it
	Block                *syntax.Block
	Variables            map[string]*Variable   // variables of the workflow and of the module, by name
	TwinVariables        []*Variable            // variables of the workflow whose name is already used
	Locals               map[string]*eval.Local // locals of the workflow and of the module, by name
	OwnLocals            []*eval.Local          // all locals of the workflow, with duplicates
	Steps                []*Step                // all steps, with duplicates
	Index                map[string]int         // index in Steps, by name; the index of the first step with the name
	Outputs              []*Output
	Notifies             []*Notify
	outputAt             map[string]hcl.Range // positions of the outputs, by name
	Retry                *syntax.Block
	Deadline             *eval.Expr
	Mode                 noun.Mode
	CompensationDeadline *eval.Expr
	Retention            time.Duration // how long runs are kept after their end; 0 = the engines decide
	Unique               *eval.Expr    // argument `key` of the unique block; nil = none
	UniqueRule           noun.Unique   // the arguments of the unique block, without `key`
	Priority             *eval.Expr
	Concurrency          *syntax.Block // the concurrency block; nil = none
	RejectsWhenFull      bool          // true = the concurrency block says when_full = "reject"
	Admits               []*Admit      // all admit blocks, with duplicates
	Schedules            []*Schedule   // all schedules, with duplicates
	OnEvents             []*OnEvent    // all on_event and reset_on blocks, with duplicates
	Order                []int         // indexes of the steps in a topological order; nil = the steps have a cycle
	// Moved maps the earlier name of a step to its present name, as the moved blocks of the module
	// say; nil = no step was moved.
	Moved   map[string]string
	height  int      // how deep the child runs of the workflow are nested; 0 = it starts none
	visited bool     // true = the field `height` is set
	used    []string // names of the agents that the workflow and its child runs use; nil = not known yet

	// The next three fields are set only in the workflow of a group.
	Outer  *Workflow // workflow that contains the group; nil = this is not the workflow of a group
	Holder *Step     // step of Outer that starts the group
	// values that the group takes from outside of the group, by name of the hidden variable
	taken map[string]*taken
}

// An Admit is an admit block of a workflow.
type Admit struct {
	Name, SQL, Bump, Lock string
	Where                 hcl.Range
	SQLAt                 hcl.Range
	Args, Message         *eval.Expr // Args is nil if there are no parameters
}

// A Notify is a notify block of a workflow.
type Notify struct {
	On []string // states that the block announces, without duplicates and unknown words
	// Flow is the workflow of a notification: one step that makes the call. A person cannot start
	// this workflow.
	Flow *Workflow
}

// An Output is an output block.
type Output struct {
	Name, Description string
	where             hcl.Range
	Value             *eval.Expr
	Sensitive         bool
}

// A Step is a step block.
type Step struct {
	Index      int
	Name       string
	Where      hcl.Range
	Block      *syntax.Block
	Kind       StepKind
	Agent      string // name of the agent in the attribute `action`; "" = the attribute is missing or invalid
	Action     string
	ActionAt   hcl.Range
	Input      []syntax.Arg
	InputAt    hcl.Range         // position of the input block; without this block, position of the step
	dependsOn  []int             // indexes of the steps in depends_on
	After      map[int]hcl.Range // direct dependencies; key = index of a step, value = position of the reference
	OutputType cty.Type          // type in output_type; cty.NilType = the step has no valid output_type
	OutputAt   hcl.Range         // position of output_type
	NoUndo     bool              // true = the step has the attribute `compensation`, or is the step of a notification
	Pivot      bool
	Idempotent *bool      // nil = the step does not have this attribute
	ReadOnly   *bool      // nil = the step does not have this attribute
	OnRerun    noun.Rerun // RerunDefault = the step has no valid on_rerun
	Pre, Post  []*Condition
	FailWhen   []*Refusal
	Wait       *Wait         // nil = Kind is not StepWait
	Timer      *syntax.Block // the timer block; nil = Kind is not StepTimer
	Child      *Child        // nil = Kind is not StepChild
	Repeat     *syntax.Block // the repeat block; nil = the step has no such block, so the step is done once
	Catch      *syntax.Block
	Undo       *Undo
}

// A Refusal is a fail_when block.
type Refusal struct {
	Condition
	Permanent bool
}

// A Wait is a wait block.
type Wait struct {
	Block   *syntax.Block
	Payload cty.Type // type in `payload`; cty.DynamicPseudoType = the block has no valid `payload`
	Default *typeexpr.Defaults
	// Continue is true if the block has on_timeout = "continue".
	Continue bool
}

// An Undo is a compensate block.
type Undo struct {
	Where         hcl.Range
	Block         *syntax.Block
	Agent, Action string
	ActionAt      hcl.Range
	Input         []syntax.Arg
	InputAt       hcl.Range // position of the input block; without this block, position of the compensate block
	Idempotent    *bool     // nil = the block does not have this attribute
	ByKey         *bool     // nil = the block does not have this attribute
}

// Attr returns an attribute of the step block; nil if the block does not have this attribute.
func (s *Step) Attr(name string) *eval.Expr { return s.Block.Attr(name) }

// pivotAt returns the position of the attribute `pivot` of the step. Without this attribute, it
// returns the position of the attribute `workflow` or of the group, because the child run makes the
// step a pivot.
func (s *Step) pivotAt() hcl.Range {
	if e := s.Attr("pivot"); e != nil {
		return e.Range
	}
	if s.Child != nil {
		return s.Child.Where
	}
	return s.Where
}

// Title returns the name of the step with its kind, for messages.
func (s *Step) Title() string {
	if s.Child != nil && s.Child.Group {
		return fmt.Sprintf("Group %q", s.Name)
	}
	return fmt.Sprintf("Step %q", s.Name)
}

// Conditions returns the conditions of all precondition, postcondition and fail_when blocks of the
// step.
func (s *Step) Conditions() []*Condition {
	out := slices.Concat(s.Pre, s.Post)
	for _, r := range s.FailWhen {
		out = append(out, &r.Condition)
	}
	return out
}

// UsesSelfInput reports whether an expression of the step uses self.input.
func (s *Step) UsesSelfInput() bool {
	var all []*eval.Expr
	for _, c := range s.Conditions() {
		all = append(all, c.Condition, c.Message, c.Code)
	}
	for _, name := range []string{"collect", "until", "interval"} {
		all = append(all, s.Repeat.Attr(name))
	}
	if s.Undo != nil {
		for _, a := range s.Undo.Input {
			all = append(all, a.Expr)
		}
	}
	return slices.ContainsFunc(all, func(e *eval.Expr) bool { return e != nil && e.Compiled != nil && e.Compiled.SelfInput })
}

// Collects reports whether the step has a repeat block with `collect`.
func (s *Step) Collects() bool { return s.Repeat != nil && s.Repeat.Attr("collect") != nil }

// Each reports whether the step has for_each.
func (s *Step) Each() bool { return s.Attr("for_each") != nil }

// WhenEach reports whether the step has for_each and the attribute `when` uses each.* or self.*.
// The engine evaluates such a condition for every instance, after for_each.
func (s *Step) WhenEach() bool {
	e := s.Attr("when")
	return s.Each() && e != nil && e.Compiled != nil && (e.Compiled.Each || e.Compiled.Self)
}

// A valueKind says which values a variable without a declared type accepts. The default of the
// variable decides that.
type valueKind uint8

const (
	kindOpen   valueKind = iota // there is no default, or it is neither a tuple nor an object
	kindList                    // only lists, sets and tuples, and null if it is allowed
	kindObject                  // only objects and maps, and null if it is allowed
)

// A StepKind says what a step does.
type StepKind uint8

// The kinds of steps.
const (
	StepCalls StepKind = iota // the step calls an action of an agent
	StepValue                 // the step computes its output from an expression
	StepTimer                 // the step waits for a time
	StepWait                  // the step waits for a signal
	StepChild                 // the step starts a child run
)

// A Child describes the child run that a step starts.
type Child struct {
	Library string // name of the library that has the workflow; "" = the module itself has it
	Name    string // name of the workflow in its module; "" = the attribute `workflow` is invalid
	Group   bool   // true = the workflow consists of the steps in a group block
	Where   hcl.Range
	// Workflow is the workflow of the child run; nil = there is no such workflow or the step cannot
	// start it, and the error was reported.
	Workflow *Workflow
	// Passed gives values to the variables of the child that the input block of the step cannot
	// set: the variables of the module, and the hidden variables of a group. The expressions are
	// evaluated in the run that has the step.
	Passed []syntax.Arg
}

// A taken value is a value that a group takes from outside of the group. In the group, a hidden
// variable holds it.
type taken struct {
	at     hcl.Range            // position of the first reference
	root   string               // first name of the reference, such as "step"
	name   string               // second name of the reference
	fields map[string]hcl.Range // used attributes of a step; nil = the whole value is used
	// expression that gives the value; nil = the value is the reference ROOT.NAME, made of the
	// fields `root` and `name`
	expr *eval.Expr
}

// A Schedule is a schedule block.
type Schedule struct {
	Where       hcl.Range
	Noun        *noun.Schedule // Timetable is nil if the cron expression or the time zone is invalid
	VariablesAt hcl.Range      // position of the argument `variables`; without this argument, position of the block
	Broken      bool           // true = the argument `variables` has errors
	Given       []string       // names of the variables to which the rows of a select block give values
}

// An OnEvent is an on_event block, or a reset_on block of a unique block.
type OnEvent struct {
	Where       hcl.Range
	Noun        *noun.OnEvent // without its functions, which package link sets in a copy
	When        *eval.Expr    // nil = the block has no condition
	Variables   *eval.Expr    // nil = the block gives no values to variables, or has a select block
	ForEach     *eval.Expr    // gives keys, and each key starts a run; nil = the block has no for_each
	Args        *eval.Expr    // values of the parameters of a select block; nil = there are none
	Key         *eval.Expr    // key of a reset_on block; nil = it is an on_event block
	VariablesAt hcl.Range     // position of the argument `variables`; without this argument, position of the block
	Broken      bool          // true = the argument `variables` next to a select block has errors
	Given       []string      // names of the variables to which the rows of a select block give values
}
