package dsl

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// Declarations are what the blocks of a module say, checked as far as that is
// possible without the agents. Link turns them into a Workflow.

// An agentDecl is an agent block, or an agent that an action only names.
type agentDecl struct {
	name, plugin, constraint string
	where                    hcl.Range
	pluginAt                 hcl.Range // the plugin argument, else where
	implied                  bool
	block                    *syntax.Block // nil if implied
	instances, concurrency   int
	env                      []string
	breaker                  noun.Breaker
	config                   []syntax.Arg
}

// A variableDecl is a variable block.
type variableDecl struct {
	name, description string
	where             hcl.Range
	deployment        bool
	typ               cty.Type // cty.DynamicPseudoType if neither written nor inferred
	typeText          string
	typed             bool      // a type was written
	kind              valueKind // of the default, where typ does not say it
	element           cty.Type  // of kindList
	defaults          *typeexpr.Defaults
	def               cty.Value // converted default; cty.NilVal = none
	sensitive         bool
	nullable          bool
	validations       []*conditionDecl
}

// A conditionDecl is a precondition, postcondition or validation block.
type conditionDecl struct {
	where                    hcl.Range
	condition, message, code *eval.Expr
}

// A workflowDecl is a workflow block with all that is inside of it.
type workflowDecl struct {
	name, description string
	where             hcl.Range
	twin              bool // the name is another's: an error, and checked for others
	block             *syntax.Block
	variables         map[string]*variableDecl // of the workflow and of the file
	twinVariables     []*variableDecl
	locals            map[string]*eval.Local // of the workflow and of the file
	ownLocals         []*eval.Local          // with twins
	steps             []*stepDecl            // with twins, which are not in index
	index             map[string]int
	outputs           []*outputDecl
	outputAt          map[string]hcl.Range // by name
	retry             *syntax.Block
	deadline          *eval.Expr
	mode              noun.Mode
	compDeadline      *eval.Expr
	unique            *eval.Expr
	order             []int // nil where there is a cycle
}

// An outputDecl is an output block.
type outputDecl struct {
	name, description string
	where             hcl.Range
	value             *eval.Expr
	sensitive         bool
}

// A stepDecl is a step block.
type stepDecl struct {
	index      int
	name       string
	where      hcl.Range
	block      *syntax.Block
	agent      string // of action; "" if broken
	action     string
	actionAt   hcl.Range
	input      []syntax.Arg
	inputAt    hcl.Range
	dependsOn  []int
	after      map[int]hcl.Range // direct dependencies, and what made them
	outputType cty.Type          // cty.NilType = not written
	outputAt   hcl.Range
	noUndo     bool
	pivot      bool
	idempotent *bool
	readOnly   *bool
	onRerun    noun.Rerun // RerunDefault = not written, or broken
	pre, post  []*conditionDecl
	catch      *syntax.Block
	undo       *undoDecl
}

// An undoDecl is a compensate block.
type undoDecl struct {
	where         hcl.Range
	block         *syntax.Block
	agent, action string
	actionAt      hcl.Range
	input         []syntax.Arg
	inputAt       hcl.Range
	idempotent    *bool
	byKey         *bool
}

// attr returns an argument of the step's block; nil if it is not written.
func (s *stepDecl) attr(name string) *eval.Expr { return s.block.Attr(name) }

// each reports whether the step has for_each.
func (s *stepDecl) each() bool { return s.attr("for_each") != nil }

// whenEach reports whether the step's when is about an instance, so that it
// cannot be evaluated before for_each.
func (s *stepDecl) whenEach() bool {
	e := s.attr("when")
	return s.each() && e != nil && e.Compiled != nil && e.Compiled.Each
}
