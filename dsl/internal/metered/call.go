package metered

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/value"
)

// The type evaluatedNode is an expression node that was evaluated already. It holds the result.
type evaluatedNode struct {
	*hclsyntax.ParenthesesExpr
	v     cty.Value
	diags hcl.Diagnostics
}

// Value returns the result of the earlier evaluation.
func (g *evaluatedNode) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return g.v, g.diags }

func evaluated(e hclsyntax.Expression, ctx *hcl.EvalContext) *evaluatedNode {
	v, diags := e.Value(ctx)
	return &evaluatedNode{around(e), v, diags}
}

// A choice is a node for a conditional expression such as a ? b : c. The HCL library evaluates both
// b and c and converts both values to one type, so a choice counts the cost of b and of c.
type choice struct {
	*hclsyntax.ParenthesesExpr
	cond *hclsyntax.ConditionalExpr
}

// Value evaluates both results of the conditional expression, and charges for their conversion to
// one type. It returns the result that the condition selects.
func (c *choice) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(stepCost, 0)
	cond := *c.cond
	yes, no := evaluated(cond.TrueResult, ctx), evaluated(cond.FalseResult, ctx)
	w := m.Weigh(yes.v)
	w.join(m.Weigh(no.v))
	m.pay(w.nodes*300, w.nodes*50)
	if !yes.v.Type().Equals(no.v.Type()) {
		c.unify(m, yes, no, w)
	}
	cond.TrueResult, cond.FalseResult = yes, no
	v, diags := cond.Value(ctx)
	m.check()
	return v, diags
}

// unify charges for the search for a common type of the two results. If the results are tuples of
// different lengths, the library go-cty converts them to lists. To do so, it compares the types of
// all elements with each other, which is slow for long tuples. So unify converts long tuples to
// lists before go-cty does it. In the same way, it converts large objects with different names to
// maps.
func (c *choice) unify(m *Meter, yes, no *evaluatedNode, w weight) {
	m.pay(w.nodes*1000+parsing(w.digits), w.nodes*100)
	a, b := yes.v.Type(), no.v.Type()
	p := payment{m: m}
	switch {
	case sequenceLength(a)+sequenceLength(b) <= 100:
	case a.IsTupleType() && b.IsTupleType() && len(a.TupleElementTypes()) != len(b.TupleElementTypes()):
		yes.v = p.uniform(yes.v, cty.List(cty.DynamicPseudoType), w)
		no.v = p.uniform(no.v, cty.List(cty.DynamicPseudoType), w)
	case a.IsObjectType() && b.IsObjectType() && !sameNames(a, b):
		yes.v = p.uniform(yes.v, cty.Map(cty.DynamicPseudoType), w)
		no.v = p.uniform(no.v, cty.Map(cty.DynamicPseudoType), w)
	}
	m.payAlike([]cty.Type{yes.v.Type(), no.v.Type()})
}

// A call is a node that calls a function and charges for the call.
type call struct {
	*hclsyntax.ParenthesesExpr
	call *hclsyntax.FunctionCallExpr
}

// Value evaluates the arguments, charges for the call, and calls the function.
func (c *call) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := MeterOf(ctx)
	m.pay(1000, 500)
	if c.call.Name == "try" || c.call.Name == "can" { // these two functions evaluate their arguments themselves
		v, diags := c.call.Value(ctx)
		m.check()
		m.Weigh(v)
		m.pay(0, int64(len(diags))*faultMemory)
		return v, diags
	}
	made := *c.call
	made.Args = make([]hclsyntax.Expression, len(c.call.Args))
	failed := false
	args := make([]*evaluatedNode, len(made.Args))
	for i, e := range c.call.Args {
		args[i] = evaluated(e, ctx)
		made.Args[i] = args[i]
		failed = failed || args[i].diags.HasErrors()
	}
	target := &made
	if !failed {
		values := c.payArguments(m, ctx, args)
		if rendering[c.call.Name] && len(values) == 2 && m != nil {
			target = m.withMeter(made, values)
		}
	}
	v, diags := target.Value(ctx)
	m.check()
	return v, diags
}

// payArguments charges for a call, and returns the arguments. If a parameter of the function is a
// list, a set or a map, payArguments also converts a tuple or an object to this type.
func (c *call) payArguments(m *Meter, ctx *hcl.EvalContext, args []*evaluatedNode) []cty.Value {
	p := c.payment(m, args)
	p.charge(c.call.Name)
	f, ok := functionOf(ctx, c.call.Name)
	if !ok {
		return p.args
	}
	for range numberParams(f) {
		p.numbers()
	}
	params := f.Params()
	for i, a := range args {
		want := cty.NilType
		switch {
		case i < len(params):
			want = params[i].Type
		case f.VarParam() != nil:
			want = f.VarParam().Type
		}
		if c.call.ExpandFinal && i == len(args)-1 || want == cty.NilType {
			continue
		}
		a.v = p.uniform(a.v, want, p.weights[i])
	}
	switch name := c.call.Name; {
	case len(args) == 0:
	case name == "tolist" || name == "toset":
		args[0].v = p.uniform(args[0].v, cty.List(cty.DynamicPseudoType), p.all)
	case name == "tomap":
		args[0].v = p.uniform(args[0].v, cty.Map(cty.DynamicPseudoType), p.all)
	}
	return p.args
}

