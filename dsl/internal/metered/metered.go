package metered

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// Costs of nodes, in nominal nanoseconds and bytes.
const (
	roundCost    = 2_000 // one round of a loop: its body and its context
	roundMemory  = 100   // one round of a loop, whose context is soon garbage
	stepCost     = 300   // one node
	faultMemory  = 1_000 // one diagnostic; a loop keeps the diagnostics of all its rounds
	elementBytes = 100   // one element of a new list, map or object
	textMemory   = 4     // one byte of text, in a buffer that grows and in the result
	textCost     = 4     // one byte of text
)

// Of returns an expression that has the same value as e, with additional nodes
// that charge for the work. It copies only the parts of e that may be expensive.
// It does not change e, so other code still finds the source as it was written.
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
		c.KeyExpr, c.ValExpr, c.CondExpr = turn(e.KeyExpr), turn(e.ValExpr), turn(e.CondExpr)
		return paying(&c, payBuilt)
	case *hclsyntax.SplatExpr:
		c := *e
		c.Source, c.Each = paying(Of(e.Source), payOrder), turn(e.Each)
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
	return e // a literal, a reference or the item of a splat costs nearly nothing
}

func meteredAll(list []hclsyntax.Expression) []hclsyntax.Expression {
	out := make([]hclsyntax.Expression, len(list))
	for i, e := range list {
		out[i] = Of(e)
	}
	return out
}

// around returns e in parentheses. The nodes of this package embed the result. So functions of
// the library that walk through an expression find e inside of the node.
func around(e hclsyntax.Expression) *hclsyntax.ParenthesesExpr {
	return &hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}
}

// A payer charges a fixed cost before it evaluates its expression. Then it calls
// settle, which charges for the value; nil = no further charge.
type payer struct {
	*hclsyntax.ParenthesesExpr
	settle func(*Meter, cty.Value)
}

func paying(e hclsyntax.Expression, settle func(*Meter, cty.Value)) hclsyntax.Expression {
	switch e.(type) {
	case nil:
		return nil
	case *hclsyntax.LiteralValueExpr:
		return e
	}
	return &payer{around(e), settle}
}

// Value evaluates the expression and charges for it.
func (p *payer) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(stepCost, 0)
	v, diags := p.Expression.Value(ctx)
	m.check()
	if p.settle != nil {
		p.settle(m, v)
	}
	return v, diags
}

// A round is a part of a loop that is evaluated for each element.
type round struct{ *hclsyntax.ParenthesesExpr }

func turn(e hclsyntax.Expression) hclsyntax.Expression {
	if e == nil {
		return nil
	}
	return &round{around(Of(e))}
}

// Value charges for the round before it evaluates it.
func (r *round) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(roundCost, roundMemory)
	v, diags := r.Expression.Value(ctx)
	m.check()
	m.pay(0, int64(len(diags))*faultMemory)
	return v, diags
}

// payText charges for a part of a string, before the string is put together.
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

// payBuilt charges for a value that was put together from others.
func payBuilt(m *Meter, v cty.Value) {
	m.Weigh(v)
	raw, _ := v.Unmark()
	if raw.IsKnown() && !raw.IsNull() && raw.CanIterateElements() {
		n := int64(raw.LengthInt())
		m.pay(n*elementBytes, n*elementBytes)
	}
}

// payOrder charges for the walk through the elements of a value.
func payOrder(m *Meter, v cty.Value) {
	raw, _ := v.Unmark()
	if raw.IsKnown() && !raw.IsNull() && raw.CanIterateElements() {
		n := int64(raw.LengthInt())
		m.pay(n*(50+elementCost(raw.Type(), n)), n*20)
	}
}

// payCompared charges for the comparison of a value with another one.
func payCompared(m *Meter, v cty.Value) {
	w := m.Weigh(v)
	m.pay(w.nodes*1500, w.nodes*50)
}

// payNumber charges for a value that may be converted to a number. A number may
// have many digits before the point: each multiplication may double them.
func payNumber(m *Meter, v cty.Value) {
	raw, _ := v.Unmark()
	if raw.Type() == cty.String && raw.IsKnown() && !raw.IsNull() {
		m.pay(parsing(value.Numeral(raw.AsString())), 0)
	}
	bits := value.Exponent(raw)
	m.pay(bits*bits/1000, bits/4)
}
