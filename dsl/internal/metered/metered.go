package metered

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Costs, in estimated nanoseconds, and memory, in bytes.
const (
	roundCost    = 2_000 // cost of one round of a loop
	roundMemory  = 100   // memory of one round of a loop; low, because the context of a round soon becomes garbage
	stepCost     = 300   // cost of one node of an expression
	faultMemory  = 1_000 // memory of one diagnostic; a loop keeps the diagnostics of all rounds
	elementBytes = 100   // memory of one element of a new list, map or object; the cost is the same number
	textMemory   = 4     // memory of one byte of text, in a growing buffer and in the result
	textCost     = 4     // cost of one byte of text
)

// Of returns an expression that has the same value as e, with additional nodes that charge for
// the work. It copies only the parts of e that may be expensive. It does not change e, so other
// code can still read the original expression.
func Of(e hclsyntax.Expression) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		c := *e
		c.Expression = Of(e.Expression)
		return &c
	case *hclsyntax.TemplateWrapExpr:
		c := *e
		c.Wrapped = Of(e.Wrapped)
		return &c
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return e
		}
		c := *e
		c.Parts = make([]hclsyntax.Expression, len(e.Parts))
		for i, p := range e.Parts {
			c.Parts[i] = paying(Of(p), payText)
		}
		return paying(&c, nil)
	case *hclsyntax.TemplateJoinExpr:
		c := *e
		c.Tuple = paying(Of(e.Tuple), payTexts)
		return &c
	case *hclsyntax.FunctionCallExpr:
		c := *e
		c.Args = meteredAll(e.Args)
		return &call{around(e), &c}
	case *hclsyntax.ConditionalExpr:
		c := *e
		c.Condition = Of(e.Condition)
		c.TrueResult, c.FalseResult = Of(e.TrueResult), Of(e.FalseResult)
		return &choice{around(e), &c}
	case *hclsyntax.IndexExpr:
		c := *e
		c.Collection, c.Key = Of(e.Collection), paying(Of(e.Key), payNumber)
		return paying(&c, nil)
	case *hclsyntax.TupleConsExpr:
		c := *e
		c.Exprs = meteredAll(e.Exprs)
		return paying(&c, payBuilt)
	case *hclsyntax.ObjectConsExpr:
		c := *e
		c.Items = make([]hclsyntax.ObjectConsItem, len(e.Items))
		for i, item := range e.Items {
			c.Items[i] = hclsyntax.ObjectConsItem{KeyExpr: Of(item.KeyExpr), ValueExpr: Of(item.ValueExpr)}
		}
		return paying(&c, payBuilt)
	case *hclsyntax.ObjectConsKeyExpr:
		c := *e
		c.Wrapped = Of(e.Wrapped)
		return &c
	case *hclsyntax.ForExpr:
		c := *e
		c.CollExpr = paying(Of(e.CollExpr), payOrder)
		c.KeyExpr, c.ValExpr, c.CondExpr = newRound(e.KeyExpr), newRound(e.ValExpr), newRound(e.CondExpr)
		return paying(&c, payBuilt)
	case *hclsyntax.SplatExpr:
		c := *e
		c.Source, c.Each = paying(Of(e.Source), payOrder), newRound(e.Each)
		return paying(&c, payBuilt)
	case *hclsyntax.BinaryOpExpr:
		c := *e
		operand := payNumber
		if e.Op == hclsyntax.OpEqual || e.Op == hclsyntax.OpNotEqual {
			operand = payCompared
		}
		c.LHS, c.RHS = paying(Of(e.LHS), operand), paying(Of(e.RHS), operand)
		return paying(&c, nil)
	case *hclsyntax.UnaryOpExpr:
		c := *e
		c.Val = paying(Of(e.Val), payNumber)
		return paying(&c, nil)
	case *hclsyntax.RelativeTraversalExpr:
		c := *e
		c.Source = Of(e.Source)
		return &c
	}
	return e // a literal, a reference or the element in a splat expression costs nearly nothing
}

