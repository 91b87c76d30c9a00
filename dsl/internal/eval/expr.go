package eval

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// An Expr is an expression in the source. An expression from a JSON file was converted to the
// syntax of HCL, so later code handles only HCL.
type Expr struct {
	Syntax   hclsyntax.Expression
	Range    hcl.Range
	Raw      *string   // text of a string in a JSON file; nil for other expressions
	Bad      bool      // true = an error was reported for the expression, so it must not be evaluated
	Compiled *Compiled // compiled form of the expression; nil = not compiled yet
}

// Traversal returns the traversal if the expression is a plain reference such as
// agent.payment.charge, and nil otherwise. In JSON such a reference is the string
// "agent.payment.charge" or "${agent.payment.charge}".
func (e *Expr) Traversal() hcl.Traversal {
	syn := e.Syntax
	if w, ok := syn.(*hclsyntax.TemplateWrapExpr); ok && e.Raw != nil {
		syn = w.Wrapped
	} else if e.Raw != nil {
		start := hcl.Pos{Line: e.Range.Start.Line, Column: e.Range.Start.Column + 1, Byte: e.Range.Start.Byte + 1}
		t, diags := hclsyntax.ParseTraversalAbs([]byte(*e.Raw), e.Range.Filename, start)
		if diags.HasErrors() {
			return nil
		}
		return t
	}
	t, diags := hcl.AbsTraversalForExpr(syn)
	if diags.HasErrors() {
		return nil
	}
	return t
}

// Elements returns the elements of an expression such as [a, b], each as an Expr. It returns
// false for any other expression.
func (e *Expr) Elements() ([]*Expr, bool) {
	t, ok := e.Syntax.(*hclsyntax.TupleConsExpr)
	if !ok {
		return nil, false
	}
	out := make([]*Expr, len(t.Exprs))
	for i, x := range t.Exprs {
		out[i] = &Expr{Syntax: x, Range: x.Range()}
		if tpl, ok := x.(*hclsyntax.TemplateExpr); ok && e.isJSON() && tpl.IsStringLiteral() {
			if v, diags := tpl.Value(nil); !diags.HasErrors() {
				s := v.AsString()
				out[i].Raw = &s
			}
		} else if _, ok := x.(*hclsyntax.TemplateWrapExpr); ok && e.isJSON() {
			s := ""
			out[i].Raw = &s
		}
	}
	return out, true
}

// isJSON reports whether the expression comes from a JSON file.
func (e *Expr) isJSON() bool { return strings.HasSuffix(e.Range.Filename, ".json") }

// A Compiled is an expression with a list of its references.
type Compiled struct {
	Syntax   hclsyntax.Expression // the expression in the source
	Metered  hclsyntax.Expression // the expression with nodes that count its cost; the method `evaluate` uses this form
	Refs     []hcl.Traversal      // references in the expression, without invalid references
	Vars     bool                 // true = the expression or one of its locals uses var.*
	Locals   []*Local             // locals to which the expression itself refers, sorted by name
	Steps    []int                // indexes of the steps to which the expression or its locals refer, ascending
	StepRefs map[int]hcl.Range    // positions of the references to steps in the expression itself, by step index
	Named    []int                // step indexes that are keys of the map StepRefs, ascending
	Each     bool                 // true = the expression uses each.*
	EachKey  bool                 // true = the expression uses each.key
	// GroupKeys is a set of bits, one for each depth of groups: bit 1 means the group in the
	// workflow, bit 2 the group inside of it, and so on. A bit is set if the expression, or one of
	// its locals, uses the each.key of that group. The each.key of the step's own for_each has no
	// bit here: see EachKey.
	GroupKeys uint64
	Self      bool // true = the expression uses self.*
	SelfInput bool // true = the expression uses self.input
	// true = the expression uses self.output, or self.collected, which depends on the output
	SelfOutput    bool
	SelfPrevious  bool       // true = the expression uses self.previous
	SelfCollected bool       // true = the expression uses self.collected
	Failure       bool       // true = the expression uses failure.*
	Args          bool       // true = the expression uses args.*
	Run           bool       // true = the expression or one of its locals uses run.*
	Event         bool       // true = the expression uses event.*
	Secrets       bool       // true = the expression calls secret()
	Constant      *cty.Value // value of an expression without references; nil = the value is not constant
}

// evaluate evaluates the expression. The parameter `ctx` must hold the values of all references in
// the expression.
func (c *Compiled) evaluate(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if c.Secrets {
		return secretTree(c.Syntax, ctx)
	}
	return metered.Evaluate(c.Metered, ctx)
}

// A Local is one local value: a name and an expression in a locals block.
type Local struct {
	Name  string
	Where hcl.Range // position of the name
	Expr  *Expr
	File  bool // true = the local is declared outside of workflows
}

// NameOf returns the name in one part of a reference. The parts .NAME and ["NAME"] mean the same, so
// code that looks for a name must use this function. NameOf returns "" for any other part, such as
// [0].
func NameOf(part hcl.Traverser) string {
	switch p := part.(type) {
	case hcl.TraverseAttr:
		return p.Name
	case hcl.TraverseIndex:
		if p.Key.Type() == cty.String && p.Key.IsKnown() && !p.Key.IsNull() {
			return p.Key.AsString()
		}
	}
	return ""
}

// LiteralString returns the text of the argument and true if a call has exactly one argument, and
// LiteralText returns a text for it. For any other call it returns false.
func LiteralString(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 1 || call.ExpandFinal {
		return "", false
	}
	return LiteralText(call.Args[0])
}

// LiteralText returns the value of an expression without references and calls, if this value is a
// string. It returns false for any other expression.
func LiteralText(e hclsyntax.Expression) (string, bool) {
	if len(e.Variables()) > 0 || len(Calls(e)) > 0 {
		return "", false
	}
	v, diags := metered.EvaluateOnce(e, nil, nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// SecretRule is a text for error messages. It says where secret() is allowed.
const SecretRule = "secret() may stand only in an agent's config and in the input of a step or of its undo, alone or inside a string."

// Calls returns the function calls in an expression. If the caller gives one or more names after
// the expression, Calls returns only the calls of the functions with these names.
func Calls(e hclsyntax.Expression, only ...string) []*hclsyntax.FunctionCallExpr {
	var out []*hclsyntax.FunctionCallExpr
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		if c, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			if len(only) == 0 {
				out = append(out, c)
			}
			for _, name := range only {
				if c.Name == name {
					out = append(out, c)
				}
			}
		}
		return nil
	})
	return out
}
