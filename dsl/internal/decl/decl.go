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

// A Module holds the declarations of a module: what its blocks say, checked as far as that
// is possible without the agents. Package link makes workflows of them.
type Module struct {
	Files   map[string][]byte // that make up the module
	Sources map[string][]byte // all that were read, for messages
	Reads   functions.Reads
	Places  report.Places

	Agents    map[string]*Agent
	Variables map[string]*Variable   // of file level
	locals    map[string]*eval.Local // of file level
	ownLocals []*eval.Local          // the same, and their twins
	Workflows []*Workflow            // with twins
	Auto      []noun.Assignment
	Funcs     map[string]function.Function
	File      string
	Failed    bool
	Partial   bool // a file could not be parsed: names are missing
	Older     bool // stored before some rules were made, which do not hold for it

	// Declarations whose name is taken, which is an error: checked for others,
	// and never used.
	TwinAgents    []*Agent
	TwinVariables []*Variable // of file level
}

// An Agent is an agent block, or an agent that an action only names.
type Agent struct {
	Name, Plugin, Constraint string
	Where                    hcl.Range
	PluginAt                 hcl.Range // the plugin argument, else where
	Implied                  bool
	Block                    *syntax.Block // nil if implied
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
	Type              cty.Type // cty.DynamicPseudoType if neither written nor inferred
	TypeText          string
	typed             bool      // a type was written
	kind              valueKind // kind of the default; used if Type is not written
	element           cty.Type  // of kindList
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
	Twin                 bool // the name is another's: an error, and checked for others
	Block                *syntax.Block
	Variables            map[string]*Variable // of the workflow and of the file
	TwinVariables        []*Variable
	Locals               map[string]*eval.Local // of the workflow and of the file
	OwnLocals            []*eval.Local          // with twins
	Steps                []*Step                // with twins, which are not in index
	Index                map[string]int
	Outputs              []*Output
	outputAt             map[string]hcl.Range // by name
	Retry                *syntax.Block
	Deadline             *eval.Expr
	Mode                 noun.Mode
	CompensationDeadline *eval.Expr
	Unique               *eval.Expr
	Order                []int // nil where there is a cycle
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
	Agent      string // of action; "" if broken, or the step calls no agent
	Action     string
	ActionAt   hcl.Range
	Input      []syntax.Arg
	InputAt    hcl.Range
	dependsOn  []int
	After      map[int]hcl.Range // direct dependencies, and what made them
	OutputType cty.Type          // cty.NilType = not written
	OutputAt   hcl.Range
	NoUndo     bool
	Pivot      bool
	Idempotent *bool
	ReadOnly   *bool
	OnRerun    noun.Rerun // RerunDefault = not written, or broken
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

// WhenEach reports whether the step's when is about an instance, so that it
// cannot be evaluated before for_each.
func (s *Step) WhenEach() bool {
	e := s.Attr("when")
	return s.Each() && e != nil && e.Compiled != nil && e.Compiled.Each
}

// A valueKind is as much as a default that is written as a list or an object
// says about other values of its variable.
type valueKind uint8

const (
	kindOpen valueKind = iota // nothing
	kindList
	kindObject
)