func meteredAll(list []hclsyntax.Expression) []hclsyntax.Expression {
	out := make([]hclsyntax.Expression, len(list))
	for i, e := range list {
		out[i] = Of(e)
	}
	return out
}

// around returns e in parentheses. Each node of this package embeds the result. So if a function of
// the library visits all parts of an expression, it also visits e.
func around(e hclsyntax.Expression) *hclsyntax.ParenthesesExpr {
	return &hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}
}

// A payer is a node that charges a fixed cost and evaluates its expression. Then the function in
// the field `charge` charges for the value. If `charge` is nil, the value costs nothing.
type payer struct {
	*hclsyntax.ParenthesesExpr
	charge func(*Meter, cty.Value)
}

func paying(e hclsyntax.Expression, charge func(*Meter, cty.Value)) hclsyntax.Expression {
	switch e.(type) {
	case nil:
		return nil
	case *hclsyntax.LiteralValueExpr:
		return e
	}
	return &payer{around(e), charge}
}

// Value evaluates the expression, and charges for the evaluation and the value.
func (p *payer) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(stepCost, 0)
	v, diags := p.Expression.Value(ctx)
	m.check()
	if p.charge != nil {
		p.charge(m, v)
	}
	return v, diags
}

// A round is a node for a part of a loop that is evaluated for each element.
type round struct{ *hclsyntax.ParenthesesExpr }

func newRound(e hclsyntax.Expression) hclsyntax.Expression {
	if e == nil {
		return nil
	}
	return &round{around(Of(e))}
}

// Value charges for one round of the loop, and evaluates the expression that the loop repeats.
func (r *round) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(roundCost, roundMemory)
	v, diags := r.Expression.Value(ctx)
	m.check()
	m.pay(0, int64(len(diags))*faultMemory)
	return v, diags
}

// payText charges for the part v of a string, before the library joins the parts.
func payText(m *Meter, v cty.Value) {
	raw, _ := v.Unmark()
	switch n := int64(0); {
	case raw.IsNull(), !raw.IsKnown():
	case raw.Type() == cty.String:
		n = int64(len(raw.AsString()))
		m.pay(n*textCost, n*textMemory)
	case raw.Type() == cty.Number:
		m.Weigh(raw)
	}
}

// payTexts charges for the strings that a loop in a template makes.
func payTexts(m *Meter, v cty.Value) {
	w := m.Weigh(v)
	m.pay(w.bytes*textCost, w.bytes*textMemory)
}

// payBuilt charges for a new list, tuple, map or object v.
func payBuilt(m *Meter, v cty.Value) {
	m.Weigh(v)
	raw, _ := v.Unmark()
	if raw.IsKnown() && !raw.IsNull() && raw.CanIterateElements() {
		n := int64(raw.LengthInt())
		m.pay(n*elementBytes, n*elementBytes)
	}
}

// payOrder charges for a loop over the elements of v. For each loop, the library sorts the
// elements of a set or a map.
func payOrder(m *Meter, v cty.Value) {
	raw, _ := v.Unmark()
	if raw.IsKnown() && !raw.IsNull() && raw.CanIterateElements() {
		n := int64(raw.LengthInt())
		m.pay(n*(50+elementCost(raw.Type(), n)), n*20)
	}
}

// payCompared charges for a comparison of v with another value.
func payCompared(m *Meter, v cty.Value) {
	w := m.Weigh(v)
	m.pay(w.nodes*1500, w.nodes*50)
}

// payNumber charges for the conversion of v to a number, and for an operation with this number.
// A number may have many digits before the point, because each multiplication may double the
// number of digits.
func payNumber(m *Meter, v cty.Value) {
	raw, _ := v.Unmark()
	if raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() {
		m.pay(parsing(value.Numeral(raw.AsString())), 0)
	}
	bits := value.Exponent(raw)
	m.pay(bits*bits/1000, bits/4)
}
