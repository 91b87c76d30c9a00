package decl

import (
	"slices"

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

// A Module holds the declarations of a module. They are checked as far as that is possible
// without the schemas of agents. Package link makes workflows of them.
type Module struct {
	Files   map[string][]byte // texts of the module's files, by name
	Sources map[string][]byte // texts of all files that were read, by name; for messages
	Reads   functions.Reads
	Places  report.Places

	Agents    map[string]*Agent
	Variables map[string]*Variable   // variables outside of workflows, by name
	locals    map[string]*eval.Local // locals outside of workflows, by name
	ownLocals []*eval.Local          // all locals outside of workflows, also those whose name is already used
	Workflows []*Workflow            // all workflows, also those whose name is already used
	Auto      []noun.Assignment
	Funcs     map[string]function.Function
	File      string
	Failed    bool
	Partial   bool // declarations are missing: a file has errors, or the check ended early
	Older     bool // the definition was stored before some rules existed; these are not checked

	// Declarations whose name is already used, which is an error. They are checked for other
	// errors, but never used.
	TwinAgents    []*Agent
	TwinVariables []*Variable // variables outside of workflows
}

// An Agent is an agent block, or an agent without a block that an action names (Implied).
type Agent struct {
	Name, Plugin, Constraint string
	Where                    hcl.Range
	PluginAt                 hcl.Range // place of the plugin argument; without one, the same as Where
	Implied                  bool
	Block                    *syntax.Block // nil if Implied
	Instances, Concurrency   int
	Env                      []string
	Breaker                  noun.Breaker
	Config                   []syntax.Arg
}

// A Variable is a variable block.
type Variable struct {
	Name, Description string
	Where             hcl.Range
	Deployment        bool
	Type              cty.Type // cty.DynamicPseudoType if it is neither written nor inferred
	TypeText          string
	typed             bool      // a type was written
	kind              valueKind // kind of the default; used if no type was written
	element           cty.Type  // type of the elements if kind is kindList
	defaults          *typeexpr.Defaults
	Default           cty.Value // converted default; cty.NilVal = none
	Sensitive         bool
	Nullable          bool
	Validations       []*Condition
}

// A Condition is a precondition, postcondition or validation block.
type Condition struct {
	Where                    hcl.Range
	Condition, Message, Code *eval.Expr
}

// A Workflow is a workflow block with all that is inside of it.
type Workflow struct {
	Name, Description    string
	Where                hcl.Range
	Twin                 bool // another workflow has the name, an error; it is checked, but never used
	Block                *syntax.Block
	Variables            map[string]*Variable   // variables of the workflow and of the module, by name
	TwinVariables        []*Variable            // variables of the workflow whose name is already used
	Locals               map[string]*eval.Local // locals of the workflow and of the module, by name
	OwnLocals            []*eval.Local          // all locals of the workflow, also duplicates
	Steps                []*Step                // all steps, also duplicates
	Index                map[string]int         // index in Steps by name; of duplicates, the first
	Outputs              []*Output
	outputAt             map[string]hcl.Range // places of the outputs, by name
	Retry                *syntax.Block
	Deadline             *eval.Expr
	Mode                 noun.Mode
	CompensationDeadline *eval.Expr
	Unique               *eval.Expr
	Order                []int // topological order of the steps; nil = there is a cycle
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
	Agent      string // name of the agent in the attribute `action`; "" if that is invalid, or the step calls no agent
	Action     string
	ActionAt   hcl.Range
	Input      []syntax.Arg
	InputAt    hcl.Range
	dependsOn  []int
	After      map[int]hcl.Range // steps that it depends on directly, and place of each reference
	OutputType cty.Type          // cty.NilType = not written
	OutputAt   hcl.Range
	NoUndo     bool
	Pivot      bool
	Idempotent *bool
	ReadOnly   *bool
	OnRerun    noun.Rerun // RerunDefault = not written, or invalid
	Pre, Post  []*Condition
	FailWhen   []*Refusal
	Wait       *Wait         // of StepWait
	Timer      *syntax.Block // of StepTimer
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
	Payload cty.Type // of what a signal carries; cty.DynamicPseudoType = not written
	Default *typeexpr.Defaults
	// Continue says on_timeout = "continue".
	Continue bool
}

// An Undo is a compensate block.
type Undo struct {
	Where         hcl.Range
	Block         *syntax.Block
	Agent, Action string
	ActionAt      hcl.Range
	Input         []syntax.Arg
	InputAt       hcl.Range
	Idempotent    *bool
	ByKey         *bool
}

// Attr returns an argument of the step's block; nil if it is not written.
func (s *Step) Attr(name string) *eval.Expr { return s.Block.Attr(name) }

// Conditions returns all conditions that can give the step an error code.
func (s *Step) Conditions() []*Condition {
	out := slices.Concat(s.Pre, s.Post)
	for _, r := range s.FailWhen {
		out = append(out, &r.Condition)
	}
	return out
}

// Each reports whether the step has for_each.
func (s *Step) Each() bool { return s.Attr("for_each") != nil }

// WhenEach reports whether the condition in when mentions each.*. Such a condition is evaluated
// for every instance, after for_each.
func (s *Step) WhenEach() bool {
	e := s.Attr("when")
	return s.Each() && e != nil && e.Compiled != nil && e.Compiled.Each
}

// A valueKind says which values a variable without a type accepts, if its default is a list or
// an object.
type valueKind uint8

const (
	kindOpen valueKind = iota // any value
	kindList
	kindObject
)