// numberParams returns how many parameters of a function are numbers.
func numberParams(f function.Function) (n int) {
	for _, x := range f.Params() {
		if x.Type == cty.Number {
			n++
		}
	}
	if v := f.VarParam(); v != nil && v.Type == cty.Number {
		n++
	}
	return n
}

// payment returns the arguments of a call with their sizes. If "..." follows the last argument,
// each element of this argument is a separate argument.
func (c *call) payment(m *Meter, args []*evaluatedNode) payment {
	values := make([]cty.Value, 0, len(args))
	for i, a := range args {
		v, _ := a.v.Unmark()
		if c.call.ExpandFinal && i == len(args)-1 && v.IsKnown() && !v.IsNull() && v.CanIterateElements() && !v.Type().IsObjectType() && !v.Type().IsMapType() {
			n := int64(v.LengthInt())
			m.pay(product(n, 300+elementCost(v.Type(), n)), n*200)
			if a.v.ContainsMarked() {
				m.pay(product(n, n, 10), product(n, n, 24)) // for each marked argument, go-cty copies all arguments
			}
			values = append(values, v.AsValueSlice()...)
			continue
		}
		values = append(values, a.v)
	}
	p := payment{m: m, args: values, weights: make([]weight, len(values))}
	for i, v := range values {
		p.weights[i] = m.Weigh(v)
		p.all.join(p.weights[i])
	}
	return p
}

// uniform converts v, which is a tuple or an object, to the type in the parameter `want`, if this
// type is a list, a set or a map. The library go-cty could do so, too. But if the element type of
// `want` is "any", go-cty would compare the types of all elements with each other. The method
// `uniform` is faster, because it first drops duplicate types. If `want` is a set of "any", uniform
// returns a list, and go-cty converts this list to a set. If uniform cannot convert v, or need not
// convert it, it returns v unchanged. Then go-cty converts v later, or reports an error.
func (p *payment) uniform(v cty.Value, want cty.Type, w weight) cty.Value {
	if !want.IsCollectionType() {
		return v
	}
	if want.ElementType() != cty.DynamicPseudoType {
		if want.HasDynamicTypes() {
			p.m.payAlike(p.m.elementTypes([]cty.Type{v.Type()}))
			return v
		}
		p.m.pay(w.nodes*300, w.nodes*elementBytes)
		if out, err := value.ConvertTo(v, want); err == nil {
			return out
		}
		return v
	}
	raw, marks := v.Unmark()
	ty := raw.Type()
	if !raw.IsKnown() || raw.IsNull() || !ty.IsTupleType() && !ty.IsObjectType() || ty.IsObjectType() != want.IsMapType() || raw.LengthInt() < 2 {
		return v
	}
	var types []cty.Type
	for it := raw.ElementIterator(); it.Next(); {
		_, e := it.Element()
		known := false
		for _, t := range types {
			p.m.pay(equalCost(t), 0)
			if known = t.Equals(e.Type()); known {
				break
			}
		}
		if !known {
			types = append(types, e.Type())
		}
	}
	p.m.pay(w.nodes*int64(len(types))*20, 0)
	p.m.payAlike(types)
	elem := types[0]
	if len(types) > 1 {
		elem, _ = convert.UnifyUnsafe(types)
	}
	if elem == cty.NilType || elem == cty.DynamicPseudoType || elem.HasDynamicTypes() {
		p.m.payAlike(p.m.elementTypes([]cty.Type{ty}))
		return v
	}
	p.m.pay(w.nodes*300, w.nodes*elementBytes)
	named := map[string]cty.Value{}
	var list []cty.Value
	for it := raw.ElementIterator(); it.Next(); {
		k, e := it.Element()
		c, err := convert.Convert(e, elem)
		if err != nil {
			p.m.payAlike(p.m.elementTypes([]cty.Type{ty}))
			return v
		}
		if ty.IsObjectType() {
			named[k.AsString()] = c
		} else {
			list = append(list, c)
		}
	}
	if ty.IsObjectType() {
		return cty.MapVal(named).WithMarks(marks)
	}
	return cty.ListVal(list).WithMarks(marks)
}
