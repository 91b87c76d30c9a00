package dsl

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// maxRounds is how often the bodies of all for expressions together may run in
// one evaluation. Nested loops multiply, and nothing in the library stops
// them.
const maxRounds = 250_000

var errBudget = fmt.Errorf("its loops run more than %d times", maxRounds)

// A round is the body of a for expression, which counts how often it is
// evaluated. It stands in the tree in place of the body.
type round struct {
	hclsyntax.Expression
}

// Value evaluates the body. It panics with errBudget when too many were
// evaluated: an error would only be collected while the loops go on.
// evaluateSafe turns it into a diagnostic.
func (r *round) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	spend(ctx)
	return r.Expression.Value(ctx)
}

// budgetName cannot be written in an expression.
const budgetName = "\x00rounds"

var budgetType = cty.Capsule("rounds", reflect.TypeFor[budget]())

func spend(ctx *hcl.EvalContext) {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[budgetName]; ok {
			left := v.EncapsulatedValue().(*budget)
			if left.rounds--; left.rounds < 0 {
				panic(errBudget)
			}
			return
		}
	}
}

type budget struct{ rounds int }

func newBudget() cty.Value { return cty.CapsuleVal(budgetType, &budget{maxRounds}) }

// countRounds puts counters into the for expressions of a tree, and reports
// whether there are any.
func countRounds(e hclsyntax.Expression) bool {
	found := false
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		// A loop that is the body of another one has its counter around it already.
		if f, ok := bare(n).(*hclsyntax.ForExpr); ok {
			found = true
			if _, done := f.ValExpr.(*round); !done {
				f.ValExpr = &round{f.ValExpr}
				if f.CondExpr != nil {
					f.CondExpr = &round{f.CondExpr}
				}
			}
		}
		return nil
	})
	return found
}

// bare returns the node that an author wrote.
func bare(n hclsyntax.Node) hclsyntax.Node {
	if r, ok := n.(*round); ok {
		return r.Expression
	}
	return n
}

var errTooLargeResult = errors.New("the result is too large")

// guarded refuses calls whose result would fill the memory, before they are
// made.
func guarded(f function.Function, size func(args []cty.Value) float64) function.Function {
	return function.New(&function.Spec{
		Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if size(args) > maxText {
				return cty.NilType, errTooLargeResult
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if size(args) > maxText {
				return cty.NilVal, errTooLargeResult
			}
			return f.Call(args)
		},
	})
}

func textLength(v cty.Value) float64 {
	v, _ = v.Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return 0
	}
	return float64(len(v.AsString()))
}

var (
	// Each element of the product weighs sixteen bytes for each of its parts.
	setProductFunc = guarded(stdlib.SetProductFunc, func(args []cty.Value) float64 {
		n := 16 * float64(len(args))
		for _, a := range args {
			if a, _ := a.Unmark(); a.IsKnown() && !a.IsNull() && a.CanIterateElements() {
				n *= float64(a.LengthInt())
			}
		}
		return n
	})
	indentFunc = guarded(stdlib.IndentFunc, func(args []cty.Value) float64 {
		n, _ := args[0].Unmark()
		if n.Type() != cty.Number || !n.IsKnown() || n.IsNull() {
			return 0
		}
		spaces, _ := n.AsBigFloat().Float64()
		return spaces * (1 + textLength(args[1]))
	})
	safeReplaceFunc = guarded(replaceFunc, func(args []cty.Value) float64 {
		if len(args) < 3 {
			return 0
		}
		return (1 + textLength(args[0])/max(1, textLength(args[1]))) * textLength(args[2])
	})
)
