package eval

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/metered"
)

// An Expr is an expression as it is written. The JSON form was converted to the syntax of
// HCL, so later code handles one form only.
type Expr struct {
	Syntax   hclsyntax.Expression
	Range    hcl.Range
	Raw      *string // the string as written, if the source is JSON
	Bad      bool    // an error was reported for it, so it must not be evaluated
	Compiled *Compiled
}

// Traversal returns the expression as a plain reference such as
// agent.payment.charge, or nil if it is something else. In JSON it is the
// string "agent.payment.charge" or "${agent.payment.charge}".
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

// Elements returns the elements of an expression such as [a, b]. It returns false
// for any other expression.
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

// isJSON reports whether the expression comes from the JSON form.
func (e *Expr) isJSON() bool { return strings.HasSuffix(e.Range.Filename, ".json") }

// A Compiled is an expression with a list of everything that it refers to. Its evaluation
// context holds only these values.
type Compiled struct {
	Syntax     hclsyntax.Expression // the expression as written
	Metered    hclsyntax.Expression // the same with nodes that charge for its cost; evaluate uses this form
	Refs       []hcl.Traversal      // references that it contains, except those that were refused
	Vars       bool
	Locals     []*Local
	Steps      []int             // indices of the steps that it or its locals refer to, ascending
	Direct     map[int]hcl.Range // steps named in the expression itself: their place in it, by step index
	Named      []int             // the keys of Direct, ascending
	Each       bool
	EachKey    bool
	Self       bool
	SelfOutput bool
	Failure    bool
	Run        bool
	Secrets    bool
	Constant   *cty.Value // its value, if it refers to nothing; otherwise nil
}

// evaluate evaluates the expression. The context must hold everything that it refers to.
func (c *Compiled) evaluate(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if c.Secrets {
		return secretTree(c.Syntax, ctx)
	}
	return metered.Evaluate(c.Metered, ctx)
}

// A Local is one local value.
type Local struct {
	Name  string
	Where hcl.Range
	Expr  *Expr
	File  bool
}

// LiteralString returns the only argument of a call if it is a plain string.
func LiteralString(call *hclsyntax.FunctionCallExpr) (string, bool) {
	if len(call.Args) != 1 || call.ExpandFinal || len(call.Args[0].Variables()) > 0 || len(Calls(call.Args[0])) > 0 {
		return "", false
	}
	v, diags := metered.EvaluateOnce(call.Args[0], nil, nil)
	if diags.HasErrors() || v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// SecretRule says where secret() may be written.
const SecretRule = "secret() may stand only in an agent's config and in the input of a step or of its undo, alone or inside a string."

// Calls returns the function calls in an expression. If names are given, it returns only the
// calls of the functions with these names.
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
